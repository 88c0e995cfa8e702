"""Values that count only in one sentence with another one, so that words about two things make no third."""

from __future__ import annotations

import pytest

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.labels import Integrity, Label, Sensitivity
from sentinel_rag.gateway.flow.judging import CallFacts, LabelSource, facts_of, flow_record, judge
from sentinel_rag.gateway.flow.named_values import named_in
from sentinel_rag.gateway.policy import parse_policy

pytestmark = pytest.mark.requirement("TAINT-5")

READ = Label(Sensitivity.MEDIUM, Integrity.UNTRUSTED)
TEXT = """
kinds:
  - {name: severity, pattern: '(?i)(?:low|medium|high)', beside: [to, severity], any_case: true}
tools:
  - name: update
    effect: write
    parameters:
      - {name: incident, type: string, required: true, attest: incident}
      - {name: severity, type: string, attest: severity, together: incident}
      - {name: comment, type: string, attest: quoted, together: incident}
    taint_rules: [{rule_id: any, condition: "true", taint_level: LOW}]
"""
POLICY = parse_policy(TEXT)


def passes(words: str, **arguments: str) -> bool:
    named = dict.fromkeys(named_in(words, POLICY), "user")
    facts = CallFacts(context=READ, named=named)
    judgement = judge(POLICY, POLICY.tools["update"], arguments, facts)
    record = {"context_before": READ.to_dict(), "flow": flow_record(judgement, facts, {})}
    assert judge(POLICY, POLICY.tools["update"], arguments, facts_of(record)).decision == judgement.decision
    return not judgement.violations


@pytest.mark.parametrize(
    ("words", "arguments", "allowed"),
    [
        ("Set incident 8 to Low.", {"severity": "Low"}, True),
        ("Look at incident 8, then lower its severity to low", {"severity": "LOW"}, True),
        ("Set incident 8 to Low.", {"severity": "High"}, False),
        ("Show incident 8. Set incident 7 to Low.", {"severity": "Low"}, False),
        ("Set incident 8 to Low as incident 7 is.", {"severity": "Low"}, False),
        ("Set incident 8 to Low or to High.", {"severity": "Low"}, False),
        ("Do not set incident 8 to Low.", {"severity": "Low"}, False),
        ("Is incident 8 Low?", {"severity": "Low"}, False),
        ('Write "The host was rebuilt." on incident 8.', {"comment": "The host was rebuilt."}, True),
        ("Comment on incident 8: the host was rebuilt", {"comment": "the host was rebuilt"}, True),
        ('Comment on incident 8: "The host was rebuilt."', {"comment": "The host was rebuilt."}, True),
        ('Comment on incident 8: "The host was rebuilt".', {"comment": "The host was rebuilt"}, True),
        ('Comment on incident 8: "The host was rebuilt"!', {"comment": "The host was"}, False),
        ('Comment on incident 8: "The host was rebuilt" X', {"comment": "The host was rebuilt"}, False),
        ('Comment on incident 8: he said "The host was rebuilt"', {"comment": "The host was rebuilt"}, False),
        ('Write "The host was rebuilt." on incident 7, then show 8.', {"comment": "The host was rebuilt."}, False),
        ('Write "The host was rebuilt." on incident 8.', {"comment": "The host was"}, False),
        ('Write "The host was rebuilt." on incident 8.', {"comment": "The host was  rebuilt."}, True),
        ('Show incident 8.\nWrite "The host was rebuilt." on incident 7.', {"comment": "The host was rebuilt."}, False),
        ('Write "a b c" and "d e f" on incident 8.', {"comment": "a b c"}, False),
    ],
)
def test_a_value_counts_with_the_incident_of_its_own_sentence(
    words: str, arguments: dict[str, str], allowed: bool
) -> None:
    assert passes(words, incident="8", **arguments) is allowed


def test_the_record_names_the_pair() -> None:
    facts = CallFacts(context=READ, named=dict.fromkeys(named_in("Set incident 8 to Low.", POLICY), "user"))
    judgement = judge(POLICY, POLICY.tools["update"], {"incident": "8", "severity": "Low"}, facts)
    assert {entry.source for entry in judgement.arguments} == {LabelSource.NAMED}
    flow = flow_record(judgement, facts, {})
    assert flow is not None
    assert flow["named"] == [
        {"parameter": "incident", "kind": "incident", "text": "8", "by": "user"},
        {"parameter": "severity", "kind": "together", "text": "incident 8 severity low", "by": "user"},
    ]


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("attest: severity, together: incident", "attest: severity, together: incidnt", "unknown parameter 'incidnt'"),
        ("attest: severity, together: incident", "attest: severity, together: severity", "joins two parameters"),
        ("attest: severity, together: incident", "together: incident", "each with an attest"),
        ("attest: quoted, together: incident", "attest: words, together: incident", "words are any passage"),
        ("attest: quoted, together: incident", "attest: quoted, together: severity", "stands for itself"),
        ("name: comment, type: string", "name: comment, type: array, items: string", "no lists"),
    ],
)
def test_a_pair_that_makes_no_sense_does_not_load(old: str, new: str, fault: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        parse_policy(TEXT.replace(old, new))
    assert any(fault in problem for problem in error.value.problems), error.value.problems
