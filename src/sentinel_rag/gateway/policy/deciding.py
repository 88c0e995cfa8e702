"""Which rule speaks about a call, and what it says. Pure: the same policy and arguments give the same decision.

First match decides; no match denies; a condition that cannot be decided denies on the spot, before any later rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

from sentinel_rag.contracts.decisions import Allow, Decision, Deny, Reason
from sentinel_rag.contracts.labels import TOP, Integrity, Label
from sentinel_rag.gateway.policy.conditions import evaluate
from sentinel_rag.gateway.policy.model import Rule, ToolPolicy

UNKNOWN_TOOL = Deny(Reason.UNKNOWN_TOOL, TOP)
"""The decision for a name that the policy does not have."""


def decide(tool: ToolPolicy, arguments: Mapping[str, Any]) -> Decision:
    """Judge a call whose arguments have the declared types. Never raises."""
    try:
        index = tool.first_match(arguments)
    except KeyError:
        return _decide_with_unknowns(tool, arguments)
    except Exception:  # whatever went wrong inside a condition, it was not decided: that is a refusal
        return Deny(Reason.CONDITION_UNDECIDED, TOP)
    return _apply(tool.rules[index]) if index >= 0 else Deny(Reason.NO_RULE_MATCHED, TOP)


def _decide_with_unknowns(tool: ToolPolicy, arguments: Mapping[str, Any]) -> Decision:
    for rule in tool.rules:
        try:
            verdict = evaluate(rule.expression, arguments)
        except Exception:  # as above
            verdict = None
        match verdict:
            case True:
                return _apply(rule)
            case None:
                return Deny(Reason.CONDITION_UNDECIDED, TOP, rule.rule_id)
            case False:
                continue
            case _:
                assert_never(verdict)
    return Deny(Reason.NO_RULE_MATCHED, TOP)


def _apply(rule: Rule) -> Decision:
    # What a rule says about secrecy is its own; who may have written the result is the tool's, and the gate adds it.
    label = Label(rule.taint_level, Integrity.TRUSTED)
    if rule.deny:
        return Deny(Reason.RULE_DENIES, label, rule.rule_id)
    if rule.requires_approval:
        return Deny(Reason.APPROVAL_REQUIRED, label, rule.rule_id)
    return Allow(rule.rule_id, label)
