"""Runs a translated query on a cursor: deadline, row cap, byte cap, cells in wire form.

Between the translation (checked by `sql_check`) and the engine. What is told about a failure never quotes the SQL.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sentinel_rag.contracts.query_results import Column
from sentinel_rag.workspace.cells import Cell, encoding_sql, finisher
from sentinel_rag.workspace.kql.answers import KqlAnswer, encode_rows
from sentinel_rag.workspace.kql.errors import (
    KqlCancelledError,
    KqlError,
    KqlMemoryError,
    KqlTimeoutError,
    unresolved,
)
from sentinel_rag.workspace.kql.extension import NO_COLUMN
from sentinel_rag.workspace.kql.scope import WINDOW_END, WINDOW_START, Schema
from sentinel_rag.workspace.kql.spelling import unmarked
from sentinel_rag.workspace.kql.stopping import StopReason, StopSignal, Watch, watched
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


def run(
    cursor: duckdb.DuckDBPyConnection,
    translation: Translation,
    *,
    schema: Schema,
    window: TimeRange,
    limits: Limits,
    signal: StopSignal,
) -> KqlAnswer:
    """Execute and encode.

    Raises KqlError for what the data or the schema refuses, KqlTimeoutError at the deadline and KqlCancelledError once
    `signal` is given.
    """
    import duckdb

    started = time.perf_counter()
    parameters = _bound(translation, window)
    failure: duckdb.Error | MemoryError | None = None
    with watched(cursor, limits.timeout_s, signal) as watch:
        try:
            described = cursor.execute("DESCRIBE " + translation.sql, parameters).fetchall()
            columns = tuple(Column(unmarked(row[0]), kql_type(row[1])) for row in described)
            cells = ", ".join(
                f"{encoding_sql(quote_name(row[0]), row[1])} AS {quote_name(row[0])}" for row in described
            )
            cursor.execute(f"SELECT {cells} FROM ({translation.sql}) AS answer", parameters)  # noqa: S608
            batches = _batches(cursor, [column.type for column in columns], watch)
            if [column.name for column in columns] == [NO_COLUMN]:
                columns, batches = (), ([()] * len(batch) for batch in batches)
            encoded = encode_rows(batches, max_rows=limits.max_rows, max_bytes=limits.max_bytes)
        except (duckdb.Error, MemoryError) as error:
            failure = error
    # Looked at before anything else: an interrupt can surface as any error, or as an answer that is not whole.
    if watch.reason is StopReason.CANCELLED:
        raise KqlCancelledError from failure
    if watch.reason is StopReason.DEADLINE:
        raise KqlTimeoutError(limits.timeout_s) from failure
    if isinstance(failure, MemoryError):
        raise KqlMemoryError from failure
    if failure is not None:
        raise _explained(failure, translation, schema) from failure
    return KqlAnswer(columns, encoded, tuple(sorted(translation.tables)), time.perf_counter() - started)


def _bound(translation: Translation, window: TimeRange) -> dict[str, Any]:
    parameters = dict(translation.parameters)
    for parameter, moment in ((WINDOW_START, window.start), (WINDOW_END, window.end)):
        if parameter.slot in translation.slots:
            parameters[parameter.slot] = _naive(moment)
    return parameters


def _naive(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.astimezone(UTC).replace(tzinfo=None)


def _batches(cursor: duckdb.DuckDBPyConnection, kinds: list[str], watch: Watch) -> Iterator[list[tuple[Cell, ...]]]:
    """Rows as wire cells, some thousands at a time, until there are none or the query is stopped."""
    finishers = [(index, finish) for index, kind in enumerate(kinds) if (finish := finisher(kind)) is not None]
    while batch := cursor.fetchmany(_BATCH_ROWS):
        if watch.reason is not None:
            return
        yield [_finished(row, finishers) for row in batch] if finishers else batch


def _finished(row: tuple[Any, ...], finishers: list[tuple[int, Any]]) -> tuple[Cell, ...]:
    cells = list(row)
    for index, finish in finishers:
        cells[index] = finish(cells[index])
    return tuple(cells)


_MISSING_COLUMN = re.compile(
    r'Referenced column "([^"]+)" (?:was )?not found|does not have a column named "([^"]+)"'
    r'|Column "([^"]+)" referenced that exists in the SELECT clause'
)


_DYNAMIC_OPERAND = re.compile(r"argument types '(\S+?)\((?=[^']*\bJSON\b)")


def _explained(error: duckdb.Error, translation: Translation, schema: Schema) -> KqlError:
    text = str(error)
    if type(error).__name__ == "OutOfMemoryException" or "out of memory" in text.lower():
        return KqlMemoryError()
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
    mixed = _DYNAMIC_OPERAND.search(text)
    if mixed:
        return KqlError(
            f"The embedded workspace does not run '{mixed[1]}' with a dynamic value.",
            kql_code="SEN0001",
            next_step="Convert the value first, with tolong(), todouble(), todatetime() or tostring().",
        )
    sentence = re.sub(r"^[A-Z][A-Za-z ]* Error: ", "", text.splitlines()[0] if text else "no reason given")
    sentence = sentence.partition("  Input: ")[0]  # what follows is a value from the data
    return KqlError(
        f"The query cannot be computed: {sentence}",
        kql_code="SEN0002",
        next_step="Check the types of the values compared.",
    )
