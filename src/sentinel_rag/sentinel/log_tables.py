"""Rows of the Log Analytics wire as Python values.

The SDK's row objects cost six times as much for volume and turn a null guid or timespan into the text 'None'; these
decoders work a column at a time. Above lies `log_analytics`, which fetches; below are the error's words alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column, format_time
from sentinel_rag.sentinel.error_bodies import protocol_error
from sentinel_rag.sentinel.failures import QueryFailedError
from sentinel_rag.sentinel.json_text import load_cell

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
