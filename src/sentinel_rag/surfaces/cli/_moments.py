"""Times as a person types them behind an option: `2026-11-28`, `2026-11-28T02:00:00Z`, or `12h` back from now."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.contracts.query_results import parse_time

_AGO = re.compile(r"([0-9]{1,6})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def moment(option: str, text: str, *, now: datetime | None = None) -> datetime:
    """The moment in UTC; a date alone is its first moment. Raises UsageError that names `option`."""
    ago = _AGO.fullmatch(text)
    try:
        if ago is not None:
            return (now or utc_now()) - timedelta(seconds=int(ago[1]) * _SECONDS[ago[2]])
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
            return datetime.fromisoformat(text).replace(tzinfo=UTC)
        return parse_time(text)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{option} {text!r} is no time.",
            next_step="Write 2026-11-28, 2026-11-28T02:00:00Z, or how long ago: 30m, 12h, 7d.",
        ) from None
