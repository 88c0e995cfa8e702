"""Aggregates, window functions and operators over rows, through the engine: names, types and values.

`queries.jsonl` holds a query a line, the names and types of its columns, and its rows as cells that Azure's API writes.
"""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from evaluation import cell

from kql_duckdb.engine import Engine, kql
from kql_duckdb.errors import KqlError
from kql_duckdb.functions import registry

_LINES = (Path(__file__).parent / "queries.jsonl").read_text(encoding="utf-8").splitlines()
QUERIES: list[tuple[str, str, list[list[Any]]]] = [tuple(json.loads(line)) for line in _LINES]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    opened = duckdb.connect()
    yield kql(opened)
    opened.close()


def rows_of(engine: Engine, query: str) -> list[list[Any]]:
    result = engine.query(query)
    return [[cell(kind, value) for (_, kind), value in zip(result.columns, row, strict=True)] for row in result.rows]


def close(found: Any, expected: Any) -> bool:
    if isinstance(found, float) and isinstance(expected, (int, float)):
        return math.isclose(found, expected, rel_tol=1e-9)
    return bool(found == expected)


@pytest.mark.parametrize(("query", "shape", "rows"), QUERIES)
def test_a_query_answers_as_kusto_does(engine: Engine, query: str, shape: str, rows: list[list[Any]]) -> None:
    result = engine.query(query)
    assert " ".join(f"{name}:{kind}" for name, kind in result.columns) == shape
    found = rows_of(engine, query)
    assert len(found) == len(rows)
    for row, expected in zip(found, rows, strict=True):
        assert all(map(close, row, expected)), found


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("print strlen(5)", "must be a string, not long"),
        ("print strlen()", "expects 1 argument"),
        ("print substring('a')", "expects 2 to 3 argument"),
        (
            "print around(1, now(), 1h)",
            "takes (timespan, timespan, timespan) or (datetime, datetime, timespan) or (real,",
        ),
        ("print startofday('2024-01-01')", "must be a datetime, not string"),
        ("print 'a' > 1", "cannot be used between string and long"),
        ("print datetime(2024-01-01) + datetime(2024-01-01)", "cannot be used between datetime and datetime"),
        ("print dynamic({'a':1}).a + 1", "convert it first with tolong()"),
        ("print 1h * 2h", "cannot be used between timespan and timespan"),
        ("print bin('a', 1h)", "has no bins"),
        ("print iff(true, 1, 'a')", "must have the same type"),
        ("print case(true, 1)", "expects at least 3"),
        ("print extract('(?<=a)b', 0, 'ab')", "look-around"),
        ("print extract_all('ab', 'ab')", "capture groups"),
        ("print extract_all('(a)', dynamic(['x']), 'ab')", "no capture group 'x'"),
        ("print format_datetime(datetime(2024-01-01), 'yyyyTMM')", "'T' is no element"),
        ("print datetime_add('fortnight', 1, datetime(2024-01-01))", "'fortnight' is none of"),
        ("print datetime_part('nanosecond', datetime(2024-01-01))", "microseconds"),
        ("print datetime_utc_to_local(datetime(2024-01-01), 'Mars/Olympus')", "is no time zone"),
        ("print parse_command_line('a', 'posix')", "windows"),
        ("print tolwer('A')", "Did you mean tolower"),
        ("print series_fit_2lines(dynamic([1,2,3]))", "series_fit_2lines"),
        ("print tdigest(1)", "tdigest"),
        ("range x from 1 to 2 step 1 | extend p = prev(x) | summarize max(p) | extend q = prev(max_p)", "serialized"),
        ("range x from 1 to 2 step 1 | extend d = dynamic({}) | summarize max(d)", "a dynamic has no order"),
        ("range x from 1 to 2 step 1 | summarize percentile(x, x)", "constant"),
        ("range x from 1 to 2 step 1 | summarize percentiles(x, 5, 'a')", "constant"),
        ("range x from 1 to 2 step 1 | summarize percentile(x, real(null))", "constant"),
        ("range x from 1 to 2 step 1 | summarize percentiles(x, dynamic(['a', 5]))", "constant"),
        ("print geo_distance_2points(1, 1, 2, 2, true)", "use_spheroid"),
        ("print assert(false, 'never')", "never"),
    ],
)
def test_what_is_not_computed_is_told_in_words_of_kql(engine: Engine, query: str, message: str) -> None:
    with pytest.raises(KqlError) as refusal:
        engine.query(query)
    assert message in str(refusal.value)
    assert refusal.value.line is not None


