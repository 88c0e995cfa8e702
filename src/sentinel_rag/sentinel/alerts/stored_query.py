"""The query of a rule that an alert stored: read, guarded, run again, its events counted."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode, QueryFailedError, TimeWindow, format_time
from sentinel_rag.language.notes import CodedNote, note
from sentinel_rag.sentinel.alerts.alerts import extended_properties
from sentinel_rag.sentinel.arguments import read_span
from sentinel_rag.sentinel.freeform_query import without_chart
from sentinel_rag.sentinel.logs.kql_literals import datetime_literal
from sentinel_rag.sentinel.logs.log_analytics import LogsTable
from sentinel_rag.sentinel.response_bodies import together
from sentinel_rag.sentinel.workspace_view import TableStatistics, WorkspaceView

if TYPE_CHECKING:
    from sentinel_rag.sentinel.kql_guard import GuardReport, KqlGuard, KqlProblem


# Nothing here says a zone but the names of the keys ("... UTC"), so a time without one is UTC.
_SLASHED = re.compile(
    r"(\d{1,2})/(\d{1,2})/(\d{4})[,\s]+(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,7}))?)?\s*([AP]\.?M\.?)?", re.IGNORECASE
)
_FRACTION = re.compile(r"(\.\d{6})\d+")


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
    try:
        span = read_span(str(value or ""))
    except (ValueError, OverflowError):
        return None
    return span if span > timedelta(0) else None


# Whoever can write an alert row (a product, an import) writes this text, so it is data: here it is only read and taken
# apart. Whether it may run the KQL guard decides, and `alert_events` runs it.
LONGEST_WINDOW = timedelta(days=31)
"""A rule looks back 14 days at most; a window that claims more is cut from its end."""
DEFAULT_MARGIN = timedelta(hours=1)
"""Around the alert's activity, where the alert tells neither window nor period."""

_PREAMBLE = re.compile(r"\s*(?://[^\r\n]*(?:\r\n|\r|\n|$)\s*)*")
_QUERY_NOW = re.compile(r"set\s+query_now\s*=\s*datetime\s*\(\s*[\"']?([^\"'()]{1,64})[\"']?\s*\)\s*;", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AlertQuery:
    """`text` as the alert holds it; `candidates` are the forms of it that may run, the likeliest first.

    `window` is where the rule looked and `told_by` says how that is known; `query_now` is the moment that `ago()` and
    `now()` count from. `event_count` is how many rows the alert says there were.
    """

    text: str
    candidates: tuple[str, ...]
    window: TimeWindow
    told_by: str
    query_now: datetime
    event_count: int | None
    rule_name: str
    rule_query: str = ""


def stored_query(record: Mapping[str, Any]) -> AlertQuery | None:
    """From a newest row of SecurityAlert; None if it holds no query."""
    properties = _by_plain_name(extended_properties(record["ExtendedProperties"]))
    text = str(properties.get("query") or "").strip()
    rule_query = str(properties.get("originalquery") or "").strip()
    if not text:
        text, rule_query = rule_query, ""
    if not text:
        return None
    candidates = _candidates(text)
    if not candidates:
        return None
    window, told_by = _window(record, properties)
    assert window.end is not None
    query_now, _ = taken_apart(text)
    return AlertQuery(
        text=text,
        candidates=candidates,
        window=window,
        told_by=told_by,
        query_now=query_now or window.end,
        event_count=_count(properties),
        rule_name=str(properties.get("analyticrulename") or ""),
        rule_query=rule_query if rule_query != text else "",
    )


def taken_apart(text: str) -> tuple[datetime | None, str]:
    """The moment that `set query_now = ...` at the beginning names, and the query behind it.

    Every other `set` stays where it is, for the guard to refuse by name. A closing `;` and a `render` go.
    """
    begin = _PREAMBLE.match(text)
    setting = _QUERY_NOW.match(text, begin.end() if begin else 0)
    moment = None
    if setting is not None:
        moment = stored_time(setting[1])
        text = text[setting.end() :] if moment is not None else text
    return moment, without_chart(text.strip()).rstrip()


def _candidates(text: str) -> tuple[str, ...]:
    """The text itself, and what it may have been before something wrote it into a string a second time."""
    forms: list[Any] = [text]
    if "\\" in text:
        try:
            forms.append(json.loads(f'"{text}"', strict=False))
        except ValueError:
            quoted = text.replace('\\"', '"')
            forms += [quoted, quoted.replace("\\r\\n", "\n").replace("\\n", "\n").replace("\\t", "\t")]
    if "&" in text:
        forms.append(html.unescape(text))
    parts = (taken_apart(form)[1] for form in forms if isinstance(form, str))
    return tuple(part for part in dict.fromkeys(parts) if part)


def _window(record: Mapping[str, Any], properties: Mapping[str, Any]) -> tuple[TimeWindow, str]:
    start = stored_time(properties.get("querystarttimeutc") or properties.get("querystarttime"))
    end = stored_time(properties.get("queryendtimeutc") or properties.get("queryendtime"))
    period = stored_span(properties.get("queryperiod"))
    try:
        if start is not None and end is not None and start < end:
            if end - start > LONGEST_WINDOW:
                days = LONGEST_WINDOW.days
                told = f"the alert tells a window from {format_time(start)}; only its last {days} days were read"
                return TimeWindow(end - LONGEST_WINDOW, end), told
            return TimeWindow(start, end), "the window that the alert tells (Query Start Time UTC, Query End Time UTC)"
        length = min(period or DEFAULT_MARGIN, LONGEST_WINDOW)
        if end is not None and period is not None:
            return TimeWindow(end - length, end), "the end and the period that the alert tells"
        if start is not None and period is not None:
            return TimeWindow(start, start + length), "the start and the period that the alert tells"
        return _around_activity(record, length)
    except OverflowError:
        return _around_activity(record, DEFAULT_MARGIN)


def _around_activity(record: Mapping[str, Any], margin: timedelta) -> tuple[TimeWindow, str]:
    written = record["TimeGenerated"]
    first, last = record["StartTime"] or written, record["EndTime"] or record["StartTime"] or written
    first, last = min(first, last), max(first, last)
    if last - first > LONGEST_WINDOW:
        first = last - LONGEST_WINDOW
    hours = margin / timedelta(hours=1)
    told = (
        f"the alert tells no window of its query, so its activity (StartTime to EndTime) with {hours:g} "
        f"hour{'' if hours == 1 else 's'} on either side"
    )
    try:
        return TimeWindow(first - margin, last + margin), told
    except OverflowError:
        return TimeWindow(first, last), told


def _count(properties: Mapping[str, Any]) -> int | None:
    for name in ("searchqueryresultsoverallcount", "eventcount", "totalevents", "resultcount"):
        text = str(properties.get(name) or "").strip()
        if re.fullmatch(r"\d{1,12}", text):
            return int(text)
    return None


def _by_plain_name(properties: Mapping[str, Any] | None) -> dict[str, Any]:
    """By name in lower case without blanks and signs: products write `Query Start Time UTC` and `QueryStartTimeUtc`."""
    return {re.sub(r"[^a-z0-9]", "", str(name).lower()): value for name, value in (properties or {}).items()}


# Rows may be gone (retention), may never have been collected here, or may have arrived after the rule looked.
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
    stored: AlertQuery, found: int | None, late: int | None, table: str, statistics: TableStatistics
) -> list[CodedNote]:
    """Why the figure of the alert and the figure of now differ, as far as it can be known."""
    notes = []
    if late:
        notes.append(note("rows_came_late", count=late, table=table, ran=stored.query_now))
    told = stored.event_count
    if found is None:
        notes.append(note("events_not_counted"))
    elif told is not None and told != found:
        notes.append(note("events_differ", told=told, found=found))
    if found == 0:
        notes.append(_why_none(stored, table, statistics))
    return notes


