"""A tool that is told to be refused whatever is asked is: no arguments, named or not, make a call of it pass, and no
person would be asked. Of a session that has seen nothing it is never told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rag.contracts.labels import BOTTOM, Integrity, Label, Sensitivity
from sentinel_rag.contracts.tool_calls import Allow
from sentinel_rag.gateway.flow.judging import CallFacts, judge, refused_whatever
from sentinel_rag.gateway.flow.named_values import named_in
from sentinel_rag.gateway.flow.plans import PLAN, read_plan
from sentinel_rag.gateway.gate.gate import MAY_BE_GRANTED
from sentinel_rag.gateway.policy import Policy, load_policy, parse_policy
from sentinel_rag.gateway.policy.model import ToolPolicy

CONFIG = Path(__file__).resolve().parents[2] / "config"
EDGES = """
tools:
  - name: nothing_needed
    effect: external
    parameters:
      - {name: a, type: string}
      - {name: free, type: string, accepts: {sensitivity: HIGH, integrity: UNTRUSTED}}
    taint_rules: [{rule_id: nothing_needed_any, condition: "true", taint_level: LOW}]
  - name: ping
    effect: external
    parameters: []
    taint_rules: [{rule_id: ping_any, condition: "true", taint_level: LOW}]
  - name: lowered
    effect: external
    parameters: [{name: a, type: string, required: true}]
    taint_rules: [{rule_id: lowered_any, condition: "true", taint_level: LOW}]
  - name: some_rule
    effect: external
    parameters: [{name: a, type: string, required: true}]
    taint_rules:
      - rule_id: some_rule_open
        condition: "a == 'day'"
        taint_level: LOW
        accepts: {a: {sensitivity: HIGH, integrity: UNTRUSTED}}
      - {rule_id: some_rule_any, condition: "true", taint_level: LOW}
  - name: together
    effect: write
    parameters:
      - {name: a, type: string, required: true, attest: quoted}
      - {name: b, type: string, attest: email, together: a}
    taint_rules:
      - {rule_id: together_never, condition: "a == 'x'", taint_level: LOW, deny: true}
      - {rule_id: together_any, condition: "true", taint_level: LOW}
declassification:
  - {name: hashes, tool: lowered, parameter: a, form: hash, to: {sensitivity: LOW, integrity: TRUSTED}}
"""
POLICIES = [
    load_policy(CONFIG / "sentinel_config.yaml"),
    load_policy(CONFIG / "examples" / "own_words.yaml"),
    parse_policy(EDGES),
]
HASH = "d41d8cd98f00b204e9800998ecf8427e"
WORDS = [
    "what is a golden ticket?",
    "search the web for password spraying",
    'say "all is well now" to a.singh@contoso.example',
    'say "Dinner at {place}"',
    "show incident 124 and https://pages.sentinel-rag.example/a",
    "",
]
TEXTS = st.sampled_from(
    [
        "golden ticket",
        "password spraying",
        "all is well now",
        "Dinner at home",
        "124",
        HASH,
        "day",
        "x",
        "ws-1",
        "https://pages.sentinel-rag.example/a",
        "https://evil.example/a",
        "a.singh@contoso.example",
    ]
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXTS,
    "integer": st.integers(0, 3),
    "boolean": st.booleans(),
    "object": st.just({}),
    "array": st.lists(TEXTS, max_size=2),
}
LABELS = st.builds(Label, st.sampled_from(Sensitivity), st.sampled_from(Integrity))


def facts_of(policy: Policy, words: str, planned: bool, context: Label, memory: Label, tool: ToolPolicy) -> CallFacts:
    named = dict.fromkeys(named_in(words, policy), "user")
    if planned:
        step = {"tool": tool.name, "args": dict.fromkeys(tool.parameters, "planned")}
        named |= dict.fromkeys(read_plan([step], policy), PLAN)
    return CallFacts(context=context, named=named, memory=memory)


def arguments_of(draw: Any, tool: ToolPolicy) -> dict[str, Any]:
    return {
        name: draw(VALUES[str(parameter.type)] | st.just("planned"))
        if parameter.type == "string"
        else draw(VALUES[str(parameter.type)])
        for name, parameter in tool.parameters.items()
        if parameter.required or draw(st.booleans())
    }


@pytest.mark.requirement("TAINT-4")
@given(st.data(), st.sampled_from(POLICIES), st.sampled_from(WORDS), st.booleans(), LABELS, LABELS)
def test_no_call_of_a_tool_that_is_told_to_be_refused_passes(
    data: st.DataObject, policy: Policy, words: str, planned: bool, context: Label, memory: Label
) -> None:
    tool = data.draw(st.sampled_from(list(policy.tools.values())))
    facts = facts_of(policy, words, planned, context, memory, tool)
    if refused_whatever(policy, tool, facts):
        decision = judge(policy, tool, arguments_of(data.draw, tool), facts).decision
        assert not isinstance(decision, Allow)
        rule = tool.rule(decision.rule_id)
        assert rule is None or not rule.may_ask or decision.reason not in MAY_BE_GRANTED


@given(st.sampled_from(POLICIES))
def test_a_session_that_has_seen_nothing_is_refused_nothing_as_a_whole(policy: Policy) -> None:
    for tool in policy.tools.values():
        assert refused_whatever(policy, tool, CallFacts(BOTTOM)) == ()


def test_of_the_tools_with_edges_those_are_told_that_no_value_gets_past() -> None:
    policy, facts = POLICIES[2], CallFacts(Label(Sensitivity.MEDIUM, Integrity.UNTRUSTED))
    told = {name for name, tool in policy.tools.items() if refused_whatever(policy, tool, facts)}
    assert told == {"ping", "together"}
