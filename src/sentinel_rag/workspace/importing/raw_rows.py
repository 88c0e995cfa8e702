"""Rows of CSV and JSON files as they stand there, whatever wrote them."""

from __future__ import annotations

import csv
import io
import json
import mmap
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentinel_rag.workspace.importing.reports import Reject
from sentinel_rag.workspace.importing.source_files import SAMPLE_BYTES, Format, SourceFile, UnreadableFileError
from sentinel_rag.workspace.table_schemas import quote_name, quote_text

if TYPE_CHECKING:
    import duckdb


# Exports come with commas, tabs, semicolons, pipes and with characters nobody expects (❖); none says which. The one
# that splits the most records into the same number of fields as the first record wins.
_USUAL = ",\t;|"
_NEVER = set("\"' _-.$@()[]{}/\\:+=*#%&!?<>\r\n")
_RECORDS = 200
_VALUE = re.compile(
    r"-?\d+(\.\d+)?"  # a number
    r"|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T,].*)?"  # a date
    r"|[0-9a-fA-F]{32,}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"  # a hash or GUID
    r"|\d{1,3}(\.\d{1,3}){3}"  # an address
)


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """`columns` are the names of the first record, or made up (`Column1`, ...) where that is a row already."""

    separator: str
    columns: tuple[str, ...]
    has_header: bool


def detect(sample: str, *, complete: bool) -> CsvDialect:
    """The dialect of `sample`, which `complete` says is the whole file and not only its beginning."""
    best, best_score = ",", (0.0, 0)
    for candidate in _candidates(sample):
        records = _records(sample, candidate, complete=complete)
        width = len(records[0]) if records else 0
        if width < 2:
            continue
        same = sum(len(record) == width for record in records) / len(records)
        score = (round(same, 1), width)
        if score > best_score:
            best, best_score = candidate, score
    records = _records(sample, best, complete=complete)
    first = tuple(records[0]) if records else ()
    if _is_header(first):
        return CsvDialect(best, first, has_header=True)
    return CsvDialect(best, tuple(f"Column{number}" for number in range(1, len(first) + 1)), has_header=False)


def _candidates(sample: str) -> list[str]:
    first = sample.lstrip("\r\n").split("\n", 1)[0]
    unusual = {char for char in first if not char.isalnum() and char not in _NEVER and char not in _USUAL}
    return [char for char in _USUAL if char in first] + sorted(unusual, key=first.count, reverse=True)[:8]


def _records(sample: str, separator: str, *, complete: bool) -> list[list[str]]:
    """The first records; the last of an incomplete sample may be cut and is left out."""
    csv.field_size_limit(max(csv.field_size_limit(), len(sample) + 1))
    records: list[list[str]] = []
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=separator)
    try:
        for record in reader:
            if record:
                records.append(record)
            if len(records) > _RECORDS:
                break
    except csv.Error:
        pass  # what was read so far decides; the reader of rows reports the fault
    if not complete and len(records) > 1:
        records.pop()
    return records[:_RECORDS]


def _is_header(first: tuple[str, ...]) -> bool:
    """A header names things: no cell but the first (a pandas index) is empty or looks like a value."""
    names = [cell.strip() for cell in first]
    if not any(names):
        return False
    if any(not name for name in names[1:-1]):
        return False
    return not any(_VALUE.fullmatch(name) for name in names)


# Arrays of objects, one object, objects one after another, and the wrappers that services put around rows: `value`,
# `records`, `results`, and the `tables` of a Log Analytics answer.
_WRAPPERS = ("value", "records", "Records", "results", "Results", "data", "events", "hits")
_WHITE = " \t\r\n"
_MAX_BYTES = 2 << 30
MOST_REJECTS = 50_000
"""Faults of a file's lines. To tell one costs more than to read a hundred rows, and nobody reads a list of so many."""
_MOST_DIGITS = 4_300
_FRAMES = re.compile(r'\[\s*\{[^{}]*"FrameType"\s*:')


PAGE = "It is one page of several: it names the next one, whose rows are not in this file."
PART = "The service wrote an error beside these rows, so they are a part of what was asked for."
_NEXT = ("nextLink", "@odata.nextLink", "odata.nextLink", "NextLink")


def write_json_lines(source: Path, target: Path, *, name: str) -> tuple[list[Reject], tuple[str, ...]]:
    """Write the rows of `source` to `target`; returns the elements that are no objects, and what the document itself
    says of rows that it does not hold.

    Raises UnreadableFileError with line and column where the document is not JSON.
    """
    if source.stat().st_size > _MAX_BYTES:
        raise UnreadableFileError(
            f"{name} is one JSON document of more than 2 GiB.", next_step="Convert it to JSON lines or Parquet first."
        )
    text = source.read_text(encoding="utf-8-sig")
    rejects: list[Reject] = []
    missing: dict[str, None] = {}
    try:
        with target.open("w", encoding="utf-8", errors="replace") as lines:
            for piece, line in _objects(text, missing):
                if piece.startswith("{"):
                    lines.write(piece + "\n")
                else:
                    rejects.append(Reject(line, "not a JSON object", piece[:10_000]))
                    check_rejects(len(rejects))
    except json.JSONDecodeError as error:
        raise UnreadableFileError(
            f"{name} is not valid JSON: line {error.lineno}, column {error.colno}: {error.msg}.",
            next_step="Export it again, or repair it at that place; nothing of it was stored.",
        ) from error
    except RecursionError as error:
        raise UnreadableFileError(f"{name} is nested too deeply.", next_step="Export flat rows.") from error
    return rejects, tuple(missing)


