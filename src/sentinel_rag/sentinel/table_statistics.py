"""How much a table holds and over which times, so that an empty result can say where rows exist.

One cheap query for each table, remembered for half a minute; an empty table is never remembered, so that rows which
just arrived are not denied.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sentinel_rag.contracts.query_results import TimeWindow
from sentinel_rag.sentinel.failures import QueryFailedError
from sentinel_rag.sentinel.log_analytics import LogsWorkspace

REMEMBERED_FOR_S = 30.0
_DELAY_REMEMBERED_FOR_S = 600.0
_DELAY_OVER = timedelta(days=7)
_LONGEST_WAIT_S = 10
"""Nobody waits longer for an explanation of a figure."""


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """Rows of a whole table and the span of one of its time columns; all None where the table could not be read."""

    rows: int | None = None
    oldest: datetime | None = None
    newest: datetime | None = None


class TableStatisticsReader:
    """Reads and remembers statistics of one workspace. `monotonic` is a clock in seconds."""

    def __init__(self, workspace: LogsWorkspace, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._workspace = workspace
        self._monotonic = monotonic
        self._remembered: dict[tuple[str, str], tuple[float, TableStatistics]] = {}
        self._delays: dict[str, tuple[float, tuple[float, float] | None]] = {}

    async def delay(self, table: str, now: datetime) -> tuple[float, float] | None:
        """Seconds from TimeGenerated to ingestion_time() within which half, and 95 %, of the rows of the week before
        `now` came; None where they are not told. `table` comes from our own text."""
        remembered = self._delays.get(table)
        if remembered is not None and self._monotonic() - remembered[0] < _DELAY_REMEMBERED_FOR_S:
            return remembered[1]
        kql = (
            f"{table}\n| extend Delay = (ingestion_time() - TimeGenerated) / 1s\n"
            "| summarize Half = percentile(Delay, 50), Most = percentile(Delay, 95)"
        )
        try:
            answer = await self._workspace.query(kql, TimeWindow(now - _DELAY_OVER, None), wait_s=_LONGEST_WAIT_S)
        except QueryFailedError:
            return None
        row = None if answer.partial else next(answer.records(), None)
        found = (row["Half"], row["Most"]) if row is not None and row["Half"] is not None and row["Most"] else None
        self._delays[table] = (self._monotonic(), found)
        return found

    async def read(self, table: str, time_column: str = "TimeGenerated") -> TableStatistics:
        """Both names come from our own text. A failure, or an answer that was cut, gives empty
        statistics: they only explain a result."""
        remembered = self._remembered.get((table, time_column))
        if remembered is not None and self._monotonic() - remembered[0] < REMEMBERED_FOR_S:
            return remembered[1]
        kql = f"{table}\n| summarize Rows = count(), Oldest = min({time_column}), Newest = max({time_column})"
        try:
            answer = await self._workspace.query(kql)
        except QueryFailedError:
            return TableStatistics()
        if answer.partial:
            return TableStatistics()
        row = next(answer.records(), None)
        if row is None:
            return TableStatistics(rows=0)
        statistics = TableStatistics(row["Rows"], row["Oldest"], row["Newest"])
        if statistics.rows:
            self._remembered[(table, time_column)] = (self._monotonic(), statistics)
        return statistics
