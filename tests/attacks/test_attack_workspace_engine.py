"""The attacker controls the KQL text and wants what lies outside the tables: files, the catalogue, the network, writes.

Each form must be refused with an error that says nothing about the file, and nothing may change in the store. There
is no audit record here: this engine stands behind the gateway, which has recorded the call already.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from sentinel_rag.workspace.queries import KqlError, check_sql
from sentinel_rag.workspace.store import Store
from sentinel_rag.workspace.table_schemas import known_tables
from sentinel_rag.workspace.workspace import Workspace

SECRET = "the-secret-that-must-not-appear"


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Workspace, Path]]:
    """One for all: each test ends with the tables as they were."""
    tmp_path = tmp_path_factory.mktemp("victim")
    secret = tmp_path / "secret.csv"
    secret.write_text(f"a,b\n{SECRET},1\n")
    export = tmp_path / "x.csv"
    export.write_text("TimeGenerated,Computer\n2024-01-01T00:00:00Z,srv\n")
    workspace = Workspace.open(tmp_path / "workspace")
    workspace.import_path(export, table="Syslog")
    yield workspace, secret
    workspace.close()


FORMS = [
    "['{file}'] | take 5",
    '["{file}"]',
    "Syslog | union ['{file}']",
    "Syslog | join kind=inner (['{file}']) on $left.Computer == $right.a",
    "Syslog | lookup (['{file}'] | project Computer=a, b) on Computer",
    "Syslog | where Computer in ((['{file}'] | project a))",
    "print x = toscalar(['{file}'] | project a)",
    "let t = ['{file}']; t | take 1",
    "let f = () {{ ['{file}'] | take 1 }}; f()",
    "union isfuzzy=true Syslog, ['{file}'] | project a",
    "table('{file}') | take 1",
    "database('{file}').Syslog",
    "database('memory').['{file}']",
    "cluster('x').database('y').Syslog",
    "external_table('{file}')",
    "externaldata(a: string) ['{file}'] with (format='csv')",
    "externaldata(a: string) [@'http://203.0.113.66/x.csv']",
    "duckdb_tables | take 5",
    "duckdb_tables()",
    "duckdb_settings() | take 1",
    "information_schema.tables",
    "['information_schema.tables']",
    "['sentinel.imports'] | take 1",
    "sentinel.rejects | take 1",
    "pg_catalog | take 1",
    "sqlite_master | take 1",
    "['Syslog\" UNION SELECT * FROM read_text(''{file}'') --']",
    "Syslog | extend x = read_text('{file}')",
    'Syslog | project [\'x" , (SELECT content FROM read_text("{file}")) AS y --\']',
    "print getenv('HOME')",
    ".show tables",
    "// comment\n.show tables",
    ".set-or-replace Stolen <| Syslog",
    ".drop table Syslog",
    ".create database x",
    ".ingest into table Syslog ('{file}')",
    "Syslog | evaluate http_request('http://203.0.113.66/')",
    "Syslog | evaluate python(typeof(*), 'import os')",
    "evaluate sql_request('Server=x', 'select 1')",
    "Syslog | invoke database('x').f()",
    "Syslog; .drop table Syslog",
    "restrict access to (Syslog); Syslog",
    "alias database x = cluster('y').database('z'); Syslog",
    "set truncationmaxrecords = 1; ['{file}']",
    "let duckdb_tables = (let duckdb_settings = Syslog; duckdb_settings); duckdb_settings | take 1",
    "Syslog | join (let t = Syslog; t) on Computer | union t",
]


@pytest.mark.parametrize("form", FORMS)
def test_nothing_outside_the_tables_is_read(victim: tuple[Workspace, Path], form: str) -> None:
    workspace, secret = victim
    kql = form.format(file=secret)
    with pytest.raises(KqlError) as refusal:
        workspace.query(kql)
    assert SECRET not in str(refusal.value)
    assert workspace.query("Syslog | project Computer").rows == [("srv",)]
    assert [table.name for table in workspace.tables()] == ["Syslog"]


@pytest.mark.parametrize("form", ["union * | take 50", "union S* | take 50", "search 'srv' | take 50"])
def test_a_pattern_reads_the_tables_of_the_workspace_and_nothing_beside_them(
    victim: tuple[Workspace, Path], form: str
) -> None:
    workspace, _ = victim
    answer = workspace.query(form)
    assert set(answer.tables) <= set(known_tables())
    assert len(answer.rows) == 1
    assert SECRET not in repr(answer.rows)


HOSTILE_SQL = [
    "SELECT * FROM '{file}'",
    "SELECT * FROM read_csv('{file}')",
    "SELECT content FROM read_text('{file}')",
    "SELECT * FROM glob('/etc/*')",
    "COPY (SELECT 1) TO '{file}.out'",
    "ATTACH '{file}.db'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "RESET enable_external_access",
    "PRAGMA enable_external_access = true",
    "SELECT * FROM read_csv('{file}', allow_quoted_nulls = true)",
]


@pytest.mark.parametrize("sql", HOSTILE_SQL)
def test_even_sql_of_the_attacker_reaches_no_file_and_no_setting(tmp_path: Path, sql: str) -> None:
    """The second wall: should a translation ever emit hostile SQL, the database itself refuses."""
    secret = tmp_path / "secret.csv"
    secret.write_text(f"a\n{SECRET}\n")
    store = Store.open(tmp_path / "workspace")
    try:
        with store.cursor() as cursor, pytest.raises(duckdb.Error):
            cursor.execute(sql.format(file=secret)).fetchall()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["secret.csv", "workspace"]
    finally:
        store.close()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM duckdb_tables",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM main.Syslog",
        "SELECT * FROM sentinel.imports",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM read_csv('x')",
        "WITH a AS (SELECT * FROM Heartbeat) SELECT * FROM a",
        "SELECT 1; SELECT 2",
        "DELETE FROM Syslog",
        "DROP TABLE Syslog",
    ],
)
def test_the_check_of_the_sql_refuses_what_the_translation_did_not_name(tmp_path: Path, sql: str) -> None:
    store = Store.open(tmp_path)
    try:
        with store.cursor() as cursor, pytest.raises(KqlError):
            check_sql(cursor, sql, {"Syslog"})
    finally:
        store.close()


def test_values_of_the_attacker_stay_values(victim: tuple[Workspace, Path]) -> None:
    workspace, secret = victim
    for value in (
        "x' OR 1=1 --",
        "O'Brien",
        'St. John"s',
        "a\\",
        "$window_start",
        "{0}",
        "%",
        f"'); SELECT * FROM read_text('{secret}') --",
    ):
        literal = value.replace("\\", "\\\\").replace('"', '\\"')
        answer = workspace.query(f'print v = "{literal}"')
        assert answer.rows == [(value,)]
        assert workspace.query(f'Syslog | where Computer == "{literal}" | count').rows == [(0,)]
        assert workspace.query(f'Syslog | where Computer has "{literal}" | count').rows == [(0,)]


@pytest.mark.parametrize(
    "kql",
    [
        "print " + "(" * 3000 + "1" + ")" * 3000,
        "print " + "not(" * 500 + "true" + ")" * 500,
        "Syslog" + " | where true" * 5000,
        "print '" + "a" * 200_000 + "'",
        "",
        "   \n\t",
        "\x00",
        "\ud800",
        "Syslog | where Computer matches regex '(a+)+$'",
    ],
)
def test_monstrous_texts_end_in_an_answer_or_a_refusal(victim: tuple[Workspace, Path], kql: str) -> None:
    workspace, _ = victim
    with contextlib.suppress(KqlError):
        workspace.query(kql, timeout_s=20)
    assert workspace.query("Syslog | count").rows == [(1,)]