def check_rejects(faults: int) -> None:
    """Raise UnreadableFileError for more of them than MOST_REJECTS."""
    if faults > MOST_REJECTS:
        raise UnreadableFileError(
            f"The file has more than {MOST_REJECTS:,} faults: lines or elements that are no rows.",
            next_step="Export it again; nothing of it was stored.",
        )


def _objects(text: str, missing: dict[str, None]) -> Iterator[tuple[str, int]]:
    """Each row as one line of JSON text, with the number of the line on which it begins. `missing` gathers what is
    said of rows that are not here."""
    decoder = json.JSONDecoder(parse_int=_whole_number)
    place = _skip(text, 0)
    if text[place : place + 1] == "[" and _FRAMES.match(text, place):
        frames, _ = decoder.raw_decode(text, place)
        missing |= dict.fromkeys([PART] if _failed(frames) else [])
        for row in _rows_of_frames(frames):
            yield json.dumps(row), 1
        return
    if text[place : place + 1] == "[":
        yield from _elements(text, place, decoder)
        return
    line, counted = 1, 0
    while place < len(text):
        value, end = decoder.raw_decode(text, place)
        line += text.count("\n", counted, place)
        counted = place
        rows = _wrapped_rows(value)
        if rows is None:
            yield _one_line(text[place:end]), line
        else:
            missing |= dict.fromkeys([PAGE] if any(value.get(key) for key in _NEXT) else [])
            missing |= dict.fromkeys([PART] if value.get("error") else [])
            for row in rows:
                yield json.dumps(row), line
        place = _skip(text, end)


def _elements(text: str, start: int, decoder: json.JSONDecoder) -> Iterator[tuple[str, int]]:
    place, line, counted = _skip(text, start + 1), 1, 0
    if text[place : place + 1] == "]":
        return
    while True:
        _, end = decoder.raw_decode(text, place)
        line += text.count("\n", counted, place)
        counted = place
        yield _one_line(text[place:end]), line
        place = _skip(text, end)
        if text[place : place + 1] == "]":
            return
        if text[place : place + 1] != ",":
            raise json.JSONDecodeError("Expecting ',' or ']' between elements", text, place)
        place = _skip(text, place + 1)


def _skip(text: str, place: int) -> int:
    while place < len(text) and text[place] in _WHITE:
        place += 1
    return place


def _one_line(piece: str) -> str:
    """Line ends in valid JSON are white space between tokens, never part of a value."""
    return piece.replace("\r", " ").replace("\n", " ")


def _whole_number(text: str) -> int | float:
    """Python reads no whole number of more than 4,300 digits. Only the rows of a wrapper are written anew from it; one
    that holds such a number is no JSON then, and so is rejected by itself."""
    return int(text) if len(text) <= _MOST_DIGITS else float(text)


def _rows_of_table(table: Any) -> list[dict[str, Any]] | None:
    """The rows of one table of a Log Analytics answer; None for what is none, so that no cell is without a column."""
    columns, rows = (table.get("columns"), table.get("rows")) if isinstance(table, dict) else (None, None)
    if not isinstance(columns, list) or not isinstance(rows, list):
        return None
    told = [column.get("name") if isinstance(column, dict) else None for column in columns]
    names = [name for name in told if isinstance(name, str)]
    if len(set(names)) < len(columns):
        return None
    if not all(isinstance(row, list) and len(row) == len(names) for row in rows):
        return None
    return [dict(zip(names, row, strict=True)) for row in rows]


def _rows_of_frames(frames: Any) -> list[dict[str, Any]]:
    """The rows of the primary tables of Azure Data Explorer's v2 answer; what describes the query is no row."""
    rows: list[dict[str, Any]] = []
    for frame in frames if isinstance(frames, list) else []:
        if isinstance(frame, dict) and frame.get("TableKind") == "PrimaryResult":
            columns = [{"name": column.get("ColumnName")} for column in frame.get("Columns") or ()]
            cells = [row for row in frame.get("Rows") or () if not _is_error(row)]
            rows += _rows_of_table({"columns": columns, "rows": cells}) or []
    return rows


def _failed(frames: Any) -> bool:
    """Whether the service gave up while it answered: it says so at the end, or in the place of a row."""
    answered = [frame for frame in frames if isinstance(frame, dict)] if isinstance(frames, list) else []
    return any(frame.get("HasErrors") or frame.get("Cancelled") for frame in answered) or any(
        _is_error(row) for frame in answered for row in frame.get("Rows") or ()
    )


def _is_error(row: Any) -> bool:
    return isinstance(row, dict) and "OneApiErrors" in row


