"""Runs a translated query on a cursor: deadline, row cap, byte cap, cells in wire form.

Between the translation (checked by `sql_check`) and the engine. What is told about a failure never quotes the SQL.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sentinel_rag.contracts.query_results import Column
from sentinel_rag.workspace.cells import Cell, encoding_sql, finisher
from sentinel_rag.workspace.kql.answers import KqlAnswer, encode_rows
from sentinel_rag.workspace.kql.errors import (
    KqlCancelledError,
    KqlMemoryError,
    KqlTimeoutError,
    not_supported,
    told,
)
from sentinel_rag.workspace.kql.sql_check import check_sql
from sentinel_rag.workspace.kql.stopping import StopReason, StopSignal, Watch, watched

if TYPE_CHECKING:
    import duckdb

    from kql_duckdb.algebra import Column as BoundColumn

_BATCH_ROWS = 4096


@dataclass(frozen=True, slots=True)
class Limits:
    """Where an answer is cut (rows, bytes of its cells as JSON) and a query is stopped (seconds)."""

    max_rows: int = 500_000
    max_bytes: int = 64_000_000
    timeout_s: float = 180.0


@dataclass(frozen=True)
class Statement:
    """A query as SQL, with the columns of its answer, the tables that it reads and what it sets for itself."""

    sql: str
    columns: tuple[BoundColumn, ...]
    tables: frozenset[str]
    options: Mapping[str, Any] = field(default_factory=dict)


def run(cursor: duckdb.DuckDBPyConnection, statement: Statement, *, limits: Limits, signal: StopSignal) -> KqlAnswer:
    """Execute and encode.

    Raises KqlError for what the data refuses, KqlTimeoutError at the deadline and KqlCancelledError once `signal` is
    given.
    """
    import duckdb

    started = time.perf_counter()
    columns = tuple(Column(column.name, column.type.value) for column in statement.columns)
    cells = ", ".join(f"{encoding_sql(column.sql, column.type.held)} AS {column.sql}" for column in statement.columns)
    failure: duckdb.Error | MemoryError | None = None
    with watched(cursor, limits.timeout_s, signal) as watch:
        try:
            check_sql(cursor, statement.sql, statement.tables)
            cursor.execute(f"SELECT {cells or '1'} FROM ({statement.sql}) AS answer")  # noqa: S608
            batches = _batches(cursor, [column.type for column in columns], watch)
            if not columns:
                batches = ([()] * len(batch) for batch in batches)
            encoded = encode_rows(batches, max_rows=limits.max_rows, max_bytes=limits.max_bytes)
        except (duckdb.Error, MemoryError) as error:
            failure = error
    _raise_if_stopped(watch, limits, failure)
    if failure is not None:
        raise _explained(failure) from failure
    return KqlAnswer(columns, encoded, tuple(sorted(statement.tables)), time.perf_counter() - started)


def rows_of(cursor: duckdb.DuckDBPyConnection, sql: str, limits: Limits, watch: Watch) -> list[tuple[Any, ...]]:
    """The rows of a question about the data, asked before a query can be translated."""
    import duckdb

    failure: duckdb.Error | MemoryError | None = None
    rows: list[tuple[Any, ...]] = []
    try:
        rows = cursor.execute(sql).fetchmany(limits.max_rows + 1)
    except (duckdb.Error, MemoryError) as error:
        failure = error
    _raise_if_stopped(watch, limits, failure)
    if failure is not None:
        raise _explained(failure) from failure
    if len(rows) > limits.max_rows:
        raise not_supported("evaluate", hint="the data would name too many columns")
    return rows


def _raise_if_stopped(watch: Watch, limits: Limits, failure: Exception | None) -> None:
    """Looked at before anything else: an interrupt can surface as any error, or as an answer that is not whole."""
    if watch.reason is StopReason.CANCELLED:
        raise KqlCancelledError from failure
    if watch.reason is StopReason.DEADLINE:
        raise KqlTimeoutError(limits.timeout_s) from failure


def _explained(failure: Exception) -> Exception:
    from kql_duckdb.engine import failure as in_words

    return KqlMemoryError() if isinstance(failure, MemoryError) else told(in_words(failure))


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
