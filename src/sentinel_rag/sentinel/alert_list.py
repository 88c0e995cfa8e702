"""The tool query_alerts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import QueryResult, TimeWindow
from sentinel_rag.contracts.tool_schemas import ALERT_STATUSES, SEVERITIES
from sentinel_rag.language.notes import CodedNote, note
from sentinel_rag.sentinel.alerts import newest_alerts
from sentinel_rag.sentinel.alerts.alerts import ALERT_COLUMNS, UNKNOWN, Alert, alert_conditions, alert_name, row_budget
from sentinel_rag.sentinel.alerts.newest_alerts import ALERT_TIME, FIRST_ROW
from sentinel_rag.sentinel.arguments import window_from
from sentinel_rag.sentinel.incidents.entity_search import find_entity_alerts
from sentinel_rag.sentinel.incidents.incident_resolution import Resolution, resolve_incident
from sentinel_rag.sentinel.incidents.incidents import (
    INCIDENT_TABLE,
    alert_ids_of,
    incident_links,
    reader_notes,
)
from sentinel_rag.sentinel.logs.kql_literals import MOST_IDS_IN_A_QUERY, NameReading, list_literal, readings_summary
from sentinel_rag.sentinel.logs.log_analytics import LogsTable
from sentinel_rag.sentinel.response_bodies import together
from sentinel_rag.sentinel.workspace_view import WorkspaceView, build_result, delay_notes, lower_bound, ordered


def late_notes(found: Sequence[Alert], window: TimeWindow, time_column: str) -> list[CodedNote]:
    """Alerts that were recorded in the window and tell of what happened before it: the record came late."""
    start = window.start
    if start is None or time_column != ALERT_TIME:
        return []
    late = [alert for alert in found if alert.record["EndTime"] is not None and alert.record["EndTime"] < start]
    if not late:
        return []
    gap = max(alert.record[FIRST_ROW] - alert.record["EndTime"] for alert in late) / timedelta(hours=1)
    return [note("alerts_recorded_late", count=len(late), hours=gap)]


_COMMONEST_NAMES = 20


@dataclass(frozen=True, slots=True)
class AlertTotals:
    """Counts over all matching alerts. `begun` counts those whose StartTime lies in the window."""

    groups: tuple[tuple[str, str, str, str, int], ...]
    begun: int = 0

    @property
    def total(self) -> int:
        return sum(group[4] for group in self.groups)

    def summary(self) -> dict[str, JsonValue]:
        return {
            "by_severity": ordered(self._by(0), reversed(SEVERITIES)),
            "by_status": ordered(self._by(1), ALERT_STATUSES),
            "by_name": dict(self._by(2).most_common(_COMMONEST_NAMES)),
            "by_product": dict(self._by(3).most_common()),
        }

    def by_severity(self) -> dict[str, int]:
        return ordered(self._by(0), reversed(SEVERITIES))

    def by_name(self) -> Counter[str]:
        return self._by(2)

    def _by(self, place: int) -> Counter[str]:
        counts: Counter[str] = Counter()
        for group in sorted(self.groups, key=lambda item: str(item[place])):
            counts[str(group[place])] += group[4]
        return counts

    @classmethod
    def from_counts(cls, answer: LogsTable, measure: str = "Recorded") -> AlertTotals:
        """From the answer to `newest_alerts.counted`; `measure` is Recorded or Begun."""
        records = list(answer.records())
        return cls(
            tuple(_group(record, record[measure]) for record in records if record[measure]),
            sum(record["Begun"] for record in records),
        )

    @classmethod
    def from_alerts(cls, found: Iterable[Alert]) -> AlertTotals:
        return cls(tuple(_group(alert.record, 1) for alert in found))


def _group(record: Mapping[str, Any], count: int) -> tuple[str, str, str, str, int]:
    return (
        record["AlertSeverity"] or UNKNOWN,
        record["Status"] or UNKNOWN,
        alert_name(record),
        record["ProductName"] or UNKNOWN,
        count,
    )


@dataclass(frozen=True, slots=True)
class _Selection:
    """Alerts to return, totals of all that match, the answers they came from (coverage shows the first).

    `whole` is False if more alerts may match than were looked at, so that the totals are a lower bound.
    """

    alerts: tuple[Alert, ...]
    totals: AlertTotals
    answers: tuple[LogsTable, ...]
    time_column: str
    notes: tuple[CodedNote, ...]
    shown_query: str
    """Finds as many alerts as the totals say."""
    whole: bool = True
    entity: str = ""
    reading: NameReading | None = None


async def query_alerts(view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
    """Checked arguments in, alerts out; shapes in `contracts.tool_schemas`. Raises QueryFailedError."""
    chosen = window_from(arguments, view.clock())
    conditions = list(alert_conditions(arguments))
    notes = [*chosen.notes, *await delay_notes(view, newest_alerts.ALERT_TABLE, chosen.window)]
    if "entity_kind" in arguments and "entity" not in arguments:
        notes.append(note("kind_without_entity"))
    named: int | None = None
    resolved: Resolution | None = None
    if "incident" in arguments:
        incident = (await resolve_incident(view, arguments["incident"])).of_sentinel()
        resolved = incident
        notes.extend(incident.merge_notes())
        into = next((merge.into for merge in incident.merges.values() if merge.into is not None), None)
        if into is not None and len(incident.records) == 1:
            notes.append(note("alerts_of_target", incident=into))
            incident = (await resolve_incident(view, str(into))).of_sentinel()
        ids = {alert_id for record in incident.records for alert_id in alert_ids_of(record)}
        looked_for = sorted(ids)[: 2 * MOST_IDS_IN_A_QUERY]
        conditions.append(f"SystemAlertId in~ {list_literal(looked_for)}")
        if len(looked_for) < len(ids):
            notes.append(note("alerts_not_all_looked_for", count=len(ids), looked_for=len(looked_for)))
        notes.extend(incident.notes)
        if (
            len(looked_for) == len(ids)
            and len(conditions) == 1
            and chosen.window == TimeWindow()
            and "entity" not in arguments
        ):
            named = len(ids)
    select = _select_by_entity if "entity" in arguments else _select
    selection, statistics = await together(
        lambda: select(view, arguments, chosen.window, tuple(conditions)),
        lambda: view.statistics.read(newest_alerts.ALERT_TABLE, newest_alerts.ALERT_TIME),
    )
    whole = selection.whole and (resolved is None or resolved.whole)
    budget = row_budget(len(selection.alerts))
    links = await incident_links(view, [alert.alert_id for alert in selection.alerts])
    notes += [*selection.notes, *reader_notes(selection.alerts, links)]
    notes += late_notes(selection.alerts, chosen.window, selection.time_column)
    if "alert_id" in arguments and selection.whole and not selection.totals.total:
        notes.append(_no_such_alert(arguments["alert_id"], others=len(conditions) > 1 or chosen.window != TimeWindow()))
    if named is not None and whole and named > selection.totals.total:
        lacking = named - selection.totals.total
        notes.append(note("alerts_without_row", subject="The incident", count=named, missing=lacking, listed=None))
    return build_result(
        ALERT_COLUMNS,
        [alert.row(links.number_of(alert.alert_id), budget, selection.entity) for alert in selection.alerts],
        tables=(newest_alerts.ALERT_TABLE, INCIDENT_TABLE),
        window=chosen.window,
        time_column=selection.time_column,
        rows_total=selection.totals.total if whole else None,
        answers=(
            *selection.answers,
            *(resolved.answers if resolved is not None else ()),
            *((links.answer,) if links.answer is not None else ()),
        ),
        statistics=statistics,
        summary={
            **(
                selection.totals.summary()
                if whole
                else lower_bound(selection.totals.total, arguments["offset"] + len(selection.alerts))
            ),
            **readings_summary(selection.reading),
        },
        notes=notes,
        shown_query=selection.shown_query,
    )


def _no_such_alert(alert_id: str, *, others: bool) -> CodedNote:
    if others:
        return note("alert_not_with_conditions", alert_id=alert_id)
    return note("alert_unknown", alert_id=alert_id, forms="SystemAlertId or VendorOriginalId")


async def _select(
    view: WorkspaceView, arguments: Mapping[str, Any], window: TimeWindow, conditions: tuple[str, ...]
) -> _Selection:
    base = newest_alerts.newest_alerts(conditions)
    span = newest_alerts.alert_span(window)
    order, offset = arguments["order"], arguments["offset"]
    limit = arguments["limit"] + offset
    rows, counts = await view.logs.query_all(
        (
            (newest_alerts.listed(base, window, newest_alerts.FIRST_ROW, order, limit), span),
            (newest_alerts.counted(base, window), span),
        )
    )
    totals = AlertTotals.from_counts(counts)
    column, notes = newest_alerts.ALERT_TIME, []
    if totals.begun and not totals.total:
        rows = await view.logs.query(newest_alerts.listed(base, window, "StartTime", order, limit), span)
        totals = AlertTotals.from_counts(counts, "Begun")
        column = "StartTime"
        notes.append(note("alerts_placed_by_start"))
    elif totals.begun != totals.total and window != TimeWindow() and not counts.partial:
        notes.append(note("alerts_begun", count=totals.begun))
    return _Selection(
        tuple(Alert.from_record(record) for record in islice(rows.records(), offset, None)),
        totals,
        (rows, counts),
        column,
        tuple(notes),
        newest_alerts.chosen(base, window, "StartTime" if column == "StartTime" else newest_alerts.FIRST_ROW),
        not counts.partial,
    )


async def _select_by_entity(
    view: WorkspaceView, arguments: Mapping[str, Any], window: TimeWindow, conditions: tuple[str, ...]
) -> _Selection:
    found = await find_entity_alerts(
        view,
        arguments["entity"],
        arguments.get("entity_kind"),
        window=window,
        order=arguments["order"],
        conditions=conditions,
    )
    # Which alerts name it as an entity is decided here, over those whose text holds it: the query shown names them.
    exact = newest_alerts.named([alert.alert_id for alert in found.alerts])
    base = newest_alerts.newest_alerts((*conditions, found.net, *exact))
    column = "StartTime" if found.time_column == "StartTime" else newest_alerts.FIRST_ROW
    return _Selection(
        found.alerts[arguments["offset"] : arguments["offset"] + arguments["limit"]],
        AlertTotals.from_alerts(found.alerts),
        (found.answer,),
        found.time_column,
        found.notes,
        newest_alerts.chosen(base, window, column),
        found.whole,
        found.value,
        found.reading,
    )
