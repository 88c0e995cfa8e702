"""The command `kql`: a query over files, or over a DuckDB database.

    kql 'events | where level == "error" | summarize count() by host' events.parquet
    kql --explain '...' logs.csv=Logs

Each file becomes a view named as the file is, or as `FILE=NAME` says.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any

import duckdb

from kql_duckdb.engine import Engine, Result
from kql_duckdb.errors import KqlError
from kql_duckdb.expressions import microseconds, quote_name, quote_text
from kql_duckdb.functions import registry
from kql_duckdb.time_texts import timespan_text
from kql_duckdb.types import DYNAMIC

_READERS = {
    ".parquet": "read_parquet",
    **dict.fromkeys((".csv", ".tsv"), "read_csv"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "read_json"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 if the query ran, 1 if it was refused, 2 if it was called wrongly."""
    parser = argparse.ArgumentParser(prog="kql", description="Run a query in the Kusto Query Language over files.")
    parser.add_argument("query", nargs="?", help="the text of the query, or @FILE to read it from a file")
    parser.add_argument("files", nargs="*", metavar="FILE[=NAME]", help="parquet, csv, tsv, json or jsonl")
    parser.add_argument("--database", type=Path, help="a DuckDB database, opened for reading")
    parser.add_argument("--definitions", type=Path, help="a file of let statements that the query may read")
    parser.add_argument("--format", choices=("table", "csv", "json"), default="table")
    parser.add_argument("--explain", action="store_true", help="print the algebra and the SQL instead of rows")
    parser.add_argument("--functions", action="store_true", help="print every function and what becomes of it")
    chosen = parser.parse_args(arguments)
    if chosen.functions:
        sys.stdout.write(functions_page())
        return 0
    if chosen.query is None:
        parser.error("a query is missing")
    try:
        text = Path(chosen.query[1:]).read_text("utf-8") if chosen.query.startswith("@") else chosen.query
        definitions = chosen.definitions.read_text("utf-8") if chosen.definitions is not None else ""
        connection = _opened(chosen.database, chosen.files)
    except (OSError, ValueError) as error:
        print(f"kql: {error}", file=sys.stderr)
        return 2
    try:
        engine = Engine(connection, definitions=definitions)
        if chosen.explain:
            print(engine.explain(text))
        else:
            _write(engine.query(text), chosen.format, sys.stdout)
    except KqlError as error:
        print(f"kql: {error}", file=sys.stderr)
        return 1
    return 0


def functions_page() -> str:
    """Every operator and function as a table in Markdown."""
    lines = "# Functions of KQL\n\nMade by `kql --functions`.\n\n| name | kind | status | how |\n|---|---|---|---|\n"
    for name, *others in registry.table():
        lines += "| " + " | ".join(cell.replace("|", "\\|") for cell in (f"`{name}`", *others)) + " |\n"
    return lines


def _opened(database: Path | None, files: Sequence[str]) -> duckdb.DuckDBPyConnection:
    """A connection with a view for each file. Raises OSError or ValueError."""
    try:
        connection = duckdb.connect(str(database), read_only=True) if database is not None else duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        for one in files:
            place, _, name = one.rpartition("=") if "=" in one else (one, "", "")
            path = Path(place)
            if not path.is_file():
                raise ValueError(f"there is no file {place}")
            reader = _READERS.get(path.suffix.lower())
            if reader is None:
                raise ValueError(f"{path.name} is none of {', '.join(sorted(_READERS))}")
            view = quote_name(name or path.stem)
            connection.execute(f"CREATE TEMP VIEW {view} AS FROM {reader}({quote_text(str(path))})")
    except duckdb.Error as error:
        raise ValueError(str(error).splitlines()[0]) from error
    return connection


def _write(result: Result, form: str, out: IO[str]) -> None:
    if form == "json":
        for row in result.rows:
            typed = zip(result.columns, row, strict=True)
            cells = {name: json.loads(cell or "null") if kind is DYNAMIC else cell for (name, kind), cell in typed}
            out.write(json.dumps(cells, ensure_ascii=False, default=_shown) + "\n")
        return
    names = [name for name, _ in result.columns]
    lines = [[_shown(cell) for cell in row] for row in result.rows]
    if form == "csv":
        csv.writer(out, lineterminator="\n").writerows([names, *lines])
        return
    widths = [max(len(name), *(len(line[place]) for line in lines), 0) for place, name in enumerate(names)]
    for line in [names, ["-" * width for width in widths], *lines]:
        out.write("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() + "\n")


def _shown(cell: Any) -> str:
    """A cell as Kusto writes it."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, datetime):
        return cell.isoformat(timespec="microseconds") + "0Z" if cell.microsecond else cell.isoformat() + "Z"
    if isinstance(cell, timedelta):
        return timespan_text(microseconds(cell) * 10)
    return str(cell)
