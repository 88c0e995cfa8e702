"""Run a KQL query: translate it, check its SQL, read the timespan's range only, and stop it when nobody waits.

The language is kql-duckdb's; here are the workspace's tables, time range, limits and the cells and errors of the
service. What is told about a failure never quotes the SQL, and no error of a library passes this border.
"""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from sentinel_rag.contracts.errors import Actor, UnavailableError, UsageError
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column, parse_time
from sentinel_rag.workspace.store import Store, empty_rows_sql
from sentinel_rag.workspace.table_schemas import reference_tables

if TYPE_CHECKING:
    import duckdb

    from kql_duckdb.binder.binder import Translation
    from kql_duckdb.catalog import Table
    from kql_duckdb.errors import KqlError as PackageError


class KqlError(UsageError):
    """The query cannot run. `kql_code` is Kusto's (`SEM0100`, `SYN0002`) or ours (`SEN...`).

    `line` counts from 1 and `position` from 0, both None where the place is unknown.
    """

    code = "kql"
    actor = Actor.USER
    kind = "SemanticError"
    summary = "A semantic error occurred."

    def __init__(
        self,
        message: str,
        *,
        kql_code: str,
        line: int | None = None,
        position: int | None = None,
        token: str = "",
        suggestions: tuple[str, ...] = (),
        next_step: str = "",
    ) -> None:
        super().__init__(message, next_step=next_step)
        self.kql_code = kql_code
        self.line = line
        self.position = position
        self.token = token
        self.suggestions = suggestions


class KqlSyntaxError(KqlError):
    """The text is not KQL."""

    kind = "SyntaxError"
    summary = "A recognition error occurred in the query."


class KqlTimeoutError(UnavailableError):
    """The query ran past its deadline and was interrupted."""

    code = "timeout"

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"The query did not finish within {seconds:g} seconds and was stopped.",
            next_step="Narrow the time range, filter before joining, or raise the time limit.",
        )
        self.seconds = seconds


class KqlCancelledError(UnavailableError):
    """Whoever asked went away, and the query was interrupted."""

    code = "cancelled"

    def __init__(self) -> None:
        super().__init__("The query was cancelled and stopped.", next_step="Ask again if the answer is still wanted.")


class KqlMemoryError(KqlError):
    """The query needs more memory than a query may have; the workspace goes on."""

    kind = "EngineError"
    summary = "The query ran out of memory."

    def __init__(self) -> None:
        super().__init__(
            "The query needs more memory than the workspace may use and was stopped "
            "(E_LOW_MEMORY_CONDITION; see https://aka.ms/kustoquerylimits).",
            kql_code="E_LOW_MEMORY_CONDITION",
            next_step="Narrow the time range, summarize before joining, or take fewer columns.",
        )


_NEXT_STEPS = {
    "KDB0001": "Write the query without it, or run it on Azure.",
    "KDB0002": "Check the types of the values compared.",
    "SEM0100": "`sentinel workspace tables` lists what there is.",
    "SEM0219": "Check the arguments of its functions.",
}
_CODES = {"KDB0001": "SEN0001", "KDB0002": "SEN0002"}


def reported(error: PackageError) -> KqlError:
    """What kql-duckdb refuses, with what to do next."""
    if error.code == "E_LOW_MEMORY_CONDITION":
        return KqlMemoryError()
    kind = KqlSyntaxError if error.code.startswith("SYN") else KqlError
    near = error.suggestions
    return kind(
        error.message,
        kql_code=_CODES.get(error.code, error.code),
        line=error.line,
        position=None if error.column is None else error.column - 1,
        token=error.token,
        suggestions=near,
        next_step=f"Use {near[0]}." if near else _NEXT_STEPS.get(error.code, "Correct the query at this place."),
    )


