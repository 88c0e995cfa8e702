"""The tool get_alert_events: the raw rows behind an alert, by the query that its rule left in it.

The query is text of a row, which an attacker may have written: it passes the KQL guard like anybody's, runs in the
alert's own window with a cap of rows and a deadline, and nothing of it steers anything here. An alert without a query,
or with one that may not or cannot run, is answered with the evidence that there is instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode, QueryResult, TimeWindow
from sentinel_rag.sentinel import newest_alerts
from sentinel_rag.sentinel.alert_evidence import evidence_of, without_query
from sentinel_rag.sentinel.alert_filters import alert_conditions
from sentinel_rag.sentinel.alerts import Alert
from sentinel_rag.sentinel.concurrency import together
from sentinel_rag.sentinel.event_counts import count_notes, late_rows
from sentinel_rag.sentinel.failures import QueryFailedError
from sentinel_rag.sentinel.incident_links import incident_links
from sentinel_rag.sentinel.kql_literals import datetime_literal
from sentinel_rag.sentinel.log_tables import LogsTable
from sentinel_rag.sentinel.results import Stopwatch, build_result, one_line
from sentinel_rag.sentinel.stored_query import StoredQuery, stored_query, taken_apart
from sentinel_rag.sentinel.table_statistics import TableStatistics
from sentinel_rag.sentinel.template_queries import json_rows
from sentinel_rag.sentinel.workspace_view import WorkspaceView

if TYPE_CHECKING:
    from sentinel_rag.sentinel.kql_guard import GuardReport, KqlGuard

WAIT_S = 50
"""Seconds after which the service stops a query: less than the gateway waits, so that the reason arrives."""
MOST_AT_ONCE = 2
"""Stored queries that run at a time, of the five that a connection may have: slow ones must not hold up other tools."""
LONGEST_SHOWN_QUERY = 4000
MOST_PROBLEMS = 5
_TIME = "TimeGenerated"
_ENDED_BY_THE_QUERY = frozenset({QueryErrorCode.QUERY_REJECTED, QueryErrorCode.TIMEOUT})


@dataclass(frozen=True, slots=True)
class _Checked:
    """A form of the stored query with the guard's verdict; `whole_rule` for the rule's query over all its alerts."""

    kql: str
    report: GuardReport
    whole_rule: bool = False


class AlertEvents:
    """Runs stored queries behind a guard that `make_guard` gives when the first of them comes, and that is closed here.

    Without `make_guard` it is one with whichever parser is installed. `allowed_tables` None means every table of the
    workspace; `wait_s` is the time that the service may take for a query.
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

    async def get_alert_events(self, view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
        """Rows in the query's own columns; shapes in `contracts.tool_schemas`. Raises QueryFailedError."""
        stopwatch = Stopwatch()
        found = await view.logs.query(_alerts_with_id(arguments))
        alerts = [Alert.from_record(record) for record in found.records()]
        if not alerts:
            return _result(view, stopwatch, answers=(found,), summary={}, notes=(_no_alert(arguments["alert_id"]),))
        alert = alerts[0]
        links = await incident_links(view, (alert.alert_id,))
        summary = evidence_of(alert, links.number_of(alert.alert_id))
        notes = [] if len(alerts) == 1 else [f"{len(alerts)} alerts have this id; the one recorded last was taken."]
        stored = stored_query(alert.record)
        if stored is None:
            notes.append(without_query(alert))
            summary |= {"ran": False, "why_not": "no_query"}
            return _result(view, stopwatch, answers=(found,), summary=summary, notes=notes)
        summary |= _told(stored)
        checked = await self._first_allowed(view, stored)
        if not checked.report.allowed:
            notes.append(_refused(checked.report))
            summary |= {"ran": False, "why_not": "refused", "problems": _problems(checked.report)}
            return _result(view, stopwatch, answers=(found,), window=stored.window, summary=summary, notes=notes)
        async with self._slots:
            return await self._run(view, stopwatch, stored, checked, arguments["limit"], summary, notes)

    async def _run(
        self,
        view: WorkspaceView,
        stopwatch: Stopwatch,
        stored: StoredQuery,
        checked: _Checked,
        limit: int,
        summary: dict[str, JsonValue],
        notes: list[str],
    ) -> QueryResult:
        at = f"set query_now = {datetime_literal(stored.query_now)};\n"
        tables = tuple(sorted(checked.report.tables))
        first = tables[0] if tables else ""
        span = stored.window
        try:
            (rows, counted), statistics, late = await together(
                lambda: together(
                    lambda: view.logs.query(f"{at}{checked.kql}\n| take {limit}", span, wait_s=self._wait_s),
                    lambda: view.logs.query(f"{at}{checked.kql}\n| count", span, wait_s=self._wait_s),
                ),
                lambda: _statistics(view, tables),
                lambda: late_rows(view, first, stored.window, stored.query_now),
            )
        except QueryFailedError as failure:
            if failure.error.code not in _ENDED_BY_THE_QUERY:
                raise
            notes.append(f"{failure.error.message} {failure.error.next_step}".strip())
            summary |= {"ran": False, "why_not": "failed", "parser": checked.report.parser}
            return _result(
                view, stopwatch, tables=tables, window=stored.window, answers=(), summary=summary, notes=notes
            )
        total = None if counted.partial or not counted.rows else int(counted.rows[0][0])
        if checked.whole_rule:
            notes.append(
                "The alert's own query may not run here, so the whole query of its rule was run: some of these rows "
                "may belong to other alerts of the same run."
            )
        if checked.report.parser == "fallback":
            notes.append("Microsoft's parser is not installed, so a stricter one checked the query.")
        notes += count_notes(stored, total, late, first, statistics)
        summary |= {
            "ran": True,
            "why_not": None,
            "parser": checked.report.parser,
            "events_found": total,
            "late_rows": late,
        }
        answers = (replace(rows, query=checked.kql), replace(counted, query=checked.kql))
        return _result(
            view,
            stopwatch,
            tables=tables,
            window=stored.window,
            answers=answers,
            rows=rows,
            limit=limit,
            total=total,
            statistics=statistics,
            summary=summary,
            notes=notes,
        )

    async def _first_allowed(self, view: WorkspaceView, stored: StoredQuery) -> _Checked:
        """The first form of the query that the guard lets run; the likeliest form with its problems if none may."""
        forms = [(kql, False) for kql in stored.candidates]
        if stored.rule_query:
            forms.append((taken_apart(stored.rule_query)[1], True))
        first: _Checked | None = None
        for kql, whole_rule in forms:
            report = await self._report(view, kql)
            checked = _Checked(kql, report, whole_rule)
            if report.allowed:
                return checked
            first = first or checked
        assert first is not None
        return first

    async def _report(self, view: WorkspaceView, kql: str) -> GuardReport:
        """What is checked is what runs: the query with what is put behind it. The `set` before it is ours alone."""
        schema = await view.schema.read()
        guard = await self._started_guard()
        try:
            return await guard.check(
                f"{kql}\n| take 1", schema, time_bounded=True, row_cap=1, allowed_tables=self._allowed_tables
            )
        except UnavailableError as error:
            raise QueryFailedError(
                QueryError(code=QueryErrorCode.UNAVAILABLE, message=str(error), next_step=error.next_step)
            ) from None

    async def _started_guard(self) -> KqlGuard:
        async with self._starting:
            if self._guard is None:
                self._guard = await anyio.to_thread.run_sync(self._make_guard)
        return self._guard


def _installed_guard() -> KqlGuard:
    from sentinel_rag.sentinel.kql_guard import KqlGuard, installed_parser

    return KqlGuard(installed_parser())


def _alerts_with_id(arguments: Mapping[str, Any]) -> str:
    base = newest_alerts.newest_alerts(alert_conditions({"alert_id": arguments["alert_id"]}))
    return newest_alerts.listed(base, TimeWindow(), newest_alerts.FIRST_ROW, "newest", 10)


def _no_alert(alert_id: str) -> str:
    return f"No alert of this workspace has the id {alert_id[:200]!r} (SystemAlertId, VendorOriginalId or portal URL)."


def _told(stored: StoredQuery) -> dict[str, JsonValue]:
    """What the alert says of its query, as data."""
    return {
        "rule_name": one_line(stored.rule_name, 300) or None,
        "query": stored.text[:LONGEST_SHOWN_QUERY],
        "query_cut": len(stored.text) > LONGEST_SHOWN_QUERY,
        "window": {**stored.window.to_dict()},
        "window_told_by": stored.told_by,
        "events_told": stored.event_count,
    }


def _refused(report: GuardReport) -> str:
    errors = report.errors
    first = errors[0]
    more = f" ({len(errors) - 1} more)" if len(errors) > 1 else ""
    return (
        f"The query that the alert holds was not run: {first.message.rstrip('.')}{more}. "
        "Read it in `query`; whoever knows the rule can run it in the portal."
    )


def _problems(report: GuardReport) -> list[JsonValue]:
    return [problem.to_dict() for problem in report.errors[:MOST_PROBLEMS]]


async def _statistics(view: WorkspaceView, tables: tuple[str, ...]) -> TableStatistics:
    return await view.statistics.read(tables[0], _TIME) if tables else TableStatistics()


def _result(
    view: WorkspaceView,
    stopwatch: Stopwatch,
    *,
    answers: tuple[LogsTable, ...],
    summary: Mapping[str, JsonValue],
    notes: Any,
    tables: tuple[str, ...] = (newest_alerts.ALERT_TABLE,),
    window: TimeWindow | None = None,
    rows: LogsTable | None = None,
    limit: int = 0,
    total: int | None = None,
    statistics: TableStatistics | None = None,
) -> QueryResult:
    return build_result(
        () if rows is None else rows.columns,
        () if rows is None else json_rows(rows, limit),
        workspace=view.logs.name,
        tables=tables,
        window=window or TimeWindow(),
        time_column=_TIME,
        rows_total=total if rows is not None else 0,
        answers=answers,
        statistics=statistics or TableStatistics(),
        stopwatch=stopwatch,
        summary=summary,
        notes=notes,
    )
