"""Statements with worked-out answers: each expression through DuckDB alone, over columns, and through the engine.

`statements.jsonl` holds one expression a line with its Kusto type and the cell that Azure's API writes. The answers are
worked out by hand or are those of the examples on Kusto's pages.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest
from evaluation import NOW, Cell, cell, evaluate

from kql_duckdb.engine import Engine, kql
from kql_duckdb.errors import KqlError
from kql_duckdb.functions import registry

_LINES = (Path(__file__).parent / "statements.jsonl").read_text(encoding="utf-8").splitlines()
STATEMENTS: list[tuple[str, str, Cell]] = [tuple(json.loads(line)) for line in _LINES]


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    opened = duckdb.connect()
    registry.install(opened)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    opened = duckdb.connect()
    yield kql(opened)
    opened.close()


def same(found: Cell, expected: Cell) -> bool:
    """Equal; reals to the digits that Kusto's pages show."""
    if isinstance(found, float) and isinstance(expected, (int, float)):
        return math.isclose(found, expected, rel_tol=1e-9)
    return found == expected and isinstance(found, bool) == isinstance(expected, bool)


def test_each_statement_answers_as_kusto_does(connection: duckdb.DuckDBPyConnection, subtests: pytest.Subtests) -> None:
    for expression, kind, value in STATEMENTS:
        with subtests.test(expression):
            found = evaluate(connection, expression)
            assert found[0] == kind
            assert same(found[1], value), found


def test_each_statement_over_columns_answers_as_over_constants(
    connection: duckdb.DuckDBPyConnection, subtests: pytest.Subtests
) -> None:
    """Functions that need a constant refuse a column in KQL's words."""
    for expression, kind, value in STATEMENTS:
        with subtests.test(expression), suppress(KqlError):
            found = evaluate(connection, expression, as_columns=True)
            assert found[0] == kind
            assert same(found[1], value), found


def test_each_statement_through_the_engine(engine: Engine, subtests: pytest.Subtests) -> None:
    for first in range(0, len(STATEMENTS), 20):  # of one query, since to plan each is most of its time
        some = STATEMENTS[first : first + 20]
        result = engine.query("print " + ", ".join(f"x{place} = {one[0]}" for place, one in enumerate(some)), now=NOW)
        for (expression, kind, value), (_, type_), got in zip(some, result.columns, result.rows[0], strict=True):
            with subtests.test(expression):
                assert str(type_) == kind
                assert same(cell(type_, got), value), got


def test_there_are_enough_of_them() -> None:
    assert len({expression for expression, _, _ in STATEMENTS}) == len(STATEMENTS) >= 400
