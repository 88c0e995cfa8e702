"""A staged file as a SQL relation of text columns, whatever its format; what is no row is a reject.

Between `staging` (files) and `loading` (typed rows). CSV is read by DuckDB's own reader, JSON lines line by line so
that one broken line costs one line, JSON documents are cut into their elements first. Columns are `c0`, `c1`, ... in
the order of `RawRows.headers`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sentinel_rag.workspace.importing.csv_dialect import detect
from sentinel_rag.workspace.importing.json_documents import write_json_lines
from sentinel_rag.workspace.importing.reports import Reject
from sentinel_rag.workspace.importing.source_files import SAMPLE_BYTES, Format, SourceFile, UnreadableFileError
from sentinel_rag.workspace.kql_types import quote_name, quote_text

if TYPE_CHECKING:
    import duckdb

MAX_LINE_BYTES = 16_000_000
KEPT_CONTENT = 10_000
DETECTION_ROWS = 20_000
"""Rows that are looked at for the types of columns that no table has yet."""


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A delimited file to read. `first_line` is the number of its first line in the original file."""

    path: Path
    separator: str
    width: int
    has_header: bool
    strict: bool
    first_line: int = 1

    def scan_sql(self, *, rejects: str | None = None) -> str:
        """`read_csv(...)` over the file, all columns text. Rejects go to the temporary table of that name."""
        columns = ", ".join(f"'c{index}': 'VARCHAR'" for index in range(self.width))
        options = [
            quote_text(str(self.path)),
            f"delim={quote_text(self.separator)}",
            "quote='\"'",
            "escape='\"'",
            f"header={'true' if self.has_header else 'false'}",
            "auto_detect=false",
            "nullstr=['', 'null']",
            f"columns={{{columns}}}",
            f"max_line_size={MAX_LINE_BYTES}",
            "ignore_errors=true",
            f"strict_mode={'true' if self.strict else 'false'}",
        ]
        if rejects:
            options += ["store_rejects=true", f"rejects_table='{rejects}'", f"rejects_scan='{rejects}_scan'"]
        return f"read_csv({', '.join(options)})"


@dataclass(frozen=True, slots=True)
class RawRows:
    """`source` is what stands after FROM. `csv` is set where the rows come from DuckDB's CSV reader.

    `texts` are the places of columns that the file itself says are text: a JSON string is no number and no truth value,
    whatever it spells.
    """

    headers: tuple[str, ...]
    source: str
    format: str
    rejects: tuple[Reject, ...] = ()
    csv: CsvFile | None = None
    notes: tuple[str, ...] = ()
    texts: frozenset[int] = frozenset()


def open_rows(cursor: duckdb.DuckDBPyConnection, source: SourceFile, staged: Path, *, strict: bool) -> RawRows:
    """The rows of a staged file. Raises UnreadableFileError where nothing in it is a row."""
    if source.format is Format.PARQUET:
        return _parquet(cursor, source, staged)
    if source.format is Format.JSON_LINES:
        rows = _json_lines(cursor, staged, "json lines")
        if rows.headers:
            return rows
    if source.format in (Format.JSON, Format.JSON_LINES):
        lines = staged.with_suffix(".jsonl")
        rejects, missing = write_json_lines(staged, lines, name=source.path.name)
        rows = _json_lines(cursor, lines, "json")
        return replace(rows, rejects=(*rejects, *rows.rejects), notes=missing)
    return _delimited(source, staged, strict=strict)


def _delimited(source: SourceFile, staged: Path, *, strict: bool) -> RawRows:
    dialect = detect(source.sample, complete=source.size < SAMPLE_BYTES)
    if not dialect.columns:
        raise UnreadableFileError(f"{source.path} holds no row.", next_step="Export it again.")
    csv = CsvFile(staged, dialect.separator, len(dialect.columns), dialect.has_header, strict)
    notes = [] if dialect.has_header else ["The file has no header: its columns are called Column1, Column2, ..."]
    if source.preamble:
        notes.append("Its first line is for Excel or PowerShell and no row; lines are counted behind it.")
    if source.encoding == "cp1252":
        notes.append("The file is not UTF-8; it was read as Windows-1252.")
    name = {",": "csv", "\t": "tsv"}.get(dialect.separator, f"csv separated by {dialect.separator}")
    return RawRows(dialect.columns, csv.scan_sql(), name, csv=csv, notes=tuple(notes))