def test_user_agents_are_read_with_the_tables_of_uap_core_and_refused_without(engine: Engine) -> None:
    query = """print parse_user_agent("Mozilla/5.0 (Windows; U; en-US) AppleWebKit/531.9 (KHTML, like Gecko) AdobeAIR/2.5.1",
        "browser")"""
    if importlib.util.find_spec("ua_parser") is None:
        with pytest.raises(KqlError, match="user-agents"):
            engine.query(query)
        return
    family = {"Family": "AdobeAIR", "MajorVersion": "2", "MinorVersion": "5", "Patch": "1"}
    assert json.loads(rows_of(engine, query)[0][0]) == {"Browser": family}


def test_every_function_is_in_one_table_with_what_the_engine_does_with_it() -> None:
    rows = list(registry.table())
    assert {status for _, _, status, _ in rows} == {"exact", "partly", "refused"}
    assert all(note for _, _, status, note in rows if status != "exact")
    assert len({(name, kind) for name, kind, _, _ in rows}) == len(rows)
    for name, kind, status, _ in rows:
        if status == "refused" and kind == "scalar":
            assert registry.scalar(name) is None, name
            assert name in str(registry.unknown(name))


def test_named_arguments_stand_in_any_place(engine: Engine) -> None:
    assert rows_of(engine, "print substring(string='abcdef', length=2, start=1)") == [["bc"]]


@pytest.mark.parametrize("depth", [1, 4, 12])
def test_nested_parse_json_grows_with_its_text_alone(engine: Engine, depth: int) -> None:
    """The usual pattern of queries that the portal makes: SQL and answer stay linear in the depth."""
    expression = "tostring(s)"
    for level in range(depth):
        expression = f"tostring(parse_json({expression})[0].p{level})"
    query = f"datatable(s:string)['[]'] | project x = parse_json({expression})"
    assert len(engine.translate(query).sql) < 400 + 20 * len(query)
    assert rows_of(engine, query) == [[None]]


@pytest.mark.parametrize(
    "expression", ["tolong", "tobool", "todatetime", "abs", "substring2", "trim2", "ipv4_is_private", "parse_json"]
)
def test_sql_is_linear_in_the_nesting_of_any_function(engine: Engine, expression: str) -> None:
    """An argument that a template reads several times is not written several times, however deep it stands."""
    shapes = {"substring2": "substring({}, -3)", "trim2": "trim('x+', {})"}
    shape = shapes.get(
        expression, f"tostring({expression}({{}}))" if expression != "abs" else "tostring(abs(tolong({})))"
    )
    lengths = []
    for depth in (3, 6, 12):
        nested = "s"
        for _ in range(depth):
            nested = shape.format(nested)
        lengths.append(len(engine.translate(f"datatable(s:string)['1'] | project x = {nested}").sql))
    assert lengths[2] - lengths[1] <= 2.5 * (lengths[1] - lengths[0])


@pytest.mark.parametrize(
    ("condition", "kept"),
    [("x == 1", [1]), ("x != 1", [2, None]), ("x in (1, 3)", [1]), ("x !in (1, 3)", [2, None]), ("1 == x", [1])],
)
def test_equality_with_a_constant_is_total_and_lets_duckdb_skip(
    engine: Engine, condition: str, kept: list[int | None]
) -> None:
    query = f"datatable(x:long)[1, 2, long(null)] | where {condition}"
    assert [row[0] for row in engine.query(query).rows] == kept
    assert "coalesce" not in engine.translate(query).sql.partition("WHERE")[2]
