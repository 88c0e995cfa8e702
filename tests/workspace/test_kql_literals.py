"""Literals: strings in all their forms, spans, numbers, times and dynamics."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sentinel_rag.workspace.cells import Cell
from sentinel_rag.workspace.kql.errors import KqlError

pytestmark = pytest.mark.requirement("DATA-4")

Evaluate = Callable[[str], tuple[str, Cell]]

LITERALS: list[tuple[str, str, Cell]] = [
    ('"a\\u00e9b"', "string", "aéb"),
    ('"\\ud83d\\ude00"', "string", "😀"),
    ("'x\\x41\\102'", "string", "xAB"),
    ('"tab\\tline\\nquote\\"back\\\\"', "string", 'tab\tline\nquote"back\\'),
    ("@'C:\\new\\u0041'", "string", "C:\\new\\u0041"),
    ("@'it''s'", "string", "it's"),
    ('@"say ""x"""', "string", 'say "x"'),
    ("'a' \"b\" @'c'", "string", "abc"),
    ("h'secret'", "string", "secret"),
    ('H@"x\\y"', "string", "x\\y"),
    ("```a 'b' \"c\" \\d\ne```", "string", "a 'b' \"c\" \\d\ne"),
    ("''", "string", ""),
    ("1.5d", "timespan", "1.12:00:00"),
    ("90m", "timespan", "01:30:00"),
    ("10ms", "timespan", "00:00:00.0100000"),
    ("10microsecond", "timespan", "00:00:00.0000100"),
    ("10tick", "timespan", "00:00:00.0000010"),
    ("time(1.02:03:04)", "timespan", "1.02:03:04"),
    ("time(-1.02:03:04)", "timespan", "-1.02:03:04"),
    ("timespan(2d)", "timespan", "2.00:00:00"),
    ("0x1F", "long", 31),
    ("long(0x1F)", "long", 31),
    ("int(5)", "int", 5),
    ("1e3", "real", 1000.0),
    ("real(1)", "real", 1.0),
    ("double(1.5)", "real", 1.5),
    ("decimal(0.1)", "decimal", "0.1"),
    ("bool(true)", "bool", True),
    ("long(null)", "long", None),
    ("guid(74be27de-1e4e-49d9-b579-fe0b331d3642)", "guid", "74be27de-1e4e-49d9-b579-fe0b331d3642"),
    ("9223372036854775807", "long", 9223372036854775807),
    ("datetime(2015-12-31 23:59:59.9)", "datetime", "2015-12-31T23:59:59.9Z"),
    ("datetime(2015-12-31)", "datetime", "2015-12-31T00:00:00Z"),
    ("datetime('2015-12-31T01:00:00+01:00')", "datetime", "2015-12-31T00:00:00Z"),
    ("datetime(null)", "datetime", None),
    ("dynamic([1, 'two', 3.5, null, true])", "dynamic", '[1,"two",3.5,null,true]'),
    ('dynamic({"a": datetime(2020-01-01), "b": [1.0]})', "dynamic", '{"a":"2020-01-01T00:00:00.0000000Z","b":[1.0]}'),
    ("dynamic('x')", "dynamic", "x"),
]


@pytest.mark.parametrize(("expression", "type_", "value"), LITERALS)
def test_literals_hold_what_kusto_reads(evaluated: Evaluate, expression: str, type_: str, value: Cell) -> None:
    assert evaluated(expression) == (type_, value)


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("datetime(2020-13-45x)", "datetime literal"),
        ("datetime(yesterday)", "datetime literal"),
        ("1tick", "timespan"),
        ("time(soon)", "timespan literal"),
        ("9223372036854775808", "long"),
        ("int(2147483648)", "int literal"),
    ],
)
def test_a_literal_that_cannot_be_held_is_refused_and_never_null(
    evaluated: Evaluate, expression: str, name: str
) -> None:
    with pytest.raises(KqlError) as refusal:
        evaluated(expression)
    assert name in str(refusal.value)
    assert refusal.value.next_step
