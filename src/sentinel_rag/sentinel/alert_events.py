"""The tool get_alert_events: the raw rows behind an alert, by the query that its rule left in it.

The rows come from the query (`stored_query_runs`), or from the alert itself where it carries them (`recorded_events`).
An alert without a query, or with one that may not or cannot run, is answered with the evidence that there is instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import QueryResult, TimeWindow
from sentinel_rag.sentinel import newest_alerts
from sentinel_rag.sentinel.alert_evidence import evidence_of, without_query
from sentinel_rag.sentinel.alert_filters import alert_conditions
from sentinel_rag.sentinel.alerts import Alert
from sentinel_rag.sentinel.event_counts import count_notes
from sentinel_rag.sentinel.incident_links import incident_links
from sentinel_rag.sentinel.log_tables import LogsTable
from sentinel_rag.sentinel.recorded_events import columns_of, recorded_events
from sentinel_rag.sentinel.results import Stopwatch, build_result, one_line
from sentinel_rag.sentinel.stored_query import StoredQuery, stored_query
from sentinel_rag.sentinel.stored_query_runs import WAIT_S, QueryNotRun, QueryRan, StoredQueryRunner
from sentinel_rag.sentinel.table_statistics import TableStatistics
from sentinel_rag.sentinel.template_queries import json_rows
from sentinel_rag.sentinel.workspace_view import WorkspaceView

if TYPE_CHECKING:
    from sentinel_rag.sentinel.kql_guard import KqlGuard

LONGEST_SHOWN_QUERY = 4000
MOST_PROBLEMS = 5
_CARRIED = "The alert carries its events itself, packed in its query: they were read there, and nothing was run."
_WHOLE_RULE = (
    "The alert's own query may not run here, so the whole query of its rule was run: some of these rows may belong to "
    "other alerts of the same run."
)
_FALLBACK = "Microsoft's parser is not installed, so a stricter one checked the query."


class AlertEvents:
    """The tool with what its queries need; the parameters are those of `StoredQueryRunner`."""

    def __init__(
        self,
        make_guard: Callable[[], KqlGuard] | None = None,
        *,
        allowed_tables: frozenset[str] | None = None,
        wait_s: int = WAIT_S,
    ) -> None:
        self._queries = StoredQueryRunner(make_guard, allowed_tables=allowed_tables, wait_s=wait_s)

    async def close(self) -> None:
        """End what the queries started."""
        await self._queries.close()

    async def get_alert_events(self, view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
        """Rows in the query's own columns; shapes in `contracts.tool_schemas`. Raises QueryFailedError."""
        told = _Telling(view, arguments["limit"])
        found = await view.logs.query(_alerts_with_id(arguments))
        alerts = [Alert.from_record(record) for record in found.records()]
        if not alerts:
            return told.nothing({}, _no_alert(arguments["alert_id"]), answer=found)
        alert = alerts[0]
        if len(alerts) > 1:
            told.notes.append(f"{len(alerts)} alerts have this id; the one recorded last was taken.")
        links = await incident_links(view, (alert.alert_id,))
        evidence = evidence_of(alert, links.number_of(alert.alert_id))
        stored = stored_query(alert.record)
        if stored is None:
            return told.nothing({**evidence, "ran": False, "why_not": "no_query"}, without_query(alert), answer=found)
        evidence |= _of_query(stored)
        carried = recorded_events(stored.text)
        if carried:
            return told.carried(evidence, stored, carried)
        match await self._queries.run(view, stored, arguments["limit"]):
            case QueryNotRun() as refused:
                return told.not_run(evidence, stored, refused, answer=found)
            case QueryRan() as ran:
                return told.ran(evidence, stored, ran)


