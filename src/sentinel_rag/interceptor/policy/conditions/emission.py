"""All the conditions of one tool as one Python function, written from checked trees.

The function reads an argument by `a['name']`. Where a call leaves it out, that is a KeyError, and the caller falls back
to `evaluate`. Short-circuiting past an absent parameter is sound: what was evaluated already settles the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sentinel_rag.interceptor.policy.conditions import tree
from sentinel_rag.interceptor.policy.conditions.evaluation import holds

NO_MATCH = -1

CHUNK = 32
"""Conditions behind one common test."""

WORTH_A_TEST = 4


def compile_rules(conditions: Sequence[tree.Expression]) -> Callable[[Mapping[str, Any]], int]:
    """A function from arguments to the index of the first condition that is true, or `NO_MATCH`.

    It raises KeyError for arguments that leave out a parameter which the answer may depend on.
    """
    tests = "".join(_tests(conditions))
    source = f"def first_match(a):\n{tests}    return {NO_MATCH}\n"
    namespace: dict[str, Any] = {"__builtins__": {}, "_len": len, "_holds": holds}
    exec(compile(source, "<taint rules>", "exec"), namespace)  # noqa: S102  # our own text: names and literals by repr
    function: Callable[[Mapping[str, Any]], int] = namespace["first_match"]
    return function


@dataclass(frozen=True, slots=True)
class _TextTest:
    """A condition that compares one text with one literal. `subject` is its code."""

    kind: str
    subject: str
    literal: str


def _tests(conditions: Sequence[tree.Expression]) -> Iterator[str]:
    """One `if` for each condition, in order. Where many in a row compare one text with literals, one test in front of
    each chunk skips them all, because a tuple of prefixes and a set of texts are searched without Python code."""
    numbered = enumerate(zip(conditions, map(_text_test, conditions), strict=True))
    for alike, run in groupby(numbered, key=lambda entry: entry[1][1] and (entry[1][1].kind, entry[1][1].subject)):
        left = list(run)
        while left:
            chunk, left = left[:CHUNK], left[CHUNK:]
            indent = "    "
            if alike and len(chunk) >= WORTH_A_TEST:
                yield f"    if {_any_of([test for _, (_, test) in chunk if test])}:\n"
                indent = "        "
            for index, (condition, _) in chunk:
                yield f"{indent}if {_code(condition)}: return {index}\n"


def _text_test(condition: tree.Expression) -> _TextTest | None:
    match condition:
        case tree.StringTest("startswith", tree.Argument() as subject, tree.Literal(str(literal))):
            return _TextTest("startswith", _code(subject), literal)
        case tree.Comparison(tree.Argument() as subject, (("==", tree.Literal(str(literal))),)):
            return _TextTest("==", _code(subject), literal)
        case _:
            return None


def _any_of(tests: Sequence[_TextTest]) -> str:
    """Whether one of the tests, all of one kind and subject, holds."""
    literals = ", ".join(repr(test.literal) for test in tests)
    first = tests[0]
    return (
        f"{first.subject}.startswith(({literals},))"
        if first.kind == "startswith"
        else f"{first.subject} in {{{literals}}}"
    )


def _code(node: tree.Expression) -> str:
    match node:
        case tree.Literal(value):
            return repr(value)
        case tree.Choices(values):
            return f"({', '.join(map(repr, values))},)"
        case tree.Argument(name):
            return f"a[{name!r}]"
        case tree.Present(name):
            return f"({name!r} in a)"
        case tree.Not(operand):
            return f"(not {_code(operand)})"
        case tree.Every(operands):
            return f"({' and '.join(map(_code, operands))})"
        case tree.Some(operands):
            return f"({' or '.join(map(_code, operands))})"
        case tree.Comparison():
            return _comparison(node)
        case tree.StringTest("contains", subject, operand):
            return f"({_code(operand)} in {_code(subject)})"
        case tree.StringTest(method, subject, operand):
            return f"{_code(subject)}.{method}({_code(operand)})"
        case tree.CaseMapping(method, subject):
            return f"{_code(subject)}.{method}()"
        case tree.Length(subject):
            return f"_len({_code(subject)})"


def _comparison(node: tree.Comparison) -> str:
    """One native chain, so that no operand is written twice: nested chains would double the code at each level."""
    if len(node.rest) == 1 and node.rest[0][0] in ("in", "not in"):
        operator, container = node.rest[0]
        if isinstance(container, tree.Choices):
            return f"({_code(node.first)} {operator} {_code(container)})"
        found = f"_holds({_code(container)}, {_code(node.first)})"
        return found if operator == "in" else f"(not {found})"
    return f"({_code(node.first)} {' '.join(f'{operator} {_code(operand)}' for operator, operand in node.rest)})"
