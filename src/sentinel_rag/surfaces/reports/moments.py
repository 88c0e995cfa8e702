"""Times of a report: in UTC, and beside it in the person's zone."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sentinel_rag.contracts.query_results import parse_time


def both(moment: datetime | str, timezone: str) -> str:
    """`2026-11-28 02:10:05 UTC (03:10 Europe/Berlin)`; in UTC alone where nobody knows the zone. A text that is no time
    stays as it is."""
    try:
        known = (parse_time(moment) if isinstance(moment, str) else moment).astimezone(UTC)
    except (ValueError, OverflowError):
        return str(moment)
    shown = f"{known:%Y-%m-%d %H:%M:%S} UTC"
    if timezone in ("", "UTC"):
        return shown
    try:
        local = known.astimezone(ZoneInfo(timezone))
        day = "" if local.date() == known.date() else f"{local:%Y-%m-%d} "
    except (ValueError, OverflowError, ZoneInfoNotFoundError, OSError):
        return shown
    return f"{shown} ({day}{local:%H:%M} {timezone})"