class _Telling:
    """Makes the answer about one alert, whichever it is."""

    def __init__(self, view: WorkspaceView, limit: int) -> None:
        self._view = view
        self._limit = limit
        self._stopwatch = Stopwatch()
        self.notes: list[str] = []

    def nothing(self, summary: Mapping[str, JsonValue], sentence: str, *, answer: LogsTable) -> QueryResult:
        self.notes.append(sentence)
        return self._result(summary, answer=answer, tables=(newest_alerts.ALERT_TABLE,), window=TimeWindow())

    def not_run(
        self, evidence: dict[str, JsonValue], stored: StoredQuery, refused: QueryNotRun, *, answer: LogsTable
    ) -> QueryResult:
        self.notes.append(refused.sentence)
        problems: list[JsonValue] = [problem.to_dict() for problem in refused.problems[:MOST_PROBLEMS]]
        summary = {**evidence, "ran": False, "why_not": refused.why, "problems": problems}
        return self._result(summary, answer=answer, tables=refused.tables, window=stored.window)

    def carried(
        self, evidence: dict[str, JsonValue], stored: StoredQuery, events: list[dict[str, JsonValue]]
    ) -> QueryResult:
        self.notes.append(_CARRIED)
        columns = columns_of(events)
        rows = tuple(tuple(event.get(column.name) for column in columns) for event in events)
        table = LogsTable(columns, rows, stored.text)
        summary = {**evidence, "ran": True, "why_not": None, "source": "alert", "events_found": len(events)}
        tables = (newest_alerts.ALERT_TABLE,)
        return self._result(summary, rows=table, total=len(events), tables=tables, window=stored.window)

    def ran(self, evidence: dict[str, JsonValue], stored: StoredQuery, ran: QueryRan) -> QueryResult:
        if ran.whole_rule:
            self.notes.append(_WHOLE_RULE)
        if ran.parser == "fallback":
            self.notes.append(_FALLBACK)
        first = ran.tables[0] if ran.tables else ""
        self.notes += count_notes(stored, ran.total, ran.late, first, ran.statistics)
        summary: dict[str, JsonValue] = {
            **evidence,
            "ran": True,
            "why_not": None,
            "source": "query",
            "parser": ran.parser,
            "events_found": ran.total,
            "late_rows": ran.late,
        }
        return self._result(
            summary, rows=ran.rows, total=ran.total, tables=ran.tables, window=stored.window, statistics=ran.statistics
        )

    def _result(
        self,
        summary: Mapping[str, JsonValue],
        *,
        tables: Sequence[str],
        window: TimeWindow,
        rows: LogsTable | None = None,
        answer: LogsTable | None = None,
        total: int | None = 0,
        statistics: TableStatistics | None = None,
    ) -> QueryResult:
        shown = rows or answer
        return build_result(
            () if rows is None else rows.columns,
            () if rows is None else json_rows(rows, self._limit),
            workspace=self._view.logs.name,
            tables=tuple(tables),
            window=window,
            time_column=newest_alerts.ALERT_TIME,
            rows_total=total,
            answers=() if shown is None else (shown,),
            statistics=statistics or TableStatistics(),
            stopwatch=self._stopwatch,
            summary=summary,
            notes=self.notes,
        )


def _alerts_with_id(arguments: Mapping[str, Any]) -> str:
    base = newest_alerts.newest_alerts(alert_conditions({"alert_id": arguments["alert_id"]}))
    return newest_alerts.listed(base, TimeWindow(), newest_alerts.FIRST_ROW, "newest", 10)


def _no_alert(alert_id: str) -> str:
    return f"No alert of this workspace has the id {alert_id[:200]!r} (SystemAlertId, VendorOriginalId or portal URL)."


def _of_query(stored: StoredQuery) -> dict[str, JsonValue]:
    """What the alert says of its query, as data."""
    return {
        "rule_name": one_line(stored.rule_name, 300) or None,
        "query": stored.text[:LONGEST_SHOWN_QUERY],
        "query_cut": len(stored.text) > LONGEST_SHOWN_QUERY,
        "window": {**stored.window.to_dict()},
        "window_told_by": stored.told_by,
        "events_told": stored.event_count,
    }
