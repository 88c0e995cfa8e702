"""Every scalar function over odd values of each type that it takes: nulls, extremes, texts that have no form.

Values are drawn with a fixed seed. Whatever the rows hold, a function answers with its own type; what Kusto computes and
DuckDB does not (a sum beyond 64 bits, a regular expression in a column that is none) is in `_TOLD`.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator

import duckdb
import pytest
from evaluation import CONTEXT

from kql_duckdb.errors import KqlError
from kql_duckdb.expressions import Typed, column, literal, type_literal
from kql_duckdb.functions import registry
from kql_duckdb.functions.definitions import BoundCall, Function
from kql_duckdb.types import KustoType

VALUES: dict[KustoType, list[str]] = {
    KustoType.LONG: ["0", "1", "-1", "7", "64", "9223372036854775807", "-9223372036854775808", "2147483648"],
    KustoType.INT: ["0", "-5", "2147483647", "-2147483648"],
    KustoType.REAL: ["0.0", "-1.5", "2.5", "1e300", "1e19", "-1e19", "'nan'", "'inf'"],
    KustoType.DECIMAL: ["1.5", "-9999999999999999999999999999"],
    KustoType.BOOL: ["TRUE", "FALSE"],
    KustoType.GUID: ["'74be27de-1e4e-49d9-b579-fe0b331d3642'"],
    KustoType.DATETIME: ["'0001-01-01'", "'9999-12-31 23:59:59.999999'", "'2024-02-29 12:34:56.789'", "'1969-12-31'"],
    KustoType.TIMESPAN: [
        "to_microseconds(0)",
        "to_microseconds(-5)",
        "to_microseconds(86400000000)",
        "to_microseconds(9000000000000000)",
    ],
    KustoType.STRING: [
        "''",
        "'abc'",
        "'10.0.0.1'",
        "'10.0.0.1/33'",
        "'fe80::1/64'",
        """'{"a":[1,2]}'""",
        "'not json {'",
        "'é😀ß'",
        "'2024-01-01T00:00:00Z'",
        "'1.02:03:04'",
        "'%41%zz+'",
        "'MTIz'",
        """'<a b="1">t<c/></a>'""",
        "'http://u:p@h:1/p?a=1&a=2#f'",
        "'0x1F'",
        "' 5 '",
        "repeat('a', 5000)",
        r"'C:\a b\c.txt:s'",
        "'xn--a'",
        "'%_'",
    ],
    KustoType.DYNAMIC: [
        "'null'",
        "'[]'",
        "'{}'",
        """'[1,2.5,"x",null,[1],{"a":1}]'""",
        """'{"a":{"b":[1,2]},"c":null}'""",
        """'"text"'""",
        "'-1.5e300'",
        "'true'",
        "'[1,2,3,4,5]'",
        """'{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,0]]]}'""",
        """'{"type":"LineString","coordinates":[[0,0],[1]]}'""",
        "'[123456789012345678901234567890]'",
    ],
}
_EVERY = list(VALUES)
_NAMED = ("period", "field", "zone", "regex", "filled_regex")
_TAKEN: dict[str, list[KustoType]] = {
    "string": [KustoType.STRING, KustoType.DYNAMIC],
    "number": [KustoType.LONG, KustoType.REAL, KustoType.INT, KustoType.DECIMAL],
    "real": [KustoType.REAL, KustoType.LONG],
    "long": [KustoType.LONG, KustoType.INT],
    "integer": [KustoType.LONG, KustoType.INT],
    **{kind: [KustoType.STRING] for kind in _NAMED},
    **{kind: [KustoType.DYNAMIC] for kind in ("nullable", "array", "bag", "numbers")},
}
_CONSTANTS = ["day", "a(b)", "windows", "yyyy-MM", "UTC", "Meter", "$.a"]
_TOLD = ("kql: ", "Overflow", "missing ", "invalid repetition size", "invalid escape sequence", "Invalid replacement")
# They make as many elements as they are asked for.
_LARGE = frozenset(("range", "repeat", "strrep", "pack_all"))
FUNCTIONS = [
    registry.scalar(f"operator:{name}" if kind == "operator" else name)
    for name, kind, status, _ in registry.table()
    if kind in ("scalar", "operator") and status != "refused" and name not in _LARGE
]


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    opened = duckdb.connect()
    registry.install(opened)
    yield opened
    opened.close()


def drawn(function: Function, chance: random.Random) -> tuple[tuple[Typed, ...], list[tuple[int, KustoType]]]:
    """Arguments of one call, and the columns that it reads."""
    kinds = [one.kind.removeprefix("=") for one in function.parameters]
    least = sum(not one.optional for one in function.parameters)
    most = least + 2 if function.open_ended else len(kinds)
    arguments: list[Typed] = []
    columns: list[tuple[int, KustoType]] = []
    for place in range(chance.randint(least, min(most, least + 3))):
        needed = kinds[min(place, len(kinds) - 1)] if kinds else "any"
        kind = chance.choice(_TAKEN.get(needed, _EVERY if needed not in VALUES else [KustoType(needed)]))
        if needed == "type":
            arguments.append(type_literal(kind))
        elif needed in ("string", "any", *_NAMED) and chance.random() < 0.25:
            arguments.append(literal(chance.choice(_CONSTANTS), KustoType.STRING))
        else:
            arguments.append(column(f"c{place}", kind))
            columns.append((place, kind))
    return tuple(arguments), columns


def rows(columns: list[tuple[int, KustoType]], chance: random.Random) -> str:
    """A relation with every pair of values of the first two columns, and some value of the others."""
    held = {place: [f"CAST({value} AS {kind.held})" for value in ("NULL", *VALUES[kind])] for place, kind in columns}
    crossed = [f"(SELECT unnest([{', '.join(held[place])}]) AS c{place})" for place, _ in columns[:2]]
    others = "".join(f", {chance.choice(held[place])} AS c{place}" for place, _ in columns[2:])
    return f"(SELECT *{others} FROM {' CROSS JOIN '.join(crossed) or '(SELECT 1)'})"


def test_no_value_makes_a_function_fail(connection: duckdb.DuckDBPyConnection, subtests: pytest.Subtests) -> None:
    for function in FUNCTIONS:
        if function is not None:
            with subtests.test(function.name):
                takes_any_value(connection, function)


def takes_any_value(connection: duckdb.DuckDBPyConnection, function: Function) -> None:
    chance = random.Random(zlib.crc32(function.name.encode()))
    every = (function, *function.others)
    for number in range(5 * len(every)):
        arguments, columns = drawn(every[number % len(every)], chance)
        relation = rows(columns, chance)
        try:
            made = function.build(BoundCall(function.name, arguments, (), CONTEXT))
        except KqlError:
            continue
        failure, kinds = "", set()
        try:
            query = f"SELECT typeof({made.sql}), {made.sql} FROM {relation}"
            kinds = {row[0] for row in connection.execute(query).fetchall()}
        except duckdb.Error as error:
            failure = str(error)
        assert not failure or any(told in failure for told in _TOLD), (made.sql, failure)
        assert kinds <= {made.type.held}, made.sql
