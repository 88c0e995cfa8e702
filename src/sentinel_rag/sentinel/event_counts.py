"""How many rows stand behind an alert: what the alert told when it was raised against what is there now, and why not.

Rows may be gone (retention), may never have been collected here, or may have arrived after the rule looked.
"""

from __future__ import annotations

from datetime import datetime

from sentinel_rag.contracts.query_results import TimeWindow, format_time
from sentinel_rag.sentinel.failures import QueryFailedError
from sentinel_rag.sentinel.kql_literals import datetime_literal
from sentinel_rag.sentinel.stored_query import StoredQuery
from sentinel_rag.sentinel.table_statistics import TableStatistics
from sentinel_rag.sentinel.workspace_view import WorkspaceView

LONGEST_WAIT_S = 10
"""Seconds that the count of late rows may take: nobody waits for an explanation of a figure."""


async def late_rows(view: WorkspaceView, table: str, window: TimeWindow, ran: datetime) -> int | None:
    """Rows of `table` in `window` that were ingested after `ran`; None where the workspace does not tell.

    `table` is a name of the workspace's schema, as the guard found it.
    """
    if not table.isidentifier():
        return None
    try:
        kql = f"{table}\n| where ingestion_time() > {datetime_literal(ran)}\n| count"
        answer = await view.logs.query(kql, window, wait_s=LONGEST_WAIT_S)
    except QueryFailedError:
        return None  # it only explains a figure
    return None if answer.partial or not answer.rows else int(answer.rows[0][0])


def count_notes(
    stored: StoredQuery, found: int | None, late: int | None, table: str, statistics: TableStatistics
) -> list[str]:
    """Why the figure of the alert and the figure of now differ, as far as it can be known."""
    notes = []
    if late:
        rows = "1 row" if late == 1 else f"{late} rows"
        notes.append(
            f"{rows} of {table} whose TimeGenerated lies in the window came after the rule looked: ingestion_time() is "
            f"later than {format_time(stored.query_now)}."
        )
    told = stored.event_count
    if found is None:
        notes.append("How many rows there are was not told.")
    elif told is not None and told != found:
        notes.append(
            f"The alert told {told} event{'s' if told != 1 else ''} when it was raised; {found} are found now."
        )
    if found == 0:
        notes.append(_why_none(stored, table, statistics))
    return notes


def _why_none(stored: StoredQuery, table: str, statistics: TableStatistics) -> str:
    if statistics.rows == 0:
        return f"{table} holds no rows at all here: its rows were never collected, or retention is over."
    start, end, oldest = stored.window.start, stored.window.end, statistics.oldest
    if oldest is not None and end is not None and oldest > end:
        return f"The oldest row of {table} is of {format_time(oldest)}, after the window: retention is over for it."
    if oldest is not None and start is not None and oldest > start:
        return f"The oldest row of {table} is of {format_time(oldest)}, inside the window: earlier ones may be gone."
    return (
        "The query ran and no row matches it now; what it looked at (a watchlist, threat intelligence, the rows) has "
        "changed since."
    )
