"""KQL against the same question as hand-written SQL over a million rows, and what a translation costs.

    python packages/kql-duckdb/bench/bench.py [--rows N] [--write FILE]

Prints JSON: milliseconds of both (the better of a few runs each, taken in turn) and their ratio; the median of the
translations; the time of nested `parse_json(tostring(...))` by depth, which grows with the text and no faster.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import duckdb

from kql_duckdb import Engine, kql

QUERIES: dict[str, tuple[str, str]] = {
    "has": (
        "Events | where Command has 'mimikatz' | count",
        "SELECT count(*) FROM Events WHERE Command ILIKE '%mimikatz%' "
        "AND regexp_matches(Command, '(?i)(^|[^\\pL\\pN])mimikatz($|[^\\pL\\pN])')",
    ),
    "contains": (
        "Events | where Command contains 'katz' | count",
        "SELECT count(*) FROM Events WHERE Command ILIKE '%katz%'",
    ),
    "has_any": (
        "Events | where Command has_any ('mimikatz', 'comsvcs') | count",
        "SELECT count(*) FROM Events WHERE "
        "regexp_matches(Command, '(?i)(^|[^\\pL\\pN])(mimikatz|comsvcs)($|[^\\pL\\pN])')",
    ),
    "has_cs": (
        "Events | where Command has_cs 'mimikatz' | count",
        "SELECT count(*) FROM Events WHERE contains(Command, 'mimikatz') "
        "AND regexp_matches(Command, '(^|[^\\pL\\pN])mimikatz($|[^\\pL\\pN])')",
    ),
    "hasprefix": (
        "Events | where Command hasprefix 'mimi' | count",
        "SELECT count(*) FROM Events WHERE Command ILIKE '%mimi%' "
        "AND regexp_matches(Command, '(?i)(^|[^\\pL\\pN])mimi')",
    ),
    "startswith": (
        "Events | where Command startswith 'c:\\\\temp' | count",
        "SELECT count(*) FROM Events WHERE Command ILIKE 'c:\\temp%'",
    ),
    "in~": (
        "Events | where File in~ ('CMD.exe', 'powershell.EXE') | count",
        "SELECT count(*) FROM Events WHERE lower(File) IN ('cmd.exe', 'powershell.exe')",
    ),
    "summarize": (
        "Events | summarize count(), dcount(Account) by Device | top 10 by count_",
        "SELECT Device, count(*) AS n, count(DISTINCT Account) FROM Events GROUP BY Device ORDER BY n DESC LIMIT 10",
    ),
    "bin": (
        "Events | where TimeGenerated >= datetime(2024-01-05) | summarize count() by bin(TimeGenerated, 1h)",
        "SELECT time_bucket(INTERVAL 1 HOUR, TimeGenerated) AS h, count(*) FROM Events "
        "WHERE TimeGenerated >= TIMESTAMP '2024-01-05' GROUP BY h",
    ),
    "join": (
        "Events | where File == 'cmd.exe' | join kind=inner (People | project Account, Department) on Account "
        "| summarize count() by Department",
        "SELECT Department, count(*) FROM Events JOIN People USING (Account) "
        "WHERE File = 'cmd.exe' GROUP BY Department",
    ),
    "make_set": (
        "Events | summarize s = make_set(Account) by File | project n = array_length(s)",
        "SELECT len(list(DISTINCT Account)) FROM Events GROUP BY File",
    ),
    "arg_max": (
        "Events | summarize arg_max(TimeGenerated, Command) by Device",
        "SELECT Device, max(TimeGenerated), arg_max(Command, TimeGenerated) FROM Events GROUP BY Device",
    ),
}

FILL = """
    CREATE TABLE Events AS SELECT TIMESTAMP '2024-01-01' + to_milliseconds(CAST(i * 700 AS BIGINT)) AS TimeGenerated,
           'wks-' || (hash(i) % 2000) AS Device, 'user' || (hash(i, 1) % 3000) AS Account,
           ['cmd.exe', 'powershell.exe', 'git.exe', 'svchost.exe'][CAST(hash(i, 2) % 4 AS INTEGER) + 1] AS File,
           CASE WHEN i % 5000 = 0 THEN 'C:\\Temp\\mimikatz.exe sekurlsa::logonpasswords'
                ELSE 'C:\\Windows\\System32\\cmd.exe /c start ' || (hash(i, 3) % 100000) || ' --flag=value'
           END AS Command
    FROM range({rows}) AS t(i)
"""
PEOPLE = """
    CREATE TABLE People AS SELECT 'user' || i AS Account, 'dep' || (i % 12) AS Department FROM range(3000) AS t(i)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--write", type=Path, help="write the result to this file too")
    chosen = parser.parse_args()
    connection = duckdb.connect()
    connection.execute(FILL.format(rows=chosen.rows))
    connection.execute(PEOPLE)
    engine = kql(connection)
    measured: dict[str, Any] = {"rows": chosen.rows, "queries": {}}
    for name, (text, sql) in QUERIES.items():
        measured["queries"][name] = _compared(connection, engine, text, sql, chosen.runs)
    measured["translate_ms_median"] = _translations(engine)
    measured["nested_parse_json_ms"] = {depth: _nested(engine, depth) for depth in (1, 2, 4, 8, 16)}
    shown = json.dumps(measured, indent=2)
    print(shown)
    if chosen.write is not None:
        chosen.write.write_text(shown + "\n", "utf-8")


def _compared(
    connection: duckdb.DuckDBPyConnection, engine: Engine, text: str, sql: str, runs: int
) -> dict[str, float]:
    """Milliseconds of both, the translation not counted."""
    translated = engine.translate(text).sql
    best = {"kql": float("inf"), "sql": float("inf")}
    for _ in range(runs):
        for kind, statement in (("kql", translated), ("sql", sql)):
            started = perf_counter()
            connection.execute(statement).fetchall()
            best[kind] = min(best[kind], (perf_counter() - started) * 1e3)
    return {
        "kql_ms": round(best["kql"], 1),
        "sql_ms": round(best["sql"], 1),
        "ratio": round(best["kql"] / best["sql"], 2),
    }


def _translations(engine: Engine) -> float:
    spent = []
    for _ in range(5):
        for text, _sql in QUERIES.values():
            started = perf_counter()
            engine.translate(text)
            spent.append((perf_counter() - started) * 1e3)
    return round(median(spent), 2)


def _nested(engine: Engine, depth: int) -> float:
    value = "Data"
    for level in range(depth):
        value = f"parse_json(tostring({value}[0].p{level}))"
    text = f'print Data = dynamic([{{"p0":"[{{}}]"}}]) | project X = {value}'
    started = perf_counter()
    assert engine.query(text).rows
    return round((perf_counter() - started) * 1e3, 2)


if __name__ == "__main__":
    main()
