"""Times and spans as text: every form that Kusto reads, and the one that it writes.

Plain Python below everything: for literals, and through SQL for texts in the data that DuckDB's cast does not read. A
time has microseconds here: further digits are cut.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_MONTHS = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
}
_CLOCK = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?\s*(?P<half>[AaPp][Mm])?"
)
_ZONE = r"\s*(?P<zone>Z|z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?)?"
_TAIL = rf"(?:(?:[Tt]|\s+){_CLOCK}{_ZONE})?"
_DAY_NAME = r"(?:[A-Za-z]{3,9},?\s+)?"
_FORMS = tuple(
    re.compile(form)
    for form in (
        rf"(?P<year>\d{{4}})[-/.](?P<month>\d{{1,2}})(?:[-/.](?P<day>\d{{1,2}}))?{_TAIL}",
        rf"(?P<month>\d{{1,2}})[-/.](?P<day>\d{{1,2}})[-/.](?P<year>\d{{4}}){_TAIL}",
        rf"{_DAY_NAME}(?P<day>\d{{1,2}})[ -](?P<name>[A-Za-z]{{3,9}})[ -](?P<year>\d{{2,4}}){_TAIL}",
        rf"{_DAY_NAME}(?P<name>[A-Za-z]{{3,9}})\s+(?P<day>\d{{1,2}}),?\s+(?P<year>\d{{4}}){_TAIL}",
        r"(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})(?:[Tt]?(?P<hour>\d{2})(?P<minute>\d{2})(?P<second>\d{2})?)?",
        r"(?P<year>(?:19|20)\d{2})",
    )
)


def parse_datetime(text: str) -> datetime | None:
    """Return the UTC time, without a zone, that `text` names in a form of Kusto; None for any other text."""
    stripped = text.strip()
    for form in _FORMS:
        found = form.fullmatch(stripped)
        if found is not None:
            return _moment(found.groupdict())
    return None


def _moment(parts: dict[str, str | None]) -> datetime | None:
    month = parts.get("month") or "1"
    if name := parts.get("name"):
        month = str(_MONTHS.get(name[:3].lower(), 0))
    year = int(parts["year"] or 0)
    if len(parts["year"] or "") == 2:
        year += 2000 if year < 50 else 1900
    hour = int(parts.get("hour") or 0)
    if half := parts.get("half"):
        hour = hour % 12 + (12 if half.lower() == "pm" else 0)
    fraction = ((parts.get("fraction") or "") + "000000")[:6]
    clock = (hour, int(parts.get("minute") or 0), int(parts.get("second") or 0), int(fraction))
    try:
        if clock == (24, 0, 0, 0):
            return datetime(year, int(month), int(parts.get("day") or 1)) + timedelta(days=1)  # noqa: DTZ001
        made = datetime(year, int(month), int(parts.get("day") or 1), *clock)  # noqa: DTZ001 - UTC, held without zone
        return made - _offset(parts.get("zone"))
    except (ValueError, OverflowError):
        return None


def _offset(zone: str | None) -> timedelta:
    if not zone or zone[0] not in "+-":
        return timedelta()
    digits = zone[1:].replace(":", "")
    hours, minutes = (digits[:-2], digits[-2:]) if len(digits) > 2 else (digits, "0")
    span = timedelta(hours=int(hours), minutes=int(minutes))
    return -span if zone[0] == "-" else span


_SPAN = re.compile(r"(-)?(?:(\d+)\.)?(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d+))?)?")
_UNITS = {
    "d": 86_400_000_000, "day": 86_400_000_000, "days": 86_400_000_000,
    "h": 3_600_000_000, "hr": 3_600_000_000, "hrs": 3_600_000_000, "hour": 3_600_000_000, "hours": 3_600_000_000,
    "m": 60_000_000, "min": 60_000_000, "minute": 60_000_000, "minutes": 60_000_000,
    "s": 1_000_000, "sec": 1_000_000, "second": 1_000_000, "seconds": 1_000_000,
    "ms": 1_000, "milli": 1_000, "millis": 1_000, "millisec": 1_000, "millisecond": 1_000, "milliseconds": 1_000,
    "micro": 1, "micros": 1, "microsec": 1, "microsecond": 1, "microseconds": 1,
    "tick": 0.1, "ticks": 0.1,
}  # fmt: skip
_UNIT_SPAN = re.compile(r"(-?\d+(?:\.\d+)?)\s*([a-z]+)")


def parse_timespan(text: str) -> timedelta | None:
    """Return the span that `text` names, such as `1.02:03:04.5` or `90m`; None for any other text."""
    stripped = text.strip()
    found = _SPAN.fullmatch(stripped)
    if found is None:
        return _with_unit(stripped)
    sign, days, hours, minutes, seconds, fraction = found.groups()
    if int(hours) > 23 or int(minutes) > 59 or int(seconds or 0) > 59:
        return None
    try:
        span = timedelta(
            days=int(days or 0),
            hours=int(hours),
            minutes=int(minutes),
            seconds=int(seconds or 0),
            microseconds=int(((fraction or "") + "000000")[:6]),
        )
    except OverflowError:
        return None
    return -span if sign else span


def _with_unit(text: str) -> timedelta | None:
    found = _UNIT_SPAN.fullmatch(text)
    unit = _UNITS.get(found[2]) if found else None
    if found is None or unit is None:
        return None
    try:
        return timedelta(microseconds=float(found[1]) * unit)
    except OverflowError:
        return None


def moment_of_epoch(microseconds: int) -> datetime | None:
    """Return the UTC time so many microseconds after 1970; None outside the years 1 to 9999."""
    try:
        return datetime.fromtimestamp(0, UTC).replace(tzinfo=None) + timedelta(microseconds=microseconds)
    except OverflowError:
        return None


def span_text(microseconds: int) -> str:
    """Return a span as Kusto writes it: `[-][d.]hh:mm:ss[.fffffff]`."""
    span = timedelta(microseconds=abs(microseconds))
    hours, rest = divmod(span.seconds, 3600)
    days = f"{span.days}." if span.days else ""
    fraction = f".{span.microseconds:06d}0" if span.microseconds else ""
    return f"{'-' if microseconds < 0 else ''}{days}{hours:02d}:{rest // 60:02d}:{rest % 60:02d}{fraction}"


def moment_text(microseconds: int) -> str | None:
    """Return the time so many microseconds after 1970 as Kusto writes it."""
    moment = moment_of_epoch(microseconds)
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}0Z" if moment else None
