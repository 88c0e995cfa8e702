"""What a condition needs in order to be true: a few cheap tests of which at least one must hold.

`emission` puts the needs of many conditions into one test in front of them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sentinel_rag.gateway.policy.conditions import tree

MOST_NEEDS = 16

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Need:
    """`subject` must stand to `value` as `kind` says: startswith, endswith, ==, <, <=, >, >=, contains or matches.

    `test` is the part of the condition that it comes from. `guarded`: the condition is false, and not unknown, where a
    parameter of the subject is left out.
    """

    kind: str
    subject: tree.Expression
    value: Any
    test: tree.Expression
    guarded: bool = False


def needs_of(condition: tree.Expression) -> list[Need] | None:
    """Tests of which at least one holds wherever the condition is true or, unless guarded, where a parameter of the
    tests is left out. None if there are none to name."""
    match condition:
        case tree.StringTest(method, subject, tree.Literal(value)) if _is_value(subject):
            return [Need(method, subject, value, condition)]
        case tree.StringTest(method, subject, tree.Choices(values)) if _is_value(subject):
            return _few([Need(method, subject, value, condition) for value in values])
        case tree.Matches(subject, pattern, _) if _is_value(subject):
            return [Need("matches", subject, pattern, condition)]
        case tree.Comparison(first, ((operator, tree.Literal(value)),)) if _is_value(first):
            return [Need(operator, first, value, condition)] if operator in ("==", *_MIRRORED) else None
        case tree.Comparison(tree.Literal(value), ((operator, second),)) if _is_value(second):
            mirrored = _MIRRORED.get(operator, operator)
            return [Need(mirrored, second, value, condition)] if mirrored in ("==", *_MIRRORED) else None
        case tree.Comparison(first, (("in", tree.Choices(values)),)) if _is_value(first):
            return _few([Need("==", first, value, condition) for value in values])
        case tree.Every(operands):
            return _of_conjunction(operands)
        case tree.Some(operands):
            return _of_disjunction(operands)
        case _:
            return None


def _of_conjunction(operands: tuple[tree.Expression, ...]) -> list[Need] | None:
    """The needs of the first operand that has some. Where it is false the whole is false, even if others are unknown;
    where it is unknown the whole may be, unless `has` among the operands makes it false."""
    present = {operand.name for operand in operands if isinstance(operand, tree.Present)}
    for operand in operands:
        needs = needs_of(operand)
        if needs is not None:
            return [
                Need(
                    need.kind, need.subject, need.value, need.test, need.guarded or tree.reads(need.subject) <= present
                )
                for need in needs
            ]
    return None


def _of_disjunction(operands: tuple[tree.Expression, ...]) -> list[Need] | None:
    """The needs of all operands: where the whole is true or unknown, one of them is, and so its needs hold."""
    needs: list[Need] = []
    for operand in operands:
        found = needs_of(operand)
        if found is None:
            return None
        needs += found
    return _few(needs)


def _few(needs: list[Need]) -> list[Need] | None:
    return needs if len(needs) <= MOST_NEEDS else None


def _is_value(node: tree.Expression) -> bool:
    """Whether it is computed from parameters alone, by something cheap."""
    return isinstance(node, tree.Argument | tree.CaseMapping | tree.Length) and bool(tree.reads(node))
