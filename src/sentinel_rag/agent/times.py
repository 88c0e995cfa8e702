"""How times and windows are written for people: in UTC first, then in the session's time zone where it differs.

One place, so that every time of a result is written in the same way.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.query_results import TimeWindow, parse_time


def zone_named(name: str) -> ZoneInfo:
    """The zone of an IANA name. Raises UsageError for one that is not known."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UsageError(
            f"{name!r} is not a time zone.", next_step="Give an IANA name such as Europe/Berlin or UTC."
        ) from error


def show_time(moment: datetime, zone: tzinfo = UTC) -> str:
    """`2024-07-02 09:45:00 UTC`, with the local time behind it where the session has another time zone."""
    text = moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    local = moment.astimezone(zone)
    if local.utcoffset() == timedelta(0):
        return text
    same_day = local.date() == moment.astimezone(UTC).date()
    return f"{text} ({local.strftime('%H:%M:%S' if same_day else '%Y-%m-%d %H:%M:%S')} {zone_name(local)})"


def zone_name(local: datetime) -> str:
    """`CEST`, or `UTC+05:30` where the zone has no letters for it."""
    name = local.tzname() or ""
    return name if name.isalpha() else "UTC" + local.strftime("%z")[:3] + ":" + local.strftime("%z")[3:5]


def show_value(text: str, zone: tzinfo = UTC) -> str:
    """`show_time` of an ISO time from a row; text that is none comes back as it is."""
    try:
        return show_time(parse_time(text), zone)
    except ValueError:
        return text


def show_window(window: TimeWindow, zone: tzinfo = UTC) -> str:
    """`from 2024-07-02 00:00:00 UTC to before 2024-07-03 00:00:00 UTC`; open sides are said in words."""
    if window.start is None and window.end is None:
        return "all retained data"
    if window.start is None:
        assert window.end is not None
        return f"everything before {show_time(window.end, zone)}"
    if window.end is None:
        return f"everything since {show_time(window.start, zone)}"
    return f"from {show_time(window.start, zone)} to before {show_time(window.end, zone)}"


def show_duration(seconds: float) -> str:
    """`2 days 3 hours`, `45 minutes`, `12 seconds`: the two largest units that are not zero."""
    return _in_units(round(seconds), 2) or "under a second"


def show_age(age: timedelta) -> str:
    """`3 minutes`, `5 hours`, `12 days`: whole units, the largest that fits."""
    return _in_units(max(0, int(age.total_seconds()) // 60 * 60), 1) or "under a minute"


def _in_units(left: int, most: int) -> str:
    parts: list[str] = []
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        count, left = divmod(left, size)
        if count and len(parts) < most:
            parts.append(f"{count} {unit}{'' if count == 1 else 's'}")
    return " ".join(parts)
