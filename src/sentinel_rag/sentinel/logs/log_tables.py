"""Tables of Log Analytics out of a response: read strictly by type, else leniently, partial ones told."""

from __future__ import annotations

import gc
import math
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from types import TracebackType
from typing import Any

import msgspec

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column, QueryFailedError, format_time
from sentinel_rag.sentinel import response_bodies
from sentinel_rag.sentinel.response_bodies import decode_strictly, load_cell, load_json, protocol_error

# The SDK's row objects cost six times as much for volume and turn a null guid or timespan into the text 'None'; these
# decoders work a column at a time.
_TIMESPAN = re.compile(r"(-)?(?:(\d+)\.)?(\d{1,2}):(\d{2}):(\d{2})(?:\.(\d{1,7}))?\Z")
_FIRST_OF_JSON = frozenset('{["-0123456789tfnNI \t\r\n')  # N and I: NaN and Infinity, which the reader takes
_REALS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@dataclass(frozen=True, slots=True)
class LogsTable:
    """The primary table of one answer. `partial_reason` is the service's sentence when it cut the result."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    query: str
    partial_reason: str = ""
    duration_ms: float = 0.0
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(column.name for column in self.columns))

    @property
    def partial(self) -> bool:
        return bool(self.partial_reason)

    def cut(self, reason: str) -> LogsTable:
        """The same table, told to be partial: whoever asked for no more rows than came knows that there are more."""
        return replace(self, partial_reason=self.partial_reason or reason)

    def column(self, name: str) -> list[Any]:
        """The cells of a column. Raises QueryFailedError PROTOCOL for one that the answer lacks."""
        if name not in self.names:
            raise _lacking(name)
        place = self.names.index(name)
        return [row[place] for row in self.rows]

    def records(self) -> Iterator[dict[str, Any]]:
        """One dict a row, by column name; of columns with one name the last wins."""
        for row in self.rows:
            yield _Record(zip(self.names, row, strict=True))


class _Record(dict[str, Any]):
    """A row that blames the service for a column which the query asked for and the answer lacks."""

    def __missing__(self, column: str) -> Any:
        raise _lacking(column)


def _lacking(column: str) -> QueryFailedError:
    return QueryFailedError(protocol_error(f"Log Analytics answered 200 without the column {column} of the query."))


def parse_datetime(text: str) -> datetime:
    """An ISO 8601 time of the wire in UTC; a seventh fraction digit is cut, a missing zone is UTC."""
    return in_utc(datetime.fromisoformat(text))


def in_utc(moment: datetime) -> datetime:
    """The moment in UTC, which is what one without a zone means."""
    if moment.tzinfo is UTC:
        return moment
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def parse_timespan(text: str) -> timedelta:
    """`[d.]hh:mm:ss[.fffffff]`. Raises ValueError for anything else."""
    match = _TIMESPAN.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a timespan")
    sign, days, hours, minutes, seconds, fraction = match.groups()
    in_day = int(hours) * 3600 + int(minutes) * 60 + int(seconds)
    span = timedelta(int(days) if days else 0, in_day, int(fraction.ljust(6, "0")[:6]) if fraction else 0)
    return -span if sign else span


def decode_timespans(cells: Sequence[Any]) -> list[Any]:
    """Each text once: durations of a log repeat. Raises ValueError as `parse_timespan`."""
    spans: dict[Any, Any] = {text: None if text is None else parse_timespan(text) for text in set(cells)}
    return [spans[text] for text in cells]


def parse_dynamic(value: Any) -> Any:
    """A dynamic cell: JSON text in a string. Text that is not JSON is a string value and stays what it is."""
    if not isinstance(value, str) or value[:1] not in _FIRST_OF_JSON:
        return value
    try:
        return load_cell(value)
    except ValueError:
        return value


def _parse_real(value: Any) -> float:
    return _REALS[value] if isinstance(value, str) and value in _REALS else float(value)


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "datetime": parse_datetime,
    "timespan": parse_timespan,
    "dynamic": parse_dynamic,
    "real": _parse_real,
    "bool": bool,
    "int": int,
    "long": int,
}
"""By KQL type; guid, string and decimal are text already (a decimal loses digits as a float)."""


def decode_table(
    table: Mapping[str, Any], query: str, *, partial_reason: str = "", duration_ms: float = 0
) -> LogsTable:
    """A table of the wire. Raises ValueError, KeyError or TypeError for one that does not hold to the protocol."""
    columns = tuple(Column(str(column["name"]), str(column["type"])) for column in table["columns"])
    if not columns:
        raise ValueError("every result of a query has a column")
    raw_rows: Sequence[Sequence[Any]] = table["rows"]
    if any(len(row) != len(columns) for row in raw_rows):
        raise ValueError("a row has another number of cells than the table has columns")
    decoded: list[Sequence[Any]] = []
    for index, column in enumerate(columns):
        decoder = _DECODERS.get(column.type)
        cells = [row[index] for row in raw_rows]
        decoded.append(cells if decoder is None else [None if cell is None else decoder(cell) for cell in cells])
    rows = tuple(zip(*decoded, strict=True))
    return LogsTable(columns, rows, query, partial_reason, duration_ms)


def json_cell(value: Any) -> JsonValue:
    """A decoded cell as JSON: times in ISO 8601 UTC, timespans as on the wire, NaN and infinities as their names."""
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, timedelta):
        return format_timespan(value)
    if isinstance(value, float) and not math.isfinite(value):
        return next(name for name, real in _REALS.items() if real == value or (value != value and real != real))
    cell: JsonValue = value
    return cell


def format_timespan(span: timedelta) -> str:
    """`[-][d.]hh:mm:ss[.fffffff]`, as the service writes it."""
    sign = "-" if span < timedelta(0) else ""
    span = abs(span)
    hours, rest = divmod(span.seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    days = f"{span.days}." if span.days else ""
    fraction = f".{span.microseconds:06d}0" if span.microseconds else ""
    return f"{sign}{days}{hours:02d}:{minutes:02d}:{seconds:02d}{fraction}"


# The fast way to read an answer of the Log Analytics wire: the columns first, then all rows as tuples of their types.
# It reads what holds to the protocol to the letter. For everything else it returns None, and the lenient reading
# decides; where both read an answer they read the same values.
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


def read_answer(content: bytes, kql: str, duration_ms: float) -> LogsTable:
    """The primary table of an HTTP 200. Raises QueryFailedError for a body that holds none."""
    if not content.strip():
        raise QueryFailedError(response_bodies.protocol_error("Log Analytics answered 200 with an empty body."))
    try:
        typed = read_typed(content)
        if typed is not None:
            reason = response_bodies.partial_reason(typed.error) if isinstance(typed.error, Mapping) else ""
            return typed.table(kql, partial_reason=reason, duration_ms=duration_ms)
        document = load_json(content)
        error = document.get("error")
        tables = document.get("tables") or []
        if not tables:
            if isinstance(error, Mapping):
                raise QueryFailedError(response_bodies.rejected_by_details(error))
            raise QueryFailedError(response_bodies.protocol_error("Log Analytics answered 200 without a table."))
        reason = response_bodies.partial_reason(error) if isinstance(error, Mapping) else ""
        primary = next((table for table in tables if table.get("name") == "PrimaryResult"), tables[0])
        return decode_table(primary, kql, partial_reason=reason, duration_ms=duration_ms)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise QueryFailedError(
            response_bodies.protocol_error("Log Analytics answered with something that is not a query result.")
        ) from error


def read_large_answer(content: bytes, kql: str, duration_ms: float) -> LogsTable:
    """As `read_answer`, without the garbage collector in between."""
    with collector_pause:
        return read_answer(content, kql, duration_ms)


def read_schema(content: bytes) -> dict[str, dict[str, str]]:
    """Table -> column -> KQL type of a metadata answer. Raises QueryFailedError for a body that is none."""
    try:
        return {
            str(table["name"]): {
                str(column["name"]): _kql_type(str(column["type"])) for column in table.get("columns") or ()
            }
            for table in load_json(content).get("tables") or ()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise QueryFailedError(
            response_bodies.protocol_error("Log Analytics answered with something that is not a schema.")
        ) from error


_OTHER_NAMES = {"boolean": "bool", "double": "real", "date": "datetime", "time": "timespan", "uuid": "guid"}


def _kql_type(name: str) -> str:
    """The type as queries write it; the service also has older names for some."""
    return _OTHER_NAMES.get(name.lower(), name.lower())


# The garbage collector left out while a large answer is decoded: it would walk the rows so far again and again.
#
# Nothing that a decoder makes is garbage before it is done, and it is done in a fraction of a second. Several may
# decode at once; the last one to leave lets the collector in again.


class CollectorPause:
    """A context manager for any thread, shared by all who pause."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._was_on = False

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._was_on = gc.isenabled()
                gc.disable()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._was_on:
                gc.enable()


collector_pause = CollectorPause()