def _why_none(stored: AlertQuery, table: str, statistics: TableStatistics) -> CodedNote:
    if statistics.rows == 0:
        return note("table_never_filled", table=table)
    start, end, oldest = stored.window.start, stored.window.end, statistics.oldest
    if oldest is not None and end is not None and oldest > end:
        return note("retention_over", table=table, oldest=oldest)
    if oldest is not None and start is not None and oldest > start:
        return note("retention_inside_window", table=table, oldest=oldest)
    return note("rows_changed_since")


# The query is text of a row, which an attacker may have written, so it passes the KQL guard like anybody's, and what is
# checked is what runs: the query with our cap behind it. The clock before it (`set query_now`) is ours alone, written
# from a time.
WAIT_S = 45
"""Seconds for a whole run, its waiting for a slot and all its queries: less than the gateway waits, so that the reason
arrives."""
GRACE_S = 5
"""Seconds beyond that in which the service's own reason may arrive."""
MOST_AT_ONCE = 2
"""Stored queries that run at a time, of the five that a connection may have: slow ones must not hold up other tools."""
_ENDED_BY_THE_QUERY = frozenset({QueryErrorCode.QUERY_REJECTED, QueryErrorCode.TIMEOUT})


@dataclass(frozen=True, slots=True)
class QueryRan:
    """Rows, and how many there are in all (None if that was not told). `whole_rule` is True where the rule's query for
    all its alerts stood in for the alert's own."""

    rows: LogsTable
    total: int | None
    tables: tuple[str, ...]
    parser: str
    statistics: TableStatistics
    late: int | None
    whole_rule: bool


@dataclass(frozen=True, slots=True)
class QueryNotRun:
    """`why` is refused (by the guard, with `problems`) or failed (in the workspace); `told` is for the reader.
    `slow` if it ran out of time."""

    why: str
    told: CodedNote
    problems: tuple[KqlProblem, ...] = ()
    tables: tuple[str, ...] = ()
    slow: bool = False


