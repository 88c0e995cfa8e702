"""A JSON document cut into one object a line, without touching the text of a value.

Arrays of objects, one object, objects one after another, and the wrappers that services put around rows: `value`,
`records`, `results`, and the `tables` of a Log Analytics answer. Below `raw_rows`, which reads the lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sentinel_rag.workspace.importing.reports import Reject
from sentinel_rag.workspace.importing.source_files import UnreadableFileError

_WRAPPERS = ("value", "records", "Records", "results", "Results", "data", "events", "hits")
_WHITE = " \t\r\n"
_MAX_BYTES = 2 << 30
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
    except json.JSONDecodeError as error:
        raise UnreadableFileError(
            f"{name} is not valid JSON: line {error.lineno}, column {error.colno}: {error.msg}.",
            next_step="Export it again, or repair it at that place; nothing of it was stored.",
        ) from error
    except RecursionError as error:
        raise UnreadableFileError(f"{name} is nested too deeply.", next_step="Export flat rows.") from error
    return rejects, tuple(missing)


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
    while place < len(text):
        value, end = decoder.raw_decode(text, place)
        rows = _wrapped_rows(value)
        if rows is None:
            yield _one_line(text[place:end]), text.count("\n", 0, place) + 1
        else:
            missing |= dict.fromkeys([PAGE] if any(value.get(key) for key in _NEXT) else [])
            missing |= dict.fromkeys([PART] if value.get("error") else [])
            for row in rows:
                yield json.dumps(row), text.count("\n", 0, place) + 1
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
