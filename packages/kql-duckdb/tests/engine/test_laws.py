"""Laws: whatever the text, translation ends in SQL that DuckDB reads or in an error of this package, and grows linearly."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kql_duckdb import Engine, KnownTables, KqlError
from kql_duckdb.syntax.lexer import Source

sys.path.insert(0, str(Path(__file__).parents[1] / "syntax"))
from texts import TEXTS

SCHEMA = {
    table: {"a": "long", "b": "string", "c": "dynamic", "d": "real", "x": "long", "y": "string", "z": "bool", "msg": "string",
            "TimeGenerated": "datetime", "T": "datetime"}
    for table in ("T", "U", "A", "B")
}  # fmt: skip
WORDS = sorted({token.text for text in TEXTS for token in Source(text).tokens if token.text})


@pytest.fixture(scope="module")
def engine() -> Engine:
    connection = duckdb.connect()
    for table, columns in SCHEMA.items():
        held = {
            "long": "BIGINT",
            "string": "VARCHAR",
            "dynamic": "JSON",
            "real": "DOUBLE",
            "bool": "BOOLEAN",
            "datetime": "TIMESTAMP",
        }
        connection.execute(
            f"CREATE TABLE {table} ({', '.join(f'{name} {held[kind]}' for name, kind in columns.items())})"
        )
    return Engine(connection, catalog=KnownTables.of_schema(SCHEMA))


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A text of KQL in which some tokens are left out, doubled or exchanged."""
    tokens = [token.text for token in Source(draw(st.sampled_from(TEXTS))).tokens]
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, max(0, len(tokens) - 1)))
        change = draw(st.sampled_from(("drop", "double", "exchange")))
        if not tokens:
            break
        if change == "drop":
            del tokens[place]
        elif change == "double":
            tokens.insert(place, tokens[place])
        else:
            tokens[place] = draw(st.sampled_from(WORDS))
    return " ".join(tokens)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damaged())
def test_a_text_is_translated_or_refused(engine: Engine, text: str) -> None:
    refused: list[str] = []
    rows: list[tuple[object, ...]] = []
    try:
        rows = engine.query(text).rows
    except KqlError as refusal:
        refused = [refusal.message, refusal.code]
    assert all(refused)
    assert isinstance(rows, list)


PIPES = ("where a > 1 and b has 'x'", "extend n{0} = strcat(b, 'x')", "summarize a = max(a) by b, c = tostring(c), x, y",
         "extend c = parse_json(tostring(parse_json(tostring(c)).p))", "mv-expand c", "join kind=leftouter (U | project b) on b | project-away b1",
         "sort by a asc | extend n{0} = prev(a)", "union (T | take 1)", "parse msg with * 'a' q{0} 'b' *")  # fmt: skip


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from([pipe for pipe in PIPES if "summarize" not in pipe]))
def test_the_sql_grows_as_the_text_does(engine: Engine, pipe: str) -> None:
    def length(count: int) -> int:
        steps = " | ".join(pipe.format(place) for place in range(count))
        return len(engine.translate(f"T | {steps}").sql)

    once, twice, four = length(3), length(6), length(12)
    assert four - twice <= 2.6 * (twice - once) + 200
