"""The rules of a tool as one call meets them: which hold, which do not, and which part of a condition is to blame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.gateway.policy import ToolPolicy
from sentinel_rag.gateway.policy.conditions import Expression, evaluate, reads, text_of, tree

_MARKS = {True: "holds    ", False: "no       ", None: "unknown  "}


@dataclass(frozen=True, slots=True)
class RuleTrace:
    """One rule that was asked. `verdict` is None where the condition could not be decided; `why` says what made it so,
    empty where the whole condition says it."""

    rule_id: str
    line: int
    condition: str
    verdict: bool | None
    why: str

    @property
    def mark(self) -> str:
        return _MARKS[self.verdict]

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "rule_id": self.rule_id,
            "line": self.line,
            "condition": self.condition,
            "holds": self.verdict,
            "why": self.why,
        }


def trace_rules(tool: ToolPolicy, arguments: Mapping[str, Any]) -> tuple[RuleTrace, ...]:
    """The rules in order, up to the one that decides."""
    found: list[RuleTrace] = []
    for rule in tool.rules:
        verdict = evaluate(rule.expression, arguments)
        why = _why(rule.expression, verdict, arguments)
        found.append(RuleTrace(rule.rule_id, rule.line, rule.condition, verdict, why))
        if verdict is not False:
            break
    return tuple(found)


def _why(condition: Expression, verdict: bool | None, arguments: Mapping[str, Any]) -> str:
    if verdict is None:
        missing = sorted(name for name in reads(condition) if name not in arguments)
        return (
            f"the call does not give {', '.join(missing)}, so this cannot be decided; write has({missing[0]}) and ..."
        )
    blamed = _blamed(condition, verdict, arguments)
    if blamed == condition:
        return ""
    return f"because {text_of(blamed)} is {'true' if evaluate(blamed, arguments) else 'not true'}"


def _blamed(node: Expression, verdict: bool, arguments: Mapping[str, Any]) -> Expression:
    """The smallest part whose own value makes the whole what it is."""
    match node, verdict:
        case (tree.Every(operands), False) | (tree.Some(operands), True):
            for operand in operands:
                if evaluate(operand, arguments) is verdict:
                    return _blamed(operand, verdict, arguments)
            return node
        case tree.Not(operand), _ if isinstance(operand, tree.Every | tree.Some):
            return _blamed(operand, not verdict, arguments)
        case _:
            return node
