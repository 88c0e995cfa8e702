"""Times and spans as products write them into an alert's ExtendedProperties: ISO 8601, .NET's US form, `dd.hh:mm:ss`.

Nothing here says a zone but the names of the keys ("... UTC"), so a time without one is UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from sentinel_rag.sentinel.log_tables import parse_timespan

_SLASHED = re.compile(
    r"(\d{1,2})/(\d{1,2})/(\d{4})[,\s]+(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,7}))?)?\s*([AP]\.?M\.?)?", re.IGNORECASE
)
_FRACTION = re.compile(r"(\.\d{6})\d+")
_ISO_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")


def stored_time(value: Any) -> datetime | None:
    """The moment that a text tells, in UTC; None for text that is none.

    Of `7/8/2024` the month comes first, as .NET writes it; a first number above 12 is a day.
    """
    text = str(value or "").strip()
    text = re.sub(r"\s*(?:UTC|GMT|Z)$", "", text, flags=re.IGNORECASE)
    slashed = _SLASHED.fullmatch(text)
    try:
        moment = _from_slashed(slashed) if slashed else datetime.fromisoformat(_FRACTION.sub(r"\1", text))
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _from_slashed(match: re.Match[str]) -> datetime:
    first, second, year, hour, minute = (int(match[place]) for place in range(1, 6))
    month, day = (second, first) if first > 12 else (first, second)
    half = (match[8] or "").replace(".", "").upper()
    if half:
        if not 1 <= hour <= 12:
            raise ValueError("no hour of a half day")
        hour = hour % 12 + (12 if half == "PM" else 0)
    fraction = int((match[7] or "0")[:6].ljust(6, "0"))
    return datetime(year, month, day, hour, minute, int(match[6] or 0), fraction, tzinfo=UTC)


def stored_span(value: Any) -> timedelta | None:
    """The length that `14.00:00:00`, `05:00:00` or `P14D` tells; None for text that is none, or of no length."""
    text = str(value or "").strip()
    iso = _ISO_DURATION.fullmatch(text)
    try:
        if iso is not None and any(iso.groups()):
            days, hours, minutes, seconds = (int(part or 0) for part in iso.groups())
            span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        else:
            span = parse_timespan(text)
    except (ValueError, OverflowError):
        return None
    return span if span > timedelta(0) else None