def _wrapped_rows(value: Any) -> list[Any] | None:
    """The rows inside a service's wrapper, or None for an object that is a row itself."""
    if not isinstance(value, dict):
        return None
    tables = value.get("tables")
    if isinstance(tables, list) and tables:
        answered = [_rows_of_table(table) for table in tables]
        if None not in answered:
            return [row for rows in answered if rows is not None for row in rows]
    for key in _WRAPPERS:
        inner = value.get(key)
        if isinstance(inner, list) and inner and all(isinstance(row, dict) for row in inner) and len(value) <= 4:
            return inner
    return None


# CSV is read by DuckDB's own reader, JSON lines line by line so that one broken line costs one line, JSON documents are
# cut into their elements first. Columns are `c0`, `c1`, ... in the order of `RawRows.headers`.
MAX_LINE_BYTES = 16_000_000
KEPT_CONTENT = 10_000
KEPT_BY_READER = 9_990
"""Bytes of a rejected record that DuckDB keeps, less a character that it would have cut."""
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

    def scan_sql(self, *, rejects: str | None = None, quotes: bool = True) -> str:
        """`read_csv(...)` over the file, all columns text. Rejects go to the temporary table of that name. Without
        `quotes` one is a character as any other."""
        columns = ", ".join(f"'c{index}': 'VARCHAR'" for index in range(self.width))
        options = [
            quote_text(str(self.path)),
            f"delim={quote_text(self.separator)}",
            *(("quote='\"'", "escape='\"'") if quotes else ("quote=''", "escape=''")),
            f"header={'true' if self.has_header else 'false'}",
            "auto_detect=false",
            "nullstr=['', 'null']",
            f"columns={{{columns}}}",
            f"max_line_size={MAX_LINE_BYTES}",
            "ignore_errors=true",
            f"strict_mode={'true' if self.strict else 'false'}",
        ]
        if rejects:
            options += ["store_rejects=true", f"rejects_limit={MOST_REJECTS + 1}"]
            options += [f"rejects_table='{rejects}'", f"rejects_scan='{rejects}_scan'"]
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
        f"left(line, {KEPT_CONTENT}) FROM json_lines WHERE NOT is_row ORDER BY record LIMIT {MOST_REJECTS + 1}"
    ).fetchall()
    check_rejects(len(bad))
    rejects = [Reject(line, reason, content) for line, reason, content in bad]
    rejects += read_rejects(cursor, "json_rejects", path, first_line=1)[0]
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
    cursor: duckdb.DuckDBPyConnection, table: str, path: Path, *, first_line: int, strict: bool = True
) -> tuple[list[Reject], str]:
    """The rejects of a scan of `path`, and the text after the first line of a record that swallowed the lines behind
    it. Raises UnreadableFileError for too many.

    The strict reader tells an open quote apart; the relaxed one sees only that fields are missing.
    """
    [[faults]] = cursor.execute(f"SELECT count(*) FROM {table}").fetchall()  # noqa: S608
    check_rejects(faults)  # a line may have several, and those beyond the reader's limit are nowhere
    found = cursor.execute(
        "SELECT line, any_value(error_type), any_value(csv_line), any_value(byte_position) - 1 "  # noqa: S608
        f"FROM {table} GROUP BY line, line_byte_position ORDER BY line"
    ).fetchall()
    _drop_rejects(cursor, table)
    rejects: list[Reject] = []
    swallowed = ""
    for line, kind, content, quote_at in found:
        reason = _REASONS.get(str(kind), str(kind).lower())
        text = content or ""
        if (str(kind) == "UNQUOTED VALUE" or not strict) and "\n" in text.rstrip("\n"):
            cut = len(text.encode()) >= KEPT_BY_READER
            text, _, rest = text.partition("\n")
            if cut:
                rest = _swallowed(path, quote_at)
            swallowed += rest if rest.endswith("\n") else rest + "\n"
        rejects.append(Reject(int(line) + first_line - 1, reason, text.rstrip("\r\n")[:KEPT_CONTENT]))
    return rejects, swallowed


_QUOTED = re.compile(rb'"(?:[^"]+|"")*+"?[^\n]*\n?')


def _swallowed(path: Path, quote_at: int) -> str:
    """What the open quote at that byte of the file swallowed, from the next line on. The reader goes on behind the line
    that holds the next quote."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        found = _QUOTED.match(content, content.find(b'"', quote_at))
        assert found is not None, "the reader told where the quote is"
        return found.group().partition(b"\n")[2].decode("utf-8", "replace")


def without_open_quotes(text: str, first_line: int, *, everything: bool) -> tuple[list[Reject], str]:
    """Lines whose quotes do not pair, as rejects, and the other lines. With `everything`, every line is a reject."""
    rejects: list[Reject] = []
    kept: list[str] = []
    for number, line in enumerate(text.splitlines(keepends=True), start=first_line):
        if everything or line.count('"') % 2:
            rejects.append(Reject(number, _REASONS["UNQUOTED VALUE"], line.rstrip("\r\n")[:KEPT_CONTENT]))
            check_rejects(len(rejects))
        else:
            kept.append(line)
    return rejects, "".join(kept)
