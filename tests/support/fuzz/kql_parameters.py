"""Values for the parameters of KQL templates: refused by name, or one literal that stands for that very value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support.fuzz.target import Check, Target, expect

from sentinel_rag.contracts.query_results import QueryErrorCode, QueryFailedError
from sentinel_rag.sentinel.templates.template_registry import PARAMETER_TYPES, TemplateParameter, bind

_STRING = r'"(?:[^"\\\r\n\t\u2028\u2029]|\\["\\nrt]|\\u[0-9a-f]{4})*"'
_SPAN = r"time\(-?[0-9]+\.[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{7}\)"
_TIME = r"datetime\([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{7}Z\)"
_LITERAL: Mapping[str, re.Pattern[str]] = {
    "string": re.compile(_STRING),
    "enum": re.compile(_STRING),
    "int": re.compile(r"long\(-?[0-9]{1,19}\)"),
    "real": re.compile(r"real\((?:nan|[+-]inf|-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)\)"),
    "bool": re.compile("true|false"),
    "datetime": re.compile(_TIME),
    "timespan": re.compile(_SPAN),
    "list": re.compile(rf"\({_STRING}(?:, {_STRING})*\)|\(dynamic\(\[\]\)\)"),
}
"""The whole of what a value of each type may become: nothing in it can end a literal and go on as a query."""

_DECLARED = tuple(
    TemplateParameter(name=kind, type=kind, description=f"a {kind}", allowed=("High", "Low") if kind == "enum" else ())
    for kind in PARAMETER_TYPES
)
_STRICT = (
    TemplateParameter(
        name="account", type="string", description="an account", required=True, pattern=r"[^@\s]+@[^@\s]+"
    ),
    TemplateParameter(name="days", type="int", description="days", minimum=1, maximum=90),
    TemplateParameter(name="share", type="real", description="a share", minimum=0, maximum=1),
)


@contextmanager
def _opened(_: Path) -> Iterator[Check]:
    yield _check


def _check(content: bytes) -> None:
    text = content.decode("utf-8", "replace")
    values: list[Any] = [text]
    with suppress(ValueError, RecursionError):
        values.append(json.loads(text))
    for parameter in (*_DECLARED, *_STRICT):
        for value in (*values, parameter.from_text(text)):
            literal = _literal(parameter, value)
            if literal is None:
                continue
            expect(_LITERAL[parameter.type].fullmatch(literal) is not None, f"a {parameter.type} is not one literal")
            _expect_that_value(parameter, value, literal)
    if isinstance(values[-1], dict):
        _bound(values[-1])


def _literal(parameter: TemplateParameter, value: Any) -> str | None:
    try:
        return parameter.literal(value)
    except QueryFailedError as refused:
        expect(refused.error.code is QueryErrorCode.INVALID_ARGUMENT, "it is refused as something else")
        expect(refused.error.field == f"parameters.{parameter.name}", "the refusal names another parameter")
        expect(bool(refused.error.next_step) and len(str(refused)) < 3_000, "the refusal is no sentence for a person")
        return None


def _bound(given: Mapping[str, Any]) -> None:
    try:
        literals = bind(_STRICT, given, "fuzzed")
    except QueryFailedError as refused:
        expect(refused.error.code is QueryErrorCode.INVALID_ARGUMENT, "it is refused as something else")
        return
    expect(set(literals) == {parameter.name for parameter in _STRICT}, "a parameter was left without a literal")


def _expect_that_value(parameter: TemplateParameter, value: Any, literal: str) -> None:
    match parameter.type:
        case "string":
            expect(_unquoted(literal) == value, "the text reads back as another")
        case "int":
            expect(int(literal[5:-1]) == value, "the number reads back as another")
        case "real":
            read = float(literal[5:-1])
            expect(read == float(value) or (read != read and value != value), "the number reads back as another")
        case "list":
            texts = [_unquoted(found[0]) for found in re.finditer(_STRING, literal)]
            expect(texts == value, "the list reads back as another")


def _unquoted(literal: str) -> str:
    named = {"n": "\n", "r": "\r", "t": "\t"}

    def plain(escape: re.Match[str]) -> str:
        code = escape[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else named.get(code, code)

    return re.sub(r"\\(u[0-9a-f]{4}|.)", plain, literal[1:-1])


def _seeds() -> Sequence[bytes]:
    values: tuple[Any, ...] = (
        *("alice@woodgrove.example", "High", "'; T | take 1 //", '\\"', "a\u2028b", "2026-11-28T09:30:00+05:30"),
        *("PT1H30M",),
        *("30m", "1.5d", "01:30:00", "-2.03:04:05.6", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.9999999-01:00", ""),
        *(5, -3, 2**53, 2**63, 1e300, 0.1, True, None, ["a", "b\\"], [], [1]),
        *({"account": "a@b", "days": 7, "share": 0.5},),
        *({"account": "", "days": 1e400}, "P99999999D", "999999d", "1e999", "12345678901234567890", "a,b,,c"),
    )
    return [json.dumps(value).encode() for value in values] + [b"30m", b"2026-11-28T09:30:00Z", b"a,b", b"1e999"]


KQL_PARAMETER = Target(
    name="kql-parameter",
    promise="A value is refused as an invalid argument of its own name, or becomes exactly one literal of its type, "
    "which reads back as the value.",
    opened=_opened,
    seeds=_seeds,
    tokens=(
        *(b'"', b'\\"', b"\\\\", b"'", b"\n", b"//", b"| take 1", b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-0.0"),
        *(b"9" * 19, b"9" * 400, b"9" * 5_000, b"\\ud800", b"\\u2028", b"P", b"PT", b"T24:00:00", b"+14:00"),
        *(b"-23:59", b"d"),
        *(b"0001-01-01", b"9999-12-31", b".9999999", b"[" * 50, b"{}", b"null", b"true", b"1_000", "٣".encode()),
        *("１".encode(),),
    ),
    largest=6_000,
    calls=(6_000, 200),
)
