"""Times and spans as text: every form that Kusto reads, and the one that it writes.

Plain Python below everything: for literals, and through SQL for texts in the data that DuckDB's cast does not read. A
time has microseconds here: further digits are cut.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

_MONTH_NAMES = "jan feb mar apr may jun jul aug sep oct nov dec"
_MONTHS = {name: place for place, name in enumerate(_MONTH_NAMES.split(), start=1)}
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
        zone = parts.get("zone") or ""
        if zone[:1] not in ("+", "-"):
            return made
        digits = zone[1:].replace(":", "")
        hours, minutes = (digits[:-2], digits[-2:]) if len(digits) > 2 else (digits, "0")
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        return made + offset if zone[0] == "-" else made - offset
    except (ValueError, OverflowError):
        return None


TIME_UNITS: Final[dict[str, int | Decimal]] = {
    **dict.fromkeys(("d", "day", "days"), 864_000_000_000),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 36_000_000_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 600_000_000),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 10_000_000),
    **dict.fromkeys(("ms", "milli", "millis", "millisec", "millisecond", "milliseconds"), 10_000),
    **dict.fromkeys(("micro", "micros", "microsec", "microsecond", "microseconds"), 10),
    **dict.fromkeys(("nano", "nanos", "nanosec", "nanosecond", "nanoseconds"), Decimal("0.01")),
    **dict.fromkeys(("tick", "ticks"), 1),
}
"""Unit of a timespan -> ticks of 100 ns."""
_SPAN = re.compile(r"(?:(\d+)(?:\.|:(?=\d+:\d+:\d)))?(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,7})\d*)?)?")
_UNIT_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")


def span_ticks(text: str) -> int | None:
    """Return the ticks of 100 ns that `text` names, such as `1.02:03:04.5` or `90m`; None for any other text."""
    body = text.strip().removeprefix("-")
    sign = -1 if text.strip().startswith("-") else 1
    with_unit, clock = _UNIT_SPAN.fullmatch(body), _SPAN.fullmatch(body)
    if with_unit is not None and with_unit[2] in TIME_UNITS:
        return sign * int(Decimal(with_unit[1]) * TIME_UNITS[with_unit[2]])
    if clock is None:
        return None
    *whole, fraction = clock.groups(default="0")
    days, hours, minutes, seconds = map(int, whole)
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    return sign * ((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 10_000_000 + int(fraction.ljust(7, "0")))


def parse_timespan(text: str) -> timedelta | None:
    """Return the span that `text` names, without what is less than a microsecond; None for any other text."""
    ticks = span_ticks(text)
    try:
        return None if ticks is None else timedelta(microseconds=int(Decimal(ticks) / 10))
    except OverflowError:
        return None


def moment_of_epoch(microseconds: int) -> datetime | None:
    """Return the UTC time so many microseconds after 1970; None outside the years 1 to 9999."""
    try:
        return datetime.fromtimestamp(0, UTC).replace(tzinfo=None) + timedelta(microseconds=microseconds)
    except OverflowError:
        return None


def timespan_text(ticks: int) -> str:
    """Return a span as Kusto writes it: `[-][d.]hh:mm:ss[.fffffff]`."""
    sign, ticks = ("-", -ticks) if ticks < 0 else ("", ticks)
    seconds, fraction = divmod(ticks, 10_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    after = f".{fraction:07d}" if fraction else ""
    return f"{sign}{f'{days}.' if days else ''}{hours:02d}:{minutes:02d}:{seconds:02d}{after}"


def moment_text(microseconds: int) -> str | None:
    """Return the time so many microseconds after 1970 as Kusto writes it."""
    moment = moment_of_epoch(microseconds)
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}0Z" if moment else None
