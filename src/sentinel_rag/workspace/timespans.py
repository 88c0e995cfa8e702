"""The `timespan` of the query API: ISO 8601 durations and intervals, as Azure's clients write them.

Accepted: `PT3600.0S`, `P7D`, `start/end`, `start/duration`, `duration/end`. A duration alone ends now. Pure; the
result is the half-open range that the KQL layer puts in front of each read of a table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.query_results import parse_time

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
