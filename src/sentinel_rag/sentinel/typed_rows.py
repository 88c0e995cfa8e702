"""The fast way to read an answer of the Log Analytics wire: the columns first, then all rows as tuples of their types.

It reads what holds to the protocol to the letter. For everything else it returns None, and the lenient reading
(`log_tables.decode_table` over `json_text`) decides; where both read an answer they read the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

from sentinel_rag.contracts.query_results import Column
from sentinel_rag.sentinel.json_text import decode_strictly
from sentinel_rag.sentinel.log_tables import LogsTable, decode_timespans, in_utc, parse_datetime, parse_dynamic

_CELLS: dict[str, Any] = {
    "bool": bool | None,
    "int": int | None,
    "long": int | None,
    "real": float | None,
    "string": str | None,
    "guid": str | None,
    "decimal": str | None,
    "datetime": str | None,  # msgspec would round the seventh digit of a fraction, which we cut
    "timespan": str | None,
}


class _WireColumn(msgspec.Struct):
    name: str
    type: str


class _WireTable(msgspec.Struct):
    columns: list[_WireColumn]
    rows: msgspec.Raw
    name: str = ""


class _WireAnswer(msgspec.Struct):
    tables: list[_WireTable]
    error: Any = None


_ANSWER = msgspec.json.Decoder(_WireAnswer)


class TypedAnswer(msgspec.Struct, frozen=True):
    """The primary table, not yet decoded to values, and the `error` beside it."""

    columns: tuple[Column, ...]
    rows: list[tuple[Any, ...]]
    error: Any

    def table(self, query: str, *, partial_reason: str, duration_ms: float) -> LogsTable:
        """The table with its values. Raises ValueError for a cell that is not of its column's type."""
        return LogsTable(self.columns, _with_values(self.columns, self.rows), query, partial_reason, duration_ms)


def read_typed(content: bytes) -> TypedAnswer | None:
    """The answer if it holds to the protocol in every cell, else None."""
    try:
        answer = _ANSWER.decode(content)
        if not answer.tables:
            return None
        primary = next((table for table in answer.tables if table.name == "PrimaryResult"), answer.tables[0])
        if not primary.columns:
            return None
        rows = _rows_decoder(tuple(column.type for column in primary.columns)).decode(primary.rows)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return TypedAnswer(tuple(Column(column.name, column.type) for column in primary.columns), rows, answer.error)


@lru_cache(maxsize=512)
def _rows_decoder(kinds: tuple[str, ...]) -> msgspec.json.Decoder[list[tuple[Any, ...]]]:
    cells = tuple(_CELLS.get(kind, Any) for kind in kinds)
    return msgspec.json.Decoder(list[tuple[cells]])  # type: ignore[valid-type]  # made of values, not written


def _with_values(columns: Sequence[Column], rows: list[tuple[Any, ...]]) -> tuple[tuple[Any, ...], ...]:
    """The rows with times, spans and dynamics as Python values, made a column at a time."""
    made = [(place, _MAKERS[column.type]) for place, column in enumerate(columns) if column.type in _MAKERS]
    if not made or not rows:
        return tuple(rows)
    cells: list[Sequence[Any]] = list(zip(*rows, strict=True))
    for place, make in made:
        cells[place] = make(cells[place])
    return tuple(zip(*cells, strict=True))


def _datetimes(cells: Sequence[Any]) -> list[Any]:
    if None in cells:
        return [None if cell is None else parse_datetime(cell) for cell in cells]
    moments = list(map(datetime.fromisoformat, cells))
    return [moment if moment.tzinfo is UTC else in_utc(moment) for moment in moments]


def _dynamics(cells: Sequence[Any]) -> list[Any]:
    try:
        return [None if cell is None else decode_strictly(cell) for cell in cells]
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError, TypeError):
        return [parse_dynamic(cell) for cell in cells]  # some are plain text, or JSON that has to be mended


_MAKERS: dict[str, Callable[[Sequence[Any]], list[Any]]] = {
    "datetime": _datetimes,
    "timespan": decode_timespans,
    "dynamic": _dynamics,
}
