"""How long rows take from the event to the log: a window that ends now is read before all of its rows are there.

Measured over the last week by ingestion_time(); where a service tells none, Microsoft's own figures stand
(learn.microsoft.com, "Log data ingestion time in Azure Monitor" and the page on moving to the Defender portal).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sentinel_rag.contracts.query_results import TimeWindow
from sentinel_rag.sentinel.workspace_view import WorkspaceView

SHORT = timedelta(hours=1)
"""A longer window does not hinge on its last minutes."""
_JUST_NOW = timedelta(minutes=30)
_USUAL = "20 seconds to 3 minutes on average, says Microsoft"
_OF_TABLES = {
    "SecurityIncident": "up to 5 minutes after the Defender portal, says Microsoft",
    "OfficeActivity": "half an hour and more, since Microsoft's Management Activity API guarantees no time",
}


async def delay_notes(view: WorkspaceView, table: str, window: TimeWindow) -> tuple[str, ...]:
    """What a reader must know of a short window that reaches to now; nothing of any other."""
    if not _is_short(window, view.clock()):
        return ()
    measured = await view.statistics.delay(table, view.clock())
    if measured is not None:
        half, most = measured
        told = f"half of its rows of the last week took {_shown(half)}, 95 % up to {_shown(most)} (ingestion_time())"
    else:
        told = f"{_OF_TABLES.get(table, _USUAL)} (this workspace tells no ingestion_time() of its own)"
    return (f"Rows reach {table} with a delay: {told}. The newest ones may be missing from so short a window.",)


def _is_short(window: TimeWindow, now: datetime) -> bool:
    if window.start is None or window.start >= now:
        return False
    end = min(window.end or now, now)
    return end - window.start <= SHORT and now - end < _JUST_NOW


def _shown(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{round(minutes / 60)} h"
