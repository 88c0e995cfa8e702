"""Times as a person types them behind an option: `2026-11-28`, `2026-11-28T02:00:00Z`, or how long back from now.

What a length of time is, `sentinel.logs.time_windows` says for the tools and for the command line alike.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.contracts.query_results import TimeWindow
from sentinel_rag.sentinel.arguments import read_duration

_ABSOLUTE = re.compile(r"[0-9]{4}")


def moment(option: str, text: str) -> datetime:
    """The moment in UTC; a date alone is its first moment, and a time without a zone is read as UTC.

    Raises UsageError that names `option`.
    """
    reason = f"{option} {text!r} is no time."
    try:
        if _ABSOLUTE.match(text):
            found = datetime.fromisoformat(text)
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    else:
        try:
            return utc_now() - read_duration(text)
        except OverflowError:
            pass
        except ValueError as error:
            if text[:1] in "Pp":
                reason = f"{option}: {error}"
    raise UsageError(
        reason, next_step="Write 2026-11-28, 2026-11-28T02:00:00Z, or how long ago: 30m, 12h, 7d, PT4H, 'last 4 hours'."
    )


def window_of(since: str | None, until: str | None) -> TimeWindow:
    """The window of `--since` and `--until`; it ends now if only a start is given. Raises UsageError."""
    start = None if since is None else moment("--since", since)
    end = None if until is None else moment("--until", until)
    if start is not None and end is None:
        end = utc_now()
    if start is not None and end is not None and start >= end:
        raise UsageError(
            "The window ends at or before its start.", next_step="Give an --until that lies after --since."
        )
    return TimeWindow(start, end)
