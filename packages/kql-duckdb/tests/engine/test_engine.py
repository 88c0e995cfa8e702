"""The engine and its command over real connections and files."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from kql_duckdb import Engine, KnownTables, KqlError, Table, check, kql
from kql_duckdb.cli import functions_page, main
from kql_duckdb.functions import definitions
from kql_duckdb.types import KustoType

CSV = "host,level,n\nweb,error,1\nweb,info,2\ndb,error,3\n"


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "kql_duckdb", *arguments], capture_output=True, text=True, check=False)


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "events.csv"
    path.write_text(CSV)
    return path


def test_the_command_answers_over_files(events: Path, tmp_path: Path) -> None:
    other = tmp_path / "people.jsonl"
    other.write_text('{"host": "web", "owner": {"name": "Ann"}}\n')
    query = (
        "events | where level == 'error' | join kind=inner owners on host | project host, n, who = tostring(owner.name)"
    )
    answer = command("--format", "json", query, str(events), f"{other}=owners")
    assert answer.stderr == ""
    assert [json.loads(line) for line in answer.stdout.splitlines()] == [{"host": "web", "n": 1, "who": "Ann"}]


def test_the_command_prints_a_table_and_csv(events: Path) -> None:
    query = "events | summarize n = sum(n) by host | sort by host asc"
    assert command(query, str(events)).stdout == "host  n\n----  -\ndb    3\nweb   3\n"
    assert command("--format", "csv", query, str(events)).stdout == "host,n\ndb,3\nweb,3\n"


def test_the_command_explains(events: Path) -> None:
    shown = command("--explain", "events | where n > 1 | count", str(events)).stdout
    assert "Select (host: string, level: string, n: long) WHERE" in shown
    assert 'SELECT "Count"' in shown


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("T | take 1",), 1, "SEM0100"),
        (("print x = ",), 1, "line 1, column 11"),
        (("print 1", "nowhere.csv"), 2, "there is no file nowhere.csv"),
        (("print 1", __file__), 2, "is none of .csv"),
        ((), 2, "a query is missing"),
    ],
)
def test_the_command_tells_what_is_wrong(arguments: tuple[str, ...], code: int, words: str) -> None:
    answer = command(*arguments)
    assert (answer.returncode, answer.stdout) == (code, "")
    assert words in answer.stderr
    assert "Traceback" not in answer.stderr


def test_the_page_of_functions_is_the_registry(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--functions"]) == 0
    page = Path(__file__).parents[2] / "FUNCTIONS.md"
    assert capsys.readouterr().out == functions_page() == page.read_text("utf-8")


def test_columns_of_any_duckdb_type_have_a_type_of_kusto() -> None:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(
        "CREATE TABLE T AS SELECT 1::UTINYINT AS a, [1, 2] AS b, {'x': 1} AS c, DATE '2024-01-01' AS d, "
        "TIMESTAMPTZ '2024-01-01 01:00:00+01' AS e, NULL::VARCHAR AS f, 1.5::FLOAT AS g"
    )
    result = kql(connection).query("T | extend x = tolong(c.x), isempty(f), b = b[1]")
    assert [kind.value for _, kind in result.columns] == (
        ["int", "dynamic", "dynamic", "datetime", "datetime", "string", "real", "long", "bool"]
    )
    assert result.rows == [(1, "2", '{"x":1}', datetime(2024, 1, 1), datetime(2024, 1, 1), "", 1.5, 1, True)]


def test_a_time_range_bounds_every_table_that_is_read() -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE T AS SELECT TIMESTAMP '2024-01-01' + to_days(i::INTEGER) AS TimeGenerated FROM range(10) t(i)"
    )
    bounds = (datetime(2024, 1, 3, tzinfo=UTC), datetime(2024, 1, 6, tzinfo=UTC))
    text = "let a = T; union a, (T | where true) | count"
    assert kql(connection).query(text, timespan=bounds).rows == [(6,)]
    assert kql(connection).query(text, timespan=(bounds[0], None)).rows == [(16,)]


def test_a_catalog_decides_which_tables_there_are() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE secret AS SELECT 1 AS a")
    engine = Engine(connection, catalog=KnownTables([Table("Shown", {"a": KustoType.LONG}, sql='"secret"')]))
    assert engine.query("Shown | project b = a").rows == [(1,)]
    for text in ("secret | count", "union * | where b == 1", "table('secret')"):
        with pytest.raises(KqlError, match="SEM0100"):
            engine.query(text)


def test_results_of_one_connection_do_not_disturb_each_other() -> None:
    engine = kql(duckdb.connect())
    first, second = engine.query("range x from 1 to 3 step 1"), engine.query("print 'y'")
    assert (first.rows, second.rows) == ([(1,), (2,), (3,)], [("y",)])


def test_a_text_is_checked_without_rows() -> None:
    schema = {"T": {"a": "long", "d": "dynamic"}}
    assert check("T | where a > 1 | evaluate bag_unpack(d) : (*, x:long)", schema) == []
    assert [error.code for error in check("T | whre a | take", schema)] == ["SYN0002", "SYN0002"]
    assert [error.code for error in check("T | where b > 1", schema)] == ["SEM0100"]


def test_what_rows_refuse_is_told_in_words_of_kql() -> None:
    with pytest.raises(KqlError) as refusal:
        kql(duckdb.connect()).query("range x from 1 to 3 step 1 | summarize sum(x * 9223372036854775807)")
    assert refusal.value.code == "KDB0002"
    assert "INT" not in refusal.value.message


@pytest.mark.parametrize("depth", [2, 20])
def test_nested_json_grows_with_the_text(depth: int) -> None:
    engine = kql(duckdb.connect())
    value = "Data"
    for level in range(depth):
        value = f"parse_json(tostring({value}[0].p{level}))"
    text = f"print Data = dynamic([1]) | extend a = {value} | where isnull(a) | project a"
    sql = engine.translate(text).sql
    assert len(sql) < 2_000 + 400 * depth
    assert engine.query(text).rows == [(None,)]


def test_a_let_that_is_read_twice_is_written_once() -> None:
    chain = "let a0 = print x = 1;" + "".join(f"let a{n + 1} = union a{n}, a{n};" for n in range(20))
    engine = kql(duckdb.connect())
    assert len(engine.translate(f"{chain} a20 | count").sql) < 9_000
    assert engine.query(f"{chain} a20 | count").rows == [(1_048_576,)]


def test_definitions_are_known_to_every_query() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE Raw AS SELECT 'A@x' AS User, 1::BIGINT AS Code")
    definitions = (
        "let _fail = (code:long) { code != 0 };"
        "let imLogin = (least:long = 0) { Raw | where Code >= least | project Name = tolower(User), Failed = _fail(Code) };"
    )
    engine = kql(connection, definitions=definitions)
    assert engine.query("imLogin | where Failed").rows == [("a@x", True)]
    assert engine.query("imLogin(least = 2) | count").rows == [(0,)]
    assert engine.query("let imLogin = print Name = 'mine'; imLogin | project Name").rows == [("mine",)]
    with pytest.raises(KqlError, match="let statements"):
        kql(connection, definitions="Raw | take 1")
    with pytest.raises(KqlError) as refusal:
        kql(connection, definitions="let f = () { Nope | take 1 };").query("\n f() | count")
    assert (refusal.value.code, refusal.value.line, refusal.value.column) == ("SEM0100", 2, 2)


def test_a_wide_union_fills_what_an_input_lacks() -> None:
    connection = duckdb.connect()
    for place in range(10):
        columns = ", ".join(f"'v' AS c{place}_{number}, {number} AS n{place}_{number}" for number in range(40))
        connection.execute(f"CREATE TABLE T{place:02} AS SELECT {place}::BIGINT AS n, 'x' AS Name, {columns}")
    result = kql(connection).query("union withsource=From T* | where n == 3")
    names = [name for name, _ in result.columns]
    assert names[:5] == ["From", "n", "Name", "c0_0", "n0_0"]
    assert len(names) == 3 + 10 * 80
    row = dict(zip(names, result.rows[0], strict=True))
    assert (row["From"], row["Name"], row["c3_7"], row["n3_7"]) == ("T03", "x", "v", 7)
    assert (row["c4_7"], row["n4_7"]) == ("", None)


def test_no_row_of_a_function_hides_a_later_one() -> None:
    every = [*definitions.SCALARS.values(), *definitions.AGGREGATES.values()]
    for function in every:
        rows = (function, *function.others)
        for place, later in enumerate(rows):
            assert not any(_covers(earlier, later) for earlier in rows[:place]), (function.name, later.parameters)


def _covers(earlier: definitions.Function, later: definitions.Function) -> bool:
    """Whether every call that `later` takes is taken by `earlier`."""
    least = sum(not one.optional for one in later.parameters)
    most = len(later.parameters) + 3 * later.open_ended
    fits = least >= sum(not one.optional for one in earlier.parameters)
    fits = fits and (earlier.open_ended or most <= len(earlier.parameters))
    kinds = zip(earlier.parameters, later.parameters, strict=False)
    return fits and all(_types(one.kind) >= _types(two.kind) for one, two in kinds)


def _types(kind: str) -> frozenset[KustoType]:
    taken = definitions.ARGUMENT_KINDS[kind].taken
    return frozenset(KustoType) if taken is None else taken
