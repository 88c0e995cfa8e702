"""Which rule decides a call: first match, default deny, and a refusal where a condition cannot be decided."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sentinel_rag.contracts.labels import BOTTOM, TOP, Integrity, Label, Sensitivity
from sentinel_rag.contracts.tool_calls import Allow, Deny, Reason
from sentinel_rag.gateway.policy import TaintRule, ToolPolicy, parse_policy
from sentinel_rag.gateway.policy.conditions import TypeName, ValueType, check
from sentinel_rag.gateway.policy.model import UNKNOWN_TOOL, Effect, decide

POLICY = parse_policy("""
tools:
  - name: tool
    aliases: [other_name]
    effect: write
    parameters:
      - {name: a, type: string, accepts: {sensitivity: LOW, integrity: TRUSTED}}
      - {name: b, type: string}
    taint_rules:
      - {rule_id: both, condition: "a == 'x' and b == 'y'", taint_level: HIGH}
      - {rule_id: never, condition: "a == 'deny'", taint_level: MEDIUM, deny: true}
      - {rule_id: asks, condition: "a == 'ask'", taint_level: HIGH, requires_approval: true}
      - {rule_id: offers, condition: "a == 'offer'", taint_level: LOW, offers_approval: true}
  - name: plain
    server: elsewhere
    effect: external
    accepts: {sensitivity: MEDIUM, integrity: TRUSTED}
    parameters: [{name: a, type: string}]
  - {name: by_default, parameters: []}
  - {name: reads, effect: read, parameters: []}
""")
TOOL = POLICY.tools["tool"]


@pytest.mark.requirement("GATE-2")
@pytest.mark.parametrize(
    ("arguments", "decision"),
    [
        ({"a": "x", "b": "y"}, Allow("both", Label(Sensitivity.HIGH))),
        ({"a": "deny", "b": ""}, Deny(Reason.RULE_DENIES, Label(Sensitivity.MEDIUM), "never")),
        ({"a": "ask", "b": ""}, Deny(Reason.APPROVAL_REQUIRED, Label(Sensitivity.HIGH), "asks")),
        ({"a": "offer", "b": ""}, Allow("offers", BOTTOM)),
        ({"a": "z", "b": ""}, Deny(Reason.NO_RULE_MATCHED, TOP)),
        ({"a": "x"}, Deny(Reason.CONDITION_UNDECIDED, TOP, "both")),
        ({"b": "z"}, Deny(Reason.CONDITION_UNDECIDED, TOP, "never")),  # the first is false whatever a were
        ({"a": "deny"}, Deny(Reason.RULE_DENIES, Label(Sensitivity.MEDIUM), "never")),
        ({"a": "z"}, Deny(Reason.NO_RULE_MATCHED, TOP)),
        ({}, Deny(Reason.CONDITION_UNDECIDED, TOP, "both")),
    ],
    ids=str,
)
def test_the_first_rule_that_speaks_decides(arguments: dict[str, Any], decision: object) -> None:
    assert decide(TOOL, arguments) == decision


def test_an_unknown_tool_is_denied_as_if_all_were_secret() -> None:
    assert Deny(Reason.UNKNOWN_TOOL, TOP) == UNKNOWN_TOOL


def test_whatever_goes_wrong_inside_a_condition_is_a_refusal() -> None:
    def breaks(_: object) -> int:
        raise RuntimeError

    assert decide(replace(TOOL, first_match=breaks), {"a": "x"}) == Deny(Reason.CONDITION_UNDECIDED, TOP)
    # A text where the type says boolean: no call gets that far, and if one did, it would be refused.
    condition = check("a", {"a": ValueType(TypeName.BOOLEAN)})

    def leaves_out(_: object) -> int:
        raise KeyError

    broken = ToolPolicy("t", "", {}, (TaintRule("r", "a", condition, Sensitivity.LOW),), leaves_out)
    assert decide(broken, {"a": "text"}) == Deny(Reason.CONDITION_UNDECIDED, TOP, "r")


def test_what_a_tool_says_of_itself() -> None:
    rule = TOOL.rule("asks")
    assert rule is not None
    assert rule.rule_id == "asks"
    assert (TOOL.rule("none"), TOOL.rule(None)) == (None, None)
    assert [rule.may_ask for rule in TOOL.rules] == [False, False, True, True]
    assert TOOL.rule_label("never") == Label(Sensitivity.MEDIUM)
    assert TOOL.rule_label("none") == TOOL.rule_label(None) == TOP
    assert TOOL.revealed == Label(integrity=Integrity.UNTRUSTED)


@pytest.mark.requirement("TAINT-4")
def test_a_parameter_accepts_what_it_says_or_its_tool_or_the_effect() -> None:
    high_trusted, low_untrusted = Label(Sensitivity.HIGH), Label(integrity=Integrity.UNTRUSTED)
    assert TOOL.ceiling("a") == BOTTOM
    assert TOOL.ceiling("b") == TOOL.call_ceiling() == high_trusted
    plain, by_default, reads = (POLICY.tools[name] for name in ("plain", "by_default", "reads"))
    assert plain.ceiling("a") == plain.call_ceiling() == Label(Sensitivity.MEDIUM)
    assert (by_default.effect, by_default.call_ceiling()) == (Effect.EXTERNAL, low_untrusted)
    assert reads.call_ceiling() == TOP


def test_a_policy_finds_a_tool_by_exactly_its_names() -> None:
    assert POLICY.tool("tool") is POLICY.tool("other_name") is TOOL
    for name in ("Tool", "tool ", "", "to\u200bol", "ｔool"):
        assert POLICY.tool(name) is None
    assert POLICY.servers() == {"sentinel", "elsewhere"}
