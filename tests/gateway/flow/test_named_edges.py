"""Who names an argument at its edges: an empty text, the longest one, another kind, one sentence with another value."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_rag.contracts.labels import BOTTOM, TOP, Label
from sentinel_rag.gateway.flow.judging import CallFacts, LabelledArgument, LabelSource, judge
from sentinel_rag.gateway.flow.named_values import (
    MAX_SOUGHT,
    MAX_TEXT,
    MAX_VALUE,
    NamedValue,
    canonical_named,
    named_in,
    sought_in,
)
from sentinel_rag.gateway.policy import Policy, parse_policy
from sentinel_rag.gateway.policy.model import ValueKind

pytestmark = pytest.mark.requirement("TAINT-5")

TEXT = """
kinds:
  - {name: ticket, pattern: 'T-[0-9]{1,6}', beside: [ticket]}
tools:
  - name: send
    effect: external
    parameters:
      - {name: note, type: string, attest: words}
      - {name: body, type: string, attest: quoted}
      - {name: day, type: string, attest: day}
      - {name: incident, type: string, attest: incident}
      - {name: query, type: string, attest: sought}
      - {name: url, type: string, attest: url}
      - {name: ticket, type: string, attest: ticket}
      - {name: about, type: string, attest: [quoted, host]}
      - {name: machine, type: string, attest: [ip, host]}
      - {name: remark, type: string, attest: quoted, together: machine}
      - {name: title, type: string, attest: quoted, together: ticket}
      - {name: comment, type: string, attest: quoted, together: incident}
    taint_rules: [{rule_id: send_any, condition: "true", taint_level: LOW}]
"""
IN_SECRET = Label(TOP.sensitivity)
GUID = "0b6cf1a4-8f0f-4a3b-9c57-0d5d1b2f7a11"


@pytest.fixture(scope="module")
def policy() -> Policy:
    return parse_policy(TEXT)


def labelled(policy: Policy, words: str, **arguments: str) -> LabelledArgument:
    """The last of the arguments, in a session that has seen all there is."""
    named = dict.fromkeys(named_in(words, policy), "user")
    return judge(policy, policy.tools["send"], arguments, CallFacts(context=TOP, named=named)).arguments[-1]


PASSAGE = "ab " * (MAX_TEXT // 3) + "c"
LONG_QUOTE = "the host was rebuilt " * 40 + "today"


@pytest.mark.parametrize(
    ("words", "arguments", "label"),
    [
        # Words that all deny leave an empty passage; an empty text is nobody's all the same.
        ("Do not call Bob", {"note": ""}, TOP),
        ("Say ' '", {"body": ""}, TOP),
        ("Set it to 'x'", {"body": "x"}, BOTTOM),
        (PASSAGE, {"note": PASSAGE}, BOTTOM),
        (PASSAGE + "d", {"note": PASSAGE + "d"}, TOP),
        ("tell them the printer works", {"note": "the printer is lost"}, TOP),
        ("tell them the printer works", {"note": "THE printer works"}, IN_SECRET),
        ("Say 'all is well' today", {"body": "all is"}, TOP),
        ("Say 'all is well' of host ws-1", {"about": "all is well"}, BOTTOM),
        ("Say 'all is well' of host ws-1", {"about": "ws-1"}, BOTTOM),
        ("Say 'all is well' of host ws-1", {"about": "ws-2"}, TOP),
        ("on June 13", {"day": "--06-13"}, BOTTOM),
        ("on June 13", {"day": "2024-06-13"}, BOTTOM),
        ("on June 13", {"day": "tomorrow"}, TOP),
        (f"close incident {GUID}", {"incident": GUID}, BOTTOM),
        (f"close incident {GUID}", {"incident": GUID.upper()}, BOTTOM),
        (f"close incident {GUID}", {"incident": f" {GUID}"}, IN_SECRET),
        ("close incident 14", {"incident": "#14"}, BOTTOM),
        ("read https://a.example/", {"url": "https://a.example"}, BOTTOM),
        ("read https://a.example/x", {"url": "https://a.example/x/"}, TOP),
        # A text that another kind names, or that stands beside a wish, is no wish.
        ("Say 'orca' and google pandas", {"query": "orca"}, TOP),
        ("Say 'orca'", {"query": "orca"}, TOP),
        ("google pandas", {"query": "pandas"}, BOTTOM),
        ("ticket T-5: 'all is well'", {"ticket": "T-5", "title": "all is well"}, BOTTOM),
        ("ticket T-5: 'all is well'", {"ticket": "T-6", "title": "all is well"}, TOP),
        ("ticket T-5: 'all is well'", {"title": "all is well"}, TOP),
        ("Say 'all is well' of host ws-1.", {"machine": "ws-1", "remark": "all is well"}, BOTTOM),
        ("Say 'all is well' of 10.0.0.1.", {"machine": "10.0.0.1", "remark": "all is well"}, BOTTOM),
        ("Say 'all is well' of host ws-1.", {"machine": "ws-2", "remark": "all is well"}, TOP),
        ("Say 'all is well' on incident 8.", {"incident": "8", "comment": "all is well"}, BOTTOM),
        ("Say 'all is well' on incident 8.", {"incident": "8", "comment": "all  is well"}, IN_SECRET),
        (f"Say '{LONG_QUOTE}' on incident 8.", {"incident": "8", "comment": LONG_QUOTE}, BOTTOM),
    ],
)
def test_an_argument_is_the_persons_where_their_words_say_just_that(
    policy: Policy, words: str, arguments: dict[str, str], label: Label
) -> None:
    entry = labelled(policy, words, **arguments)
    assert entry.label == label
    assert (entry.source is LabelSource.NAMED) is (label != TOP)
    assert entry.is_named is (label == BOTTOM)


@pytest.mark.parametrize(
    ("kind", "value"),
    [(ValueKind.DAY, "tomorrow"), (ValueKind.DAY, ""), (ValueKind.SOUGHT, "?!"), (ValueKind.WORDS, " ")],
)
def test_what_has_no_text_to_be_compared_by_is_no_value(kind: ValueKind, value: Any) -> None:
    assert canonical_named(kind, value) is None


@pytest.mark.parametrize(("length", "is_named"), [(MAX_VALUE, True), (MAX_VALUE + 1, False)])
def test_words_name_no_longer_value_than_an_argument_may_be(length: int, is_named: bool) -> None:
    path = "/".join(["d" * 99] * 6)[:length]
    assert len(path) == length
    assert (NamedValue(ValueKind.PATH, path) in named_in(f"read {path}")) is is_named
    assert (canonical_named(ValueKind.PATH, path) is not None) is is_named


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("google C2", {"C2"}),
        ("google x", set()),
        (f"google {'x' * MAX_SOUGHT}", {"x" * MAX_SOUGHT}),
        (f"google {'x' * (MAX_SOUGHT + 1)}", set()),
        ("google orca, then dolphins, then seals", {"orca, then dolphins, then seals", "orca"}),
    ],
)
def test_a_wish_is_a_text_of_two_signs_or_more_and_goes_on_once(clause: str, expected: set[str]) -> None:
    assert set(sought_in(clause)) == expected
