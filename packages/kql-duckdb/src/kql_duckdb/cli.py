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
from typing import IO, TYPE_CHECKING, Any

from kql_duckdb.engine import Engine, Result
from kql_duckdb.errors import KqlError
from kql_duckdb.expressions import quote_name, quote_text
from kql_duckdb.functions import registry
from kql_duckdb.syntax.expression_parser import timespan_text
from kql_duckdb.types import KustoType

if TYPE_CHECKING:
    import duckdb

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
    lines = [
        "# Functions of KQL",
        "",
        "Made by `kql --functions`.",
        "",
        "| name | kind | status | how |",
        "|---|---|---|---|",
    ]
    for name, kind, status, note in registry.table():
        cells = (f"`{name}`", kind, status, note)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _opened(database: Path | None, files: Sequence[str]) -> duckdb.DuckDBPyConnection:
    """A connection with a view for each file. Raises OSError or ValueError."""
    import duckdb

    try:
        connection = duckdb.connect(str(database), read_only=True) if database is not None else duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        for one in files:
            _add(connection, one)
    except duckdb.Error as error:
        raise ValueError(str(error).splitlines()[0]) from error
    return connection


def _add(connection: duckdb.DuckDBPyConnection, written: str) -> None:
    place, _, name = written.rpartition("=") if "=" in written else (written, "", "")
    path = Path(place)
    if not path.is_file():
        raise ValueError(f"there is no file {place}")
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise ValueError(f"{path.name} is none of {', '.join(sorted(_READERS))}")
    view = f"CREATE TEMP VIEW {quote_name(name or path.stem)} AS FROM {reader}({quote_text(str(path))})"
    connection.execute(view)


def _write(result: Result, form: str, out: IO[str]) -> None:
    names = [name for name, _ in result.columns]
    kinds = [kind for _, kind in result.columns]
    if form == "json":
        for row in result.rows:
            cells = {name: _plain(cell, kind) for name, kind, cell in zip(names, kinds, row, strict=True)}
            out.write(json.dumps(cells, ensure_ascii=False) + "\n")
        return
    lines = [[_shown(cell, kind) for cell, kind in zip(row, kinds, strict=True)] for row in result.rows]
    if form == "csv":
        csv.writer(out, lineterminator="\n").writerows([names, *lines])
        return
    widths = [max(len(name), *(len(line[place]) for line in lines), 0) for place, name in enumerate(names)]
    for line in [names, ["-" * width for width in widths], *lines]:
        out.write("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() + "\n")


def _plain(cell: Any, kind: KustoType) -> Any:
    """A cell as JSON has it."""
    if kind is KustoType.DYNAMIC and cell is not None:
        return json.loads(cell)
    if cell is None or isinstance(cell, (bool, int, float, str)):
        return cell
    return _shown(cell, kind)


def _shown(cell: Any, kind: KustoType) -> str:
    """A cell as Kusto writes it."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, datetime):
        return cell.isoformat(timespec="microseconds") + "0Z" if cell.microsecond else cell.isoformat() + "Z"
    if isinstance(cell, timedelta):
        return timespan_text((cell.days * 86_400 + cell.seconds) * 10_000_000 + cell.microseconds * 10)
    return str(cell)
