"""Numbers, conversions and conditions: Kusto's documented answers, overflow, and what is no number."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sentinel_rag.workspace.cells import Cell

pytestmark = pytest.mark.requirement("DATA-4")

Evaluate = Callable[[str], tuple[str, Cell]]

NUMBERS: list[tuple[str, str, Cell]] = [
    ("todecimal('1.5')", "decimal", "1.5"),
    ("todecimal('x')", "decimal", None),
    ("todecimal(3)", "decimal", "3"),
    ("sqrt(4)", "real", 2.0),
    ("sqrt(-1)", "real", None),
    ("log(1)", "real", 0.0),
    ("log(-1)", "real", None),
    ("log(0)", "real", "-Infinity"),
    ("log10(1000)", "real", 3.0),
    ("log2(8)", "real", 3.0),
    ("log10(-1)", "real", None),
    ("round(loggamma(5), 6)", "real", 3.178054),
    ("bitset_count_ones(42)", "long", 3),
    ("gamma(5)", "real", 24.0),
    ("7 / 2", "long", 3),
    ("-7 / 2", "long", -3),
    ("7 / 2.0", "real", 3.5),
    ("1 / 0", "long", None),
    ("1.0 / 0", "real", "Infinity"),
    ("-7 % 3", "long", 2),
    ("int(2147483647) + 1", "long", 2147483648),
    ("pow(2, 3)", "real", 8.0),
    ("abs(-5)", "long", 5),
    ("sign(-3)", "real", -1.0),
    ("round(2.345, 2)", "real", 2.35),
    ("round(1234, -2)", "real", 1200.0),
    ("ceiling(1.2)", "real", 2.0),
    ("exp2(3)", "real", 8.0),
    ("isnan(real(nan))", "bool", True),
    ("isinf(1.0 / 0)", "bool", True),
    ("toint('0x1F')", "int", 31),
    ("toint('5.7')", "int", None),
    ("toint(5.7)", "int", 5),
    ("tolong('9223372036854775808')", "long", None),
    ("toreal('1e3')", "real", 1000.0),
    ("toreal('abc')", "real", None),
    ("tobool('TRUE')", "bool", True),
    ("tobool('no')", "bool", None),
    ("toguid('x')", "guid", None),
    ("iff(bool(null), 1, 2)", "long", 2),
    ("case(false, 'a', bool(null), 'b', 'c')", "string", "c"),
    ("coalesce(long(null), 7)", "long", 7),
    ("coalesce('', 'b')", "string", "b"),
    ("max_of(1, long(null), 3)", "long", 3),
    ("min_of(1, 2)", "long", 1),
    ("isempty(long(null))", "bool", True),
    ("isnull('')", "bool", False),
    ("isempty('')", "bool", True),
    ("isnotempty(dynamic([]))", "bool", True),
    ("rand() < 1.0 and rand() >= 0.0", "bool", True),
    ("rand(5) < 5", "bool", True),
    ("isnotnull(new_guid())", "bool", True),
    ("binary_and(5, 3)", "long", 1),
]


@pytest.mark.parametrize(("expression", "type_", "value"), NUMBERS)
def test_numbers_answer_as_kusto_does(evaluated: Evaluate, expression: str, type_: str, value: Cell) -> None:
    assert evaluated(expression) == (type_, value)
