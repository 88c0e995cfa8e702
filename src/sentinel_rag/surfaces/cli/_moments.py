"""Times as a person types them behind an option: `2026-11-28`, `2026-11-28T02:00:00Z`, or `12h` back from now."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.ports import utc_now

_AGO = re.compile(r"([0-9]{1,6})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def moment(option: str, text: str) -> datetime:
    """The moment in UTC; a date alone is its first moment, and a time without a zone is read as UTC.

    Raises UsageError that names `option`.
    """
    ago = _AGO.fullmatch(text)
    try:
        if ago is not None:
            return utc_now() - timedelta(seconds=int(ago[1]) * _SECONDS[ago[2]])
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{option} {text!r} is no time.",
            next_step="Write 2026-11-28, 2026-11-28T02:00:00Z, or how long ago: 30m, 12h, 7d.",
        ) from None