def nearest_names(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Up to three known names that look like `name`, best first; another spelling of the case comes before all."""
    from kql_duckdb.binder.scope import nearest  # here, since only a refusal needs the engine

    return nearest(name, known)


# Accepted: `PT3600.0S`, `P7D`, `start/end`, `start/duration`, `duration/end`. A duration alone ends now.
_DURATION = re.compile(
    r"P(?!$)(?:(?P<weeks>\d+(?:\.\d+)?)W)?(?:(?P<days>\d+(?:\.\d+)?)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d+(?:\.\d+)?)H)?(?:(?P<minutes>\d+(?:\.\d+)?)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """`[start, end)` in UTC; None leaves a side open."""

    start: datetime | None = None
    end: datetime | None = None


class TimespanError(UsageError):
    """A timespan that is not ISO 8601 as the API takes it."""

    code = "timespan"


def parse_duration(text: str) -> timedelta:
    """`P1DT2H` or `PT3600.0S`. Raises TimespanError; years and months have no fixed length and are refused."""
    match = _DURATION.fullmatch(text)
    if match is None:
        hint = " Hours, minutes and seconds stand after a T: PT1H." if re.fullmatch(r"P\d+[HS]", text) else ""
        raise TimespanError(
            f"'{text}' is not an ISO 8601 duration.{hint}", next_step="Write it like PT1H, P7D or P1DT12H."
        )
    try:
        return timedelta(**{unit: float(value) for unit, value in match.groupdict().items() if value is not None})
    except OverflowError as error:
        raise TimespanError(f"'{text}' is too long a time.", next_step="Use a shorter one, such as P90D.") from error


def parse_timespan(text: str | None, *, now: datetime) -> TimeRange:
    """The range that `text` means at `now` (aware). None and empty text mean all of time. Raises TimespanError."""
    if text is None or not text.strip():
        return TimeRange()
    parts = text.strip().split("/")
    if len(parts) > 2:
        raise TimespanError(f"'{text}' has more than one slash.", next_step="Write START/END or START/DURATION.")
    if len(parts) == 1:
        return TimeRange(_moved(now, -parse_duration(parts[0]), text), now.astimezone(UTC))
    first, second = parts
    if first.startswith("P"):
        end = _moment(second)
        return TimeRange(_moved(end, -parse_duration(first), text), end)
    start = _moment(first)
    end = _moved(start, parse_duration(second), text) if second.startswith("P") else _moment(second)
    if end < start:
        raise TimespanError(f"'{text}' ends before it starts.", next_step="Swap the two times.")
    return TimeRange(start, end)


def _moment(text: str) -> datetime:
    """A time with zone, or a time or date without: the service reads that as UTC."""
    for candidate in (text, f"{text}Z", f"{text}T00:00:00Z"):
        try:
            return parse_time(candidate)
        except (ValueError, OverflowError):
            continue
    raise TimespanError(f"'{text}' is not an ISO 8601 time.", next_step="Write it like 2024-07-02T09:45:00Z.")


def _moved(moment: datetime, by: timedelta, text: str) -> datetime:
    try:
        return (moment + by).astimezone(UTC)
    except OverflowError as error:
        raise TimespanError(f"'{text}' reaches outside the calendar.", next_step="Use a shorter time.") from error


# Independent of kql-duckdb, which looks names up before there is SQL: a fault in one is caught by the other.
_TABLE_FUNCTIONS = frozenset({"unnest", "generate_series", "range"})


def check_sql(cursor: duckdb.DuckDBPyConnection, sql: str, tables: Collection[str]) -> None:
    """Raise KqlError if the SQL is anything but a SELECT over `tables`."""
    from kql_duckdb.binder.scope import unresolved

    row = cursor.execute("SELECT json_serialize_sql(?)", [sql]).fetchone()
    tree: dict[str, Any] = json.loads(row[0]) if row else {"error": True}
    if tree.get("error") or len(tree.get("statements", ())) != 1:
        raise KqlError("The query cannot be computed: its SQL is not a single SELECT.", kql_code="SEN0002")
    nodes = list(_nodes(tree))
    bound = {entry["key"] for node in nodes if "cte_map" in node for entry in node["cte_map"]["map"]}
    for node in nodes:
        if node.get("type") == "BASE_TABLE":
            name = node["table_name"]
            plain = not node.get("catalog_name") and not node.get("schema_name")
            if not plain or (name not in tables and name not in bound):
                raise reported(unresolved("table or column", name, tables))
        elif node.get("type") == "TABLE_FUNCTION" and node["function"]["function_name"] not in _TABLE_FUNCTIONS:
            raise reported(unresolved("table or column", node["function"]["function_name"], tables))


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    stack = [value]
    while stack:
        current = stack.pop()
        if isinstance(current, dict):
            yield current
            stack.extend(current.values())
        elif isinstance(current, list):
            stack.extend(current)


# `StopSignal` is what a caller holds; `watched` stands around everything that a cursor does for one query. DuckDB
# forgets an interrupt that arrives between two statements, so a watch that has begun to stop repeats it until the query
# has left.
_REPEATED_EVERY_S = 0.02
_STARTS = 50


class StopSignal:
    """Asks one query to stop, from any thread, before or while it runs. Asking twice, or too late, does nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._given = False
        self._listener: Callable[[], None] | None = None

    @property
    def given(self) -> bool:
        return self._given

    def give(self) -> None:
        with self._lock:
            self._given = True
            listener = self._listener
        if listener is not None:
            listener()

    @contextmanager
    def heard_by(self, listener: Callable[[], None]) -> Iterator[None]:
        """Call `listener`, once and at once if the signal was given already, for the length of the block."""
        with self._lock:
            given = self._given
            self._listener = listener
        if given:
            listener()
        try:
            yield
        finally:
            with self._lock:
                self._listener = None


class Watch:
    """What stopped the watched query; None for one that was left alone."""

    reason: KqlTimeoutError | KqlCancelledError | None = None


@contextmanager
def watched(cursor: duckdb.DuckDBPyConnection, seconds: float, signal: StopSignal) -> Iterator[Watch]:
    """Interrupt whatever `cursor` does once `seconds` have passed or `signal` is given, until the block is left.

    Raises KqlTimeoutError or KqlCancelledError for a block that was stopped, KqlError for what DuckDB refuses in it.
    """
    import duckdb

    from kql_duckdb.engine import failure as in_words

    watch = Watch()
    wake = threading.Event()
    left = threading.Event()

    def wait_and_stop() -> None:
        woken = wake.wait(seconds)
        if left.is_set():
            return
        watch.reason = KqlCancelledError() if woken else KqlTimeoutError(seconds)
        cursor.interrupt()
        while not left.wait(_REPEATED_EVERY_S):
            cursor.interrupt()

    thread = _started(wait_and_stop)
    failure: duckdb.Error | MemoryError | None = None
    try:
        with signal.heard_by(wake.set):
            yield watch
    except (duckdb.Error, MemoryError) as error:
        failure = error
    finally:
        left.set()
        wake.set()
        thread.join()
    # Looked at before the failure: an interrupt can surface as any error, or as an answer that is not whole.
    if watch.reason is not None:
        raise watch.reason from failure
    if failure is not None:
        raise reported(in_words(failure)) from failure


def _started(work: Callable[[], None]) -> threading.Thread:
    """A running thread. Raises KqlMemoryError where there is no memory for its stack: nothing could stop the query.

    After a query that took all memory the one free stack may be that of the thread which has just ended, so starting is
    tried for a second.
    """
    for _ in range(_STARTS):
        thread = threading.Thread(target=work, name="query-watch", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            failure = error
            time.sleep(_REPEATED_EVERY_S)
        else:
            return thread
    raise KqlMemoryError from failure


# Cells as the service writes them, recorded from it: datetimes with 0 to 7 fraction digits and Z, decimals and dynamics
# as text. Most of the work is done by SQL around a query, and what SQL cannot say is finished here. A cell is text, a
# number, a boolean or None; only a string is never None.
Cell = bool | int | float | str | None

_CELLS = {
    # Arithmetic may leave the times that Kusto has, and no client could read such a cell.
    "datetime": "CASE WHEN {0} BETWEEN TIMESTAMP '0001-01-01' AND TIMESTAMP '9999-12-31 23:59:59.999999' "
    "THEN rtrim(rtrim(strftime({0}, '%Y-%m-%dT%H:%M:%S.%f'), '0'), '.') || 'Z' END",
    "guid": "CAST({0} AS VARCHAR)",
    "decimal": "CASE WHEN contains(CAST({0} AS VARCHAR), '.') THEN rtrim(rtrim(CAST({0} AS VARCHAR), '0'), '.') "
    "ELSE CAST({0} AS VARCHAR) END",
    # As the service: no white space between tokens, a JSON null is null, a bare string has no quotes.
    "dynamic": "CASE WHEN starts_with(CAST(json({0}) AS VARCHAR), '\"') THEN json_extract_string({0}, '$') "
    "ELSE nullif(CAST(json({0}) AS VARCHAR), 'null') END",
}


def cell_sql(column: str, kind: str) -> str:
    """The SQL that turns the quoted `column` of KQL type `kind` into its cell, as far as SQL can."""
    return _CELLS.get(kind, "{0}").format(column)


def _timespan(value: timedelta | None) -> str | None:
    from kql_duckdb.time_texts import timespan_text  # here, as the engine is loaded for a query and not before

    return None if value is None else timespan_text(value // timedelta(microseconds=1) * 10)


def _real(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


FINISHERS: Mapping[str, Callable[[Any], Cell]] = {"real": _real, "timespan": _timespan}
"""KQL type -> what is left to do in Python for its cells."""


# `encode_rows` turns batches of cells into that text as they come from the engine, up to the limits, so that an answer
# of 64 MB costs 64 MB and not ten times as much in Python objects. Readers in the same process decode it with `rows`.
@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Rows as the text of one JSON array of arrays, their number, and why there are no more (`partial`)."""

    text: bytes
    count: int
    partial: str = ""


@dataclass(frozen=True)
class KqlAnswer:
    """Columns with KQL types, rows of wire cells, and why the answer is incomplete (`partial`, empty if it is not)."""

    columns: tuple[Column, ...]
    encoded: EncodedRows
    tables: tuple[str, ...]
    duration_s: float

    @property
    def partial(self) -> str:
        return self.encoded.partial

    @property
    def row_count(self) -> int:
        return self.encoded.count

    @cached_property
    def rows(self) -> list[tuple[Cell, ...]]:
        return msgspec.json.decode(self.encoded.text, type=list[tuple[Any, ...]])

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "columns": [{"name": column.name, "type": column.type} for column in self.columns],
            "rows": [list(row) for row in self.rows],
            "partial": self.partial,
            "duration_s": self.duration_s,
        }


def encode_rows(batches: Iterable[list[tuple[Cell, ...]]], *, max_rows: int, max_bytes: int) -> EncodedRows:
    """The rows of `batches`, cut at `max_rows` or where their text would be longer than `max_bytes`."""
    text = bytearray(b"[")
    count = 0
    for batch in batches:
        room = max_rows - count
        cut = batch[:room]
        encoded = msgspec.json.encode(cut)
        if len(text) + len(encoded) > max_bytes:
            kept = _within(cut, max_bytes - len(text))
            _append(text, msgspec.json.encode(kept))
            reason = f"Query result set has exceeded the internal data size limit {max_bytes}"
            return EncodedRows(_closed(text), count + len(kept), reason)
        _append(text, encoded)
        count += len(cut)
        if len(batch) > room:
            reason = f"Query result set has exceeded the internal record count limit {max_rows}"
            return EncodedRows(_closed(text), count, reason)
    return EncodedRows(_closed(text), count)


def _append(text: bytearray, encoded: bytes) -> None:
    """Add the rows of one encoded array, each followed by a comma."""
    if len(encoded) > 2:
        text += memoryview(encoded)[1:-1]
        text += b","


def _closed(text: bytearray) -> bytes:
    if text.endswith(b","):
        text[-1:] = b"]"
    else:
        text += b"]"
    return bytes(text)


def _within(batch: list[tuple[Cell, ...]], room: int) -> list[tuple[Cell, ...]]:
    """As many leading rows as `room` bytes hold."""
    for count, row in enumerate(batch):
        room -= len(msgspec.json.encode(row)) + 1
        if room < 0:
            return batch[:count]
    return batch


_BATCH_ROWS = 4096


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Where an answer is cut (rows, bytes of its cells as JSON) and a query is stopped (seconds)."""

    max_rows: int = 500_000
    max_bytes: int = 64_000_000
    timeout_s: float = 180.0


def run(cursor: duckdb.DuckDBPyConnection, query: Translation, *, limits: QueryLimits, signal: StopSignal) -> KqlAnswer:
    """Execute and encode. Raises as `watched` does."""
    started = time.perf_counter()
    columns = tuple(Column(column.name, column.type.value) for column in query.columns)
    cells = ", ".join(f"{cell_sql(column.sql, column.type)} AS {column.sql}" for column in query.columns)
    with watched(cursor, limits.timeout_s, signal) as watch:
        check_sql(cursor, query.sql, query.tables)
        cursor.execute(f"SELECT {cells or '1'} FROM ({query.sql}) AS answer")  # noqa: S608
        batches = _batches(cursor, [column.type for column in columns], watch)
        if not columns:
            batches = ([()] * len(batch) for batch in batches)
        encoded = encode_rows(batches, max_rows=limits.max_rows, max_bytes=limits.max_bytes)
    return KqlAnswer(columns, encoded, tuple(sorted(query.tables)), time.perf_counter() - started)


def _batches(cursor: duckdb.DuckDBPyConnection, kinds: list[str], watch: Watch) -> Iterator[list[tuple[Cell, ...]]]:
    """Rows as cells, some thousands at a time, until there are none or the query is stopped."""
    finishers = [(index, FINISHERS[kind]) for index, kind in enumerate(kinds) if kind in FINISHERS]
    while batch := cursor.fetchmany(_BATCH_ROWS):
        if watch.reason is not None:
            return
        yield [_finished(row, finishers) for row in batch] if finishers else batch


def _finished(row: tuple[Any, ...], finishers: list[tuple[int, Any]]) -> tuple[Cell, ...]:
    cells = list(row)
    for index, finish in finishers:
        cells[index] = finish(cells[index])
    return tuple(cells)


# `Workspace.query` and the wire server call it from any thread; each call has its own cursor, so an import that runs at
# the same time is seen either not at all or whole.
_NAMES = 10_000
"""How many names of columns are asked of the data before it is given up; far above what an operator accepts."""

MAX_QUERY_CHARS = 1_000_000
"""As the service."""

_TRUNCATION = {"truncationmaxrecords": "max_rows", "truncationmaxsize": "max_bytes"}


class StoreTables:
    """The tables of a store as kql-duckdb looks them up: their strings are never null. `absent` ones have no rows and
    are read only by name, as a service's tables are of which nothing was ever kept."""

    def __init__(
        self, schema: Mapping[str, Mapping[str, str]], absent: Mapping[str, Mapping[str, str]] | None = None
    ) -> None:
        self._schema = schema
        self._absent = absent or {}

    def names(self) -> Iterable[str]:
        return self._schema

    def table(self, name: str) -> Table | None:
        from kql_duckdb.catalog import Table
        from kql_duckdb.types import KustoType

        columns = self._schema.get(name) or self._absent.get(name)
        if columns is None:
            return None
        kinds = {column: KustoType(kind) for column, kind in columns.items()}
        rows = "" if name in self._schema else empty_rows_sql(name, columns)
        return Table(name, kinds, rows, texts_are_never_null=True)


class KqlEngine:
    """Answers queries over `store`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def query(
        self, kql: str, *, timespan: str | TimeRange | None, limits: QueryLimits, signal: StopSignal | None = None
    ) -> KqlAnswer:
        """Translate and run `kql` until `signal` is given.

        Raises KqlError, KqlTimeoutError, KqlCancelledError or TimespanError.
        """
        from kql_duckdb.errors import not_supported

        window = timespan if isinstance(timespan, TimeRange) else parse_timespan(timespan, now=datetime.now(UTC))
        schema = self._store.schema()
        signal = signal or StopSignal()
        with self._store.cursor() as cursor:

            def ask(sql: str) -> list[tuple[Any, ...]]:
                self._ready(sql)
                with watched(cursor, limits.timeout_s, signal):
                    rows = cursor.execute(sql).fetchmany(_NAMES + 1)
                if len(rows) > _NAMES:
                    raise reported(not_supported("evaluate", "the data would name too many columns"))
                return rows

            query = translate(kql, schema, window, ask, absent=reference_tables())
            self._ready(query.sql)
            return run(cursor, query, limits=_narrowed(query.options, limits), signal=signal)

    def _ready(self, sql: str) -> None:
        """Register the functions of Python, if `sql` may call one; DuckDB loads numpy for them."""
        from kql_duckdb.functions import registry

        if "kql_" in sql:
            self._store.give_functions(registry.install)


def translate(
    kql: str,
    schema: Mapping[str, Mapping[str, str]],
    window: TimeRange,
    ask: Callable[[str], list[tuple[Any, ...]]] | None = None,
    *,
    absent: Mapping[str, Mapping[str, str]] | None = None,
) -> Translation:
    """The SQL for `kql` over the tables of `schema`, and `absent` ones without rows. Raises KqlError.

    `ask` gives the rows of SQL, for operators whose columns come from the data; without it they are refused.
    """
    from kql_duckdb import engine
    from kql_duckdb.errors import KqlError as PackageError

    if len(kql) > MAX_QUERY_CHARS:
        raise KqlError(
            f"The query has {len(kql):,} characters; {MAX_QUERY_CHARS:,} are allowed.",
            kql_code="SEN0003",
            next_step="Put long lists of values into a table and join it.",
        )
    timespan = (window.start, window.end) if window.start or window.end else None
    try:
        return engine.translate(kql, StoreTables(schema, absent), timespan=timespan, ask=ask)
    except PackageError as error:
        raise reported(error) from error


def _narrowed(options: Mapping[str, Any], limits: QueryLimits) -> QueryLimits:
    """The limits with what `set truncationmaxrecords=N` and its kin ask for. Raises KqlError for a bad value.

    `set notruncation` changes nothing: the service's own limits hold for everybody.
    """
    for name, limit in _TRUNCATION.items():
        if name not in options:
            continue
        value = options[name]
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise KqlError(
                f"set {name} needs a whole number, not {value!r}.",
                kql_code="SEM0040",
                next_step=f"Write set {name}=5000;",
            )
        limits = replace(limits, **{limit: min(getattr(limits, limit), value)})
    return limits
