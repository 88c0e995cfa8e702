"""Conditions of rules: refused with a column, or compiled to what the definition says, absent arguments included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import Any

from tests.support.fuzz.target import Check, Target, expect

from sentinel_rag.gateway.policy.conditions import (
    ConditionError,
    Expression,
    TypeName,
    ValueType,
    check,
    children,
    compile_rules,
    evaluate,
    text_of,
)
from sentinel_rag.gateway.policy.conditions.checking import MAX_LENGTH
from sentinel_rag.gateway.policy.conditions.tree import Present

_PARAMETERS = {
    "path": ValueType(TypeName.STRING),
    "name": ValueType(TypeName.STRING),
    "limit": ValueType(TypeName.INTEGER),
    "score": ValueType(TypeName.NUMBER),
    "force": ValueType(TypeName.BOOLEAN),
    "tags": ValueType(TypeName.ARRAY, TypeName.STRING),
    "extra": ValueType(TypeName.OBJECT),
}
_CALLS: tuple[Mapping[str, Any], ...] = (
    {"path": "", "name": "a", "limit": 0, "score": 0.0, "force": False, "tags": [], "extra": {}},
    {"path": "confidential/x", "name": "ß", "limit": 1, "score": 1, "force": True, "tags": ["a"], "extra": {"a": 1}},
    {"path": "A\n", "name": "İ", "limit": -(2**53), "score": -0.5, "force": True, "tags": ["", "ß"], "extra": {"": 0}},
    {
        "path": "a'b\"\\",
        "name": "a" * 99,
        "limit": 3,
        "score": 1e300,
        "force": False,
        "tags": ["x"],
        "extra": {"x": []},
    },
)
_SOME_LEFT_OUT = tuple(
    {name: value for name, value in _CALLS[1].items() if name not in missing}
    for size in (1, 2, len(_PARAMETERS))
    for missing in combinations(_PARAMETERS, size)
)


@contextmanager
def _opened(_: Path) -> Iterator[Check]:
    yield _check


def _check(content: bytes) -> None:
    text = content.decode("utf-8", "replace")
    try:
        tree = check(text, _PARAMETERS)
    except ConditionError as refused:
        expect(refused.column >= 1 and str(refused) != "", "a refusal names no place")
        return
    compiled = compile_rules([tree])
    for arguments in _CALLS:
        verdict = evaluate(tree, arguments)
        expect(verdict is not None, "a condition cannot be decided though nothing is left out")
        expect((compiled(arguments) == 0) is verdict, "compiled it means something else than by its definition")
    whole = evaluate(tree, _CALLS[1])
    speaks_of_absence = _speaks_of_absence(tree)
    for arguments in _SOME_LEFT_OUT:
        verdict = evaluate(tree, arguments)
        if verdict is not None and not speaks_of_absence:
            expect(verdict is whole, "it is decided for less than everything, and otherwise for everything")
        try:
            found: bool | None = compiled(arguments) == 0
        except KeyError:
            continue
        if verdict is not None:
            expect(found is verdict, "compiled it decides otherwise where an argument is left out")
        else:
            expect(found is False or speaks_of_absence, "compiled it lets pass what nobody can decide")
    _expect_to_read_back(tree)


def _speaks_of_absence(tree: Expression) -> bool:
    return isinstance(tree, Present) or any(map(_speaks_of_absence, children(tree)))


def _expect_to_read_back(tree: Expression) -> None:
    text = text_of(tree)
    if len(text) <= MAX_LENGTH:
        expect(check(text, _PARAMETERS) == tree, "its own text reads as something else")


def _seeds() -> Sequence[bytes]:
    return [
        text.encode()
        for text in (
            "true",
            "path.startswith('confidential/') or name == \"a'b\"",
            "has(path) and path.lower().matches('^(?:confidential|public)/[a-z]+$')",
            "limit in [1, 2, -3] and 0 <= score < 5.5 != limit",
            "not (force or 'x' in tags) and len(path) > 3",
            "path is not None and 'a' in extra",
            "name.casefold().strip() not in ('a', 'ß') and size(tags) == 0",
            "path.endswith(('.exe', '.dll')) == force",
            "path.contains('\\u202e') or name.upper() <= 'Z'",
        )
    ]


CONDITION = Target(
    name="condition",
    promise="A condition is refused with a column, or it compiles to what its definition says for every call, is "
    "decided whenever nothing is left out, is never decided one way for a part of a call and another way for "
    "the whole, and its printed text reads back as itself.",
    opened=_opened,
    seeds=_seeds,
    tokens=(
        *(b" and ", b" or ", b"not ", b" in ", b" not in ", b" is ", b"None", b"null", b"True", b"has(", b"len("),
        *(b"()",),
        *(b".matches('", b".startswith(", b".contains(", b".lower()", b".casefold()", b".strip()", b"lambda: ", b":="),
        *(b"path", b"name", b"limit", b"score", b"force", b"tags", b"extra", b"__class__", b"f'{path}'", b"b'a'"),
        *(b"r'\\'",),
        *(b"(" * 30, b"not " * 30, b"-" * 9, b"1e999", b"9" * 400, b"0x1f", b"1_0", b"1j", b"\\N{DASH}", b"\\ud800"),
        *(b"(?i)",),
        *(b"*", b"**", b" if ", b" else ", b"[0]", b"{}", b"...", b"'''", b"#", b";", b"\n", "ｐath".encode()),
        *(b"\xc2\xa0",),
    ),
    largest=2_100,
    calls=(6_000, 300),
)
