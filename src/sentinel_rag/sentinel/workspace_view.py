"""One workspace as its tools see it: its rows, statistics, schema and clock, the way to change it, and how the answers
of the wire, or what goes wrong, become a `QueryResult`.

It is turned into one where it is understood best (the wire, the argument, the template); the tool server sends its
`error` and nothing else. No exception of Azure's SDK leaves this package.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.query_results import (
    Column,
    Coverage,
    QueryFailedError,
    QueryResult,
    TimeWindow,
    invalid_argument,
)
from sentinel_rag.language.notes import CodedNote, note
from sentinel_rag.sentinel.logs.log_analytics import LogsTable, LogsWorkspace
from sentinel_rag.sentinel.rest import SentinelRest

# Remembered for half a minute, because a schema of Azure is megabytes and a query that is put right asks for it again.
# A name that is not in it is looked up anew: a table that was just made must not be denied.
Schema = Mapping[str, Mapping[str, str]]
"""Table -> column -> KQL type."""

# How much a table holds and over which times, so that an empty result can say where rows exist. One cheap query for
# each table, remembered for half a minute; an empty table is never remembered, so that rows which just arrived are not
# denied.
REMEMBERED_FOR_S = 30.0


class WorkspaceSchema:
    """Reads and remembers the schema of one workspace. `monotonic` is a clock in seconds."""

    def __init__(self, workspace: LogsWorkspace, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._workspace = workspace
        self._monotonic = monotonic
        self._remembered: Schema = {}
        self._read_at = float("-inf")

    async def read(self, *, anew: bool = False) -> Schema:
        """The schema; with `anew` as it is now. Raises QueryFailedError."""
        if anew or self._monotonic() - self._read_at >= REMEMBERED_FOR_S:
            self._remembered = await self._workspace.schema()
            self._read_at = self._monotonic()
        return self._remembered

    async def table(self, name: str) -> tuple[str, Mapping[str, str]]:
        """A table by its name in any case: the name as the workspace writes it, and its columns.

        Raises QueryFailedError INVALID_ARGUMENT with the nearest names for one that is not there."""
        wanted = name.strip().removeprefix("[").removesuffix("]").strip("\"'")
        for anew in (False, True):
            schema = await self.read(anew=anew)
            found = wanted if wanted in schema else _in_any_case(wanted, schema)
            if found is not None:
                return found, schema[found]
        raise _no_table(wanted, schema)


def _in_any_case(name: str, schema: Schema) -> str | None:
    same = [table for table in schema if table.casefold() == name.casefold()]
    return same[0] if len(same) == 1 else None


def _no_table(name: str, schema: Schema) -> QueryFailedError:
    from sentinel_rag.sentinel.kql_guard.analysis import (
        nearest_names,  # its package costs the tool server's start 20 ms
    )

    near = nearest_names(name, schema)
    shown = name if len(name) <= 60 else name[:60] + "…"
    if not schema:
        return invalid_argument(
            "table", f"The workspace has no table {shown!r}; it tells no tables at all.", next_step="Try list_tables."
        )
    return invalid_argument(
        "table",
        f"The workspace has no table {shown!r}." + (f" Did you mean {' or '.join(near)}?" if near else ""),
        allowed=near,
        next_step="list_tables tells which tables hold rows.",
    )


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


@dataclass(frozen=True, slots=True)
class WorkspaceView:
    """Made once for each workspace; every tool takes it first. Without `rest` nothing can be changed."""

    logs: LogsWorkspace
    statistics: TableStatisticsReader
    schema: WorkspaceSchema
    clock: Clock
    rest: SentinelRest | None = None


# Measured over the last week by ingestion_time(); where a service tells none, Microsoft's own figures stand
# (learn.microsoft.com, "Log data ingestion time in Azure Monitor" and the page on moving to the Defender portal).
SHORT = timedelta(hours=1)
"""A longer window does not hinge on its last minutes."""
_JUST_NOW = timedelta(minutes=30)
_USUAL = "20 seconds to 3 minutes on average, says Microsoft"
_OF_TABLES = {
    "SecurityIncident": "up to 5 minutes after the Defender portal, says Microsoft",
    "OfficeActivity": "half an hour and more, since Microsoft's Management Activity API guarantees no time",
}


async def delay_notes(view: WorkspaceView, table: str, window: TimeWindow) -> tuple[CodedNote, ...]:
    """What a reader must know of a short window that reaches to now; nothing of any other."""
    if not _is_short(window, view.clock()):
        return ()
    measured = await view.statistics.delay(table, view.clock())
    if measured is None:
        return (note("rows_are_usually_late", table=table, usual=_OF_TABLES.get(table, _USUAL)),)
    return (note("rows_are_late", table=table, half=_shown(measured[0]), most=_shown(measured[1])),)


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


LONGEST_DESCRIPTION = 300
WHOLE_DESCRIPTION = 5000
"""Characters of a description that is told whole: Sentinel keeps no longer one of an incident."""
FEW_ROWS = 5
"""Rows up to which descriptions are told whole."""
_LINE_BREAKS = re.compile(r"\s*[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\s*")


def shortened(text: str | None, longest: int = LONGEST_DESCRIPTION) -> str | None:
    """One line of at most `longest` characters, cut with an ellipsis; None for nothing."""
    if text is None:
        return None
    line = " ".join(text.split())
    if not line:
        return None
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def one_line(text: str, longest: int) -> str:
    """The text as it is, with each line break as one space, cut with an ellipsis at `longest` characters."""
    line = _LINE_BREAKS.sub(" ", text).strip()
    return line if len(line) <= longest else line[: longest - 1] + "…"


def build_result(
    columns: Sequence[Column],
    rows: Sequence[Mapping[str, JsonValue]],
    *,
    tables: tuple[str, ...],
    window: TimeWindow,
    time_column: str,
    rows_total: int | None,
    answers: Sequence[LogsTable],
    statistics: TableStatistics,
    summary: Mapping[str, JsonValue],
    notes: Sequence[CodedNote],
    shown_query: str = "",
) -> QueryResult:
    """A cut in any of `answers` makes the result partial; the service adds of which workspace it is
    and how long it took. Coverage shows `shown_query`, which finds as many rows as `rows_total`
    says, or the text of `answers[0]` where it is left out."""
    reasons = list(dict.fromkeys(answer.partial_reason for answer in answers if answer.partial))
    return QueryResult(
        columns=tuple(columns),
        rows=tuple(rows),
        summary=summary,
        notes=tuple(dict.fromkeys(notes)),
        coverage=Coverage(
            workspace="",
            tables=tables,
            window=window,
            time_column=time_column,
            rows_returned=len(rows),
            rows_total=rows_total,
            query=shown_query or (answers[0].query if answers else ""),
            duration_ms=0.0,
            partial=bool(reasons),
            partial_reason=" ".join(reasons),
            table_rows=statistics.rows,
            table_oldest=statistics.oldest,
            table_newest=statistics.newest,
        ),
    )


def told_result(
    columns: Sequence[Column],
    rows: Sequence[Mapping[str, JsonValue]],
    *,
    summary: Mapping[str, JsonValue],
    rows_total: int | None = None,
    notes: Sequence[CodedNote] = (),
) -> QueryResult:
    """A result that is known without asking the service: no table, no window, no query."""
    return build_result(
        columns,
        rows,
        tables=(),
        window=TimeWindow(),
        time_column="",
        rows_total=len(rows) if rows_total is None else rows_total,
        answers=(),
        statistics=TableStatistics(),
        summary=summary,
        notes=notes,
    )


def lower_bound(counted: int, seen: int) -> dict[str, JsonValue]:
    """What a summary tells in place of counts that are not of everything: how many there are `at_least`. Each count of
    a cut answer is too low by nobody knows how much, and would contradict the others."""
    return {"at_least": max(counted, seen)}


def ordered(counts: Mapping[str, int], order: Iterable[str]) -> dict[str, int]:
    """Counts above zero, the known names in `order` first, then the others by name."""
    known = [name for name in order if counts.get(name)]
    others = sorted(name for name, count in counts.items() if count and name not in known)
    return {name: counts[name] for name in (*known, *others)}


# A reader of a `QueryError` wants the sentence of the query that failed, not a group of one.
