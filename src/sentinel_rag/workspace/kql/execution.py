"""Runs a translated query on a cursor: deadline, row cap, byte cap, cells in wire form.

Between the translation (checked by `sql_check`) and the engine. What is told about a failure never quotes the SQL.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column
from sentinel_rag.workspace.cells import Cell, encoding_sql, finisher
from sentinel_rag.workspace.kql.errors import KqlError, KqlTimeoutError, unresolved
from sentinel_rag.workspace.kql.extension import NO_COLUMN
from sentinel_rag.workspace.kql.scope import WINDOW_END, WINDOW_START, Schema
from sentinel_rag.workspace.kql.spelling import unmarked
from sentinel_rag.workspace.kql.translation import Translation
from sentinel_rag.workspace.kql_types import kql_type, quote_name
from sentinel_rag.workspace.timespans import TimeRange

if TYPE_CHECKING:
    import duckdb

_BATCH_ROWS = 4096


@dataclass(frozen=True, slots=True)
class Limits:
    """Where an answer is cut (rows, bytes of its cells as JSON) and a query is stopped (seconds)."""

    max_rows: int = 500_000
    max_bytes: int = 64_000_000
    timeout_s: float = 180.0


@dataclass(frozen=True, slots=True)
class KqlAnswer:
    """Columns with KQL types, rows of wire cells, and why the answer is incomplete (`partial`, empty if it is not)."""

    columns: tuple[Column, ...]
    rows: list[tuple[Cell, ...]]
    tables: tuple[str, ...]
    duration_s: float
    partial: str = ""

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "columns": [{"name": column.name, "type": column.type} for column in self.columns],
            "rows": [list(row) for row in self.rows],
            "partial": self.partial,
            "duration_s": self.duration_s,
        }


def run(
    cursor: duckdb.DuckDBPyConnection,
    translation: Translation,
    *,
    schema: Schema,
    window: TimeRange,
    limits: Limits,
) -> KqlAnswer:
    """Execute and encode. Raises KqlError for what the data or the schema refuses, KqlTimeoutError at the deadline."""
    import duckdb

    started = time.perf_counter()
    parameters = _bound(translation, window)
    with _deadline(cursor, limits.timeout_s) as expired:
        try:
            described = cursor.execute("DESCRIBE " + translation.sql, parameters).fetchall()
            names = [row[0] for row in described]
            types = [row[1] for row in described]
            cells = ", ".join(
                f"{encoding_sql(quote_name(name), type_)} AS {quote_name(name)}"
                for name, type_ in zip(names, types, strict=True)
            )
            cursor.execute(f"SELECT {cells} FROM ({translation.sql}) AS answer", parameters)  # noqa: S608
            rows, partial = _fetch(cursor, [kql_type(type_) for type_ in types], limits)
        except duckdb.InterruptException as error:
            raise KqlTimeoutError(limits.timeout_s) from error
        except duckdb.Error as error:
            if expired.is_set():
                raise KqlTimeoutError(limits.timeout_s) from error
            raise _explained(error, translation, schema) from error
    if names == [NO_COLUMN]:
        names, types, rows = [], [], [() for _ in rows]
    return KqlAnswer(
        columns=tuple(Column(unmarked(name), kql_type(type_)) for name, type_ in zip(names, types, strict=True)),
        rows=rows,
        tables=tuple(sorted(translation.tables)),
        duration_s=time.perf_counter() - started,
        partial=partial,
    )


def _bound(translation: Translation, window: TimeRange) -> dict[str, Any]:
    parameters = dict(translation.parameters)
    for parameter, moment in ((WINDOW_START, window.start), (WINDOW_END, window.end)):
        if parameter.slot in translation.slots:
            parameters[parameter.slot] = _naive(moment)
    return parameters


def _naive(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.astimezone(UTC).replace(tzinfo=None)


@contextmanager
def _deadline(cursor: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[threading.Event]:
    """Interrupt the cursor after `seconds`; the event tells that it happened."""
    expired = threading.Event()

    def stop() -> None:
        expired.set()
        cursor.interrupt()

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        yield expired
    finally:
        timer.cancel()


def _fetch(cursor: duckdb.DuckDBPyConnection, kinds: list[str], limits: Limits) -> tuple[list[tuple[Cell, ...]], str]:
    rows: list[tuple[Cell, ...]] = []
    size = 0
    finishers = [(index, finish) for index, kind in enumerate(kinds) if (finish := finisher(kind)) is not None]
    while batch := cursor.fetchmany(_BATCH_ROWS):
        if finishers:
            batch = [_finished(row, finishers) for row in batch]
        room = limits.max_rows - len(rows)
        cut = batch[:room]
        batch_size = len(msgspec.json.encode(cut))
        if size + batch_size > limits.max_bytes:
            rows.extend(_within(cut, limits.max_bytes - size))
            return rows, f"Query result set has exceeded the internal data size limit {limits.max_bytes}"
        size += batch_size
        rows.extend(cut)
        if len(batch) > room:
            return rows, f"Query result set has exceeded the internal record count limit {limits.max_rows}"
    return rows, ""


def _finished(row: tuple[Any, ...], finishers: list[tuple[int, Any]]) -> tuple[Cell, ...]:
    cells = list(row)
    for index, finish in finishers:
        cells[index] = finish(cells[index])
    return tuple(cells)


def _within(batch: list[tuple[Cell, ...]], room: int) -> list[tuple[Cell, ...]]:
    """As many leading rows as `room` bytes hold."""
    for count, row in enumerate(batch):
        room -= len(msgspec.json.encode(row)) + 1
        if room < 0:
            return batch[:count]
    return batch


_MISSING_COLUMN = re.compile(
    r'Referenced column "([^"]+)" (?:was )?not found|does not have a column named "([^"]+)"'
    r'|Column "([^"]+)" referenced that exists in the SELECT clause'
)


def _explained(error: duckdb.Error, translation: Translation, schema: Schema) -> KqlError:
    text = str(error)
    missing = _MISSING_COLUMN.search(text)
    if missing:
        known = [column for table in sorted(translation.tables) for column in schema[table]]
        name = next(group for group in missing.groups() if group is not None)
        if name in known:
            return KqlError(
                f"Failed to resolve column or scalar expression named '{name}': an operator before it dropped it.",
                kql_code="SEM0100",
                token=name,
                next_step=f"Keep {name} in the project or summarize before.",
            )
        return unresolved("column or scalar", name, known)
    sentence = re.sub(r"^[A-Z][A-Za-z ]* Error: ", "", text.splitlines()[0] if text else "no reason given")
    sentence = sentence.partition("  Input: ")[0]  # what follows is a value from the data
    memory = "out of memory" in text.lower() or type(error).__name__ == "OutOfMemoryException"
    return KqlError(
        f"The query cannot be computed: {sentence}",
        kql_code="E_LOW_MEMORY_CONDITION" if memory else "SEN0002",
        next_step="Narrow the time range or summarize earlier."
        if memory
        else "Check the types of the values compared.",
    )