def _json_lines(cursor: duckdb.DuckDBPyConnection, path: Path, name: str) -> RawRows:
    scan = (
        f"read_csv({quote_text(str(path))}, delim=chr(1), quote='', escape='', header=false, auto_detect=false, "
        f"columns={{'line': 'VARCHAR'}}, ignore_errors=true, strict_mode=false, max_line_size={MAX_LINE_BYTES}, "
        "store_rejects=true, rejects_table='json_rejects', rejects_scan='json_rejects_scan')"
    )
    _drop_rejects(cursor, "json_rejects")
    cursor.execute("DROP TABLE IF EXISTS json_lines")
    cursor.execute(
        "CREATE TEMP TABLE json_lines AS SELECT record, line, coalesce(json_type(TRY_CAST(line AS JSON)) = 'OBJECT', "  # noqa: S608
        f"false) AS is_row FROM (SELECT row_number() OVER () AS record, ltrim(line, chr(65279)) AS line FROM {scan}) "
        "WHERE trim(line) <> ''"
    )
    bad = cursor.execute(
        f"SELECT record, CASE WHEN json_valid(line) THEN 'not a JSON object' ELSE 'not valid JSON' END, "  # noqa: S608
        f"left(line, {KEPT_CONTENT}) FROM json_lines WHERE NOT is_row ORDER BY record"
    ).fetchall()
    rejects = [Reject(line, reason, content) for line, reason, content in bad]
    rejects += read_rejects(cursor, "json_rejects", first_line=1)[0]
    keys = cursor.execute(
        "SELECT keys, min(record) FROM (SELECT json_keys(line) AS keys, record FROM json_lines WHERE is_row) "
        "GROUP BY keys ORDER BY min(record)"
    ).fetchall()
    headers = tuple(dict.fromkeys(key for row, _ in keys for key in row))
    pointers = ", ".join(quote_text("/" + key.replace("~", "~0").replace("/", "~1")) for key in headers)
    cells = ", ".join(f"cells[{index + 1}] AS c{index}" for index in range(len(headers)))
    relation = (
        f"(SELECT {cells} FROM (SELECT json_extract_string(line, [{pointers}]) AS cells "  # noqa: S608
        "FROM json_lines WHERE is_row ORDER BY record))"
    )
    texts = cursor.execute(
        f"SELECT DISTINCT place FROM (SELECT generate_subscripts(types, 1) - 1 AS place, unnest(types) AS type FROM "  # noqa: S608
        f"(SELECT json_type(line, [{pointers}]) AS types FROM json_lines WHERE is_row LIMIT {DETECTION_ROWS})) "
        "WHERE type = 'VARCHAR'"
    ).fetchall()
    return RawRows(headers, relation, name, tuple(rejects), texts=frozenset(place for (place,) in texts))


def _parquet(cursor: duckdb.DuckDBPyConnection, source: SourceFile, staged: Path) -> RawRows:
    import duckdb

    scan = f"read_parquet({quote_text(str(staged))})"
    try:
        described = cursor.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()  # noqa: S608
    except duckdb.Error as error:
        raise UnreadableFileError(
            f"{source.path} begins like a Parquet file but cannot be read.", next_step="Export it again."
        ) from error
    cells = []
    for index, (name, type_, *_rest) in enumerate(described):
        nested = type_.endswith("]") or type_.startswith(("STRUCT", "MAP", "UNION"))
        value = f"to_json({quote_name(name)})" if nested else quote_name(name)
        cells.append(f"CAST({value} AS VARCHAR) AS c{index}")
    return RawRows(tuple(row[0] for row in described), f"(SELECT {', '.join(cells)} FROM {scan})", "parquet")  # noqa: S608


def _drop_rejects(cursor: duckdb.DuckDBPyConnection, table: str) -> None:
    cursor.execute(f"DROP TABLE IF EXISTS {table}")
    cursor.execute(f"DROP TABLE IF EXISTS {table}_scan")


_REASONS = {
    "MISSING COLUMNS": "fewer fields than the header",
    "TOO MANY COLUMNS": "more fields than the header",
    "UNQUOTED VALUE": "a quote that opens and does not close",
    "LINE SIZE OVER MAXIMUM": f"longer than {MAX_LINE_BYTES:,} bytes",
    "INVALID ENCODING": "bytes that are not UTF-8",
}


def read_rejects(
    cursor: duckdb.DuckDBPyConnection, table: str, *, first_line: int, strict: bool = True
) -> tuple[list[Reject], str]:
    """The rejects of a scan, and the text after the first line of a record that swallowed the lines behind it.

    The strict reader tells an open quote apart; the relaxed one sees only that fields are missing.
    """
    found = cursor.execute(
        f"SELECT line, any_value(error_type), any_value(csv_line) FROM {table} GROUP BY line, line_byte_position "  # noqa: S608
        "ORDER BY line"
    ).fetchall()
    _drop_rejects(cursor, table)
    rejects: list[Reject] = []
    swallowed = ""
    for line, kind, content in found:
        reason = _REASONS.get(str(kind), str(kind).lower())
        text = content or ""
        if (str(kind) == "UNQUOTED VALUE" or not strict) and "\n" in text.rstrip("\n"):
            text, _, rest = text.partition("\n")
            swallowed += rest if rest.endswith("\n") else rest + "\n"
        rejects.append(Reject(int(line) + first_line - 1, reason, text.rstrip("\r\n")[:KEPT_CONTENT]))
    return rejects, swallowed


def without_open_quotes(text: str, first_line: int, *, everything: bool) -> tuple[list[Reject], str]:
    """Lines whose quotes do not pair, as rejects, and the other lines. With `everything`, every line is a reject."""
    rejects: list[Reject] = []
    kept: list[str] = []
    for number, line in enumerate(text.splitlines(keepends=True), start=first_line):
        if everything or line.count('"') % 2:
            rejects.append(Reject(number, _REASONS["UNQUOTED VALUE"], line.rstrip("\r\n")[:KEPT_CONTENT]))
        else:
            kept.append(line)
    return rejects, "".join(kept)