class StoredQueryRunner:
    """Runs stored queries behind a guard that `make_guard` gives when the first of them comes, and that is closed here.

    Without `make_guard` it is one with whichever parser is installed. `allowed_tables` None means every table of the
    workspace; `wait_s` is the time that a whole run may take.
    """

    def __init__(
        self,
        make_guard: Callable[[], KqlGuard] | None = None,
        *,
        allowed_tables: frozenset[str] | None = None,
        wait_s: int = WAIT_S,
    ) -> None:
        self._make_guard = make_guard or _installed_guard
        self._guard: KqlGuard | None = None
        self._starting = anyio.Lock()
        self._slots = anyio.Semaphore(MOST_AT_ONCE)
        self._allowed_tables = allowed_tables
        self._wait_s = wait_s

    async def close(self) -> None:
        """End the parser, if it was started."""
        if self._guard is not None:
            await self._guard.close()

    async def run(self, view: WorkspaceView, stored: AlertQuery, limit: int) -> QueryRan | QueryNotRun:
        """The first form of the query that may run and does; the first one's fault if none does. A form that took too
        long is the last: the others are the same query, read otherwise.

        Raises QueryFailedError for what is no fault of the query (throttled, no access, no answer)."""
        first: QueryNotRun | None = None
        forms = [(kql, False) for kql in stored.candidates]
        if stored.rule_query:
            forms.append((taken_apart(stored.rule_query)[1], True))
        ends = anyio.current_time() + self._wait_s
        # The service ends a query at `ends` and tells why; only an answer that then is still away is not waited for.
        with anyio.move_on_after(self._wait_s + GRACE_S):
            async with self._slots:
                for kql, whole_rule in forms:
                    outcome = await self._run_form(view, stored, kql, limit, ends, whole_rule=whole_rule)
                    if isinstance(outcome, QueryRan) or outcome.slow:
                        return outcome
                    first = first or outcome
        return first or QueryNotRun("failed", note("stored_query_too_slow", seconds=self._wait_s))

    async def _run_form(
        self, view: WorkspaceView, stored: AlertQuery, kql: str, limit: int, ends: float, *, whole_rule: bool
    ) -> QueryRan | QueryNotRun:
        report = await self._report(view, kql)
        tables = tuple(sorted(report.tables))
        if not report.allowed:
            return QueryNotRun("refused", _refusal(report), report.errors, tables)
        at = f"set query_now = {datetime_literal(stored.query_now)};\n"
        first = tables[0] if tables else ""
        try:
            (rows, total), statistics, late = await together(
                lambda: self._rows(view, stored, at + kql, limit, ends),
                lambda: _statistics(view, first),
                lambda: late_rows(view, first, stored.window, stored.query_now),
            )
        except QueryFailedError as failure:
            if failure.error.code not in _ENDED_BY_THE_QUERY:
                raise
            slow = failure.error.code is QueryErrorCode.TIMEOUT
            told = note("stored_query_failed", reason=f"{failure.error.message} {failure.error.next_step}".strip())
            return QueryNotRun("failed", told, (), tables, slow)
        return QueryRan(replace(rows, query=kql), total, tables, report.parser, statistics, late, whole_rule)

    async def _rows(
        self, view: WorkspaceView, stored: AlertQuery, kql: str, limit: int, ends: float
    ) -> tuple[LogsTable, int | None]:
        """The first rows and how many there are; counted only if there are more than came."""
        rows = await view.logs.query(f"{kql}\n| take {limit}", stored.window, wait_s=_seconds_until(ends))
        if len(rows.rows) < limit and not rows.partial:
            return rows, len(rows.rows)
        counted = await view.logs.query(f"{kql}\n| count", stored.window, wait_s=_seconds_until(ends))
        return rows, None if counted.partial or not counted.rows else int(counted.rows[0][0])

    async def _report(self, view: WorkspaceView, kql: str) -> GuardReport:
        schema = await view.schema.read()
        async with self._starting:
            if self._guard is None:
                self._guard = await anyio.to_thread.run_sync(self._make_guard)
        try:
            return await self._guard.check(
                f"{kql}\n| take 1", schema, time_bounded=True, row_cap=1, allowed_tables=self._allowed_tables
            )
        except UnavailableError as error:
            raise QueryFailedError(
                QueryError(code=QueryErrorCode.UNAVAILABLE, message=str(error), next_step=error.next_step)
            ) from None


def _seconds_until(ends: float) -> int:
    return max(1, math.ceil(ends - anyio.current_time()))


def _installed_guard() -> KqlGuard:
    from sentinel_rag.sentinel.kql_guard import KqlGuard, installed_parser

    return KqlGuard(installed_parser())


def _refusal(report: GuardReport) -> CodedNote:
    first = report.errors[0].message.rstrip(".")
    return note("stored_query_refused", problem=first, more=len(report.errors) - 1 or None)


async def _statistics(view: WorkspaceView, table: str) -> TableStatistics:
    return await view.statistics.read(table) if table else TableStatistics()
