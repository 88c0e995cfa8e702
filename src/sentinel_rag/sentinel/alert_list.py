"""The tool query_alerts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import QueryResult, TimeWindow
from sentinel_rag.contracts.tool_schemas import ALERT_STATUSES, SEVERITIES
from sentinel_rag.sentinel import alerts
from sentinel_rag.sentinel.alert_filters import alert_conditions
from sentinel_rag.sentinel.alerts import Alert
from sentinel_rag.sentinel.concurrency import together
from sentinel_rag.sentinel.entity_search import MOST_CANDIDATES, alerts_naming, near_names, net_condition
from sentinel_rag.sentinel.incident_links import IncidentLinks, incident_links
from sentinel_rag.sentinel.incident_list import ordered
from sentinel_rag.sentinel.incident_references import resolve_incident
from sentinel_rag.sentinel.incidents import INCIDENT_TABLE, alert_ids_of
from sentinel_rag.sentinel.kql_literals import list_literal
from sentinel_rag.sentinel.log_tables import LogsTable
from sentinel_rag.sentinel.results import Stopwatch, build_result
from sentinel_rag.sentinel.time_windows import window_from
from sentinel_rag.sentinel.workspace_view import WorkspaceView

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
        """From the answer to `alerts.counted`; `measure` is Recorded or Begun."""
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
        record["AlertSeverity"] or "Unknown",
        record["Status"] or "Unknown",
        alerts.clean_name(record["AlertName"]) or "(unnamed alert)",
        record["ProductName"] or "Unknown",
        count,
    )


@dataclass(frozen=True, slots=True)
class _Selection:
    """Alerts to return, totals of all that match, the answers they came from (coverage shows the first)."""

    alerts: tuple[Alert, ...]
    totals: AlertTotals
    answers: tuple[LogsTable, ...]
    time_column: str
    notes: tuple[str, ...]


async def query_alerts(view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
    """Checked arguments in, alerts out; shapes in `contracts.tool_schemas`. Raises QueryFailedError."""
    stopwatch = Stopwatch()
    chosen = window_from(arguments, view.clock())
    conditions = list(alert_conditions(arguments))
    notes = list(chosen.notes)
    if "incident" in arguments:
        condition, told = await _incident_condition(view, arguments["incident"])
        conditions.append(condition)
        notes.extend(told)
    select = _select_by_entity if "entity" in arguments else _select
    selection, statistics = await together(
        lambda: select(view, arguments, chosen.window, tuple(conditions)),
        lambda: view.statistics.read(alerts.ALERT_TABLE, alerts.ALERT_TIME),
    )
    links = await incident_links(view, [alert.alert_id for alert in selection.alerts])
    notes += [*selection.notes, *reader_notes(selection.alerts, links)]
    return build_result(
        alerts.ALERT_COLUMNS,
        [alert.row(links.number_of(alert.alert_id)) for alert in selection.alerts],
        workspace=view.logs.name,
        tables=(alerts.ALERT_TABLE, INCIDENT_TABLE),
        window=chosen.window,
        time_column=selection.time_column,
        rows_total=selection.totals.total,
        answers=selection.answers,
        statistics=statistics,
        stopwatch=stopwatch,
        summary=selection.totals.summary(),
        notes=notes,
    )


async def _select(
    view: WorkspaceView, arguments: Mapping[str, Any], window: TimeWindow, conditions: tuple[str, ...]
) -> _Selection:
    base = alerts.newest_alerts(conditions)
    span = alerts.alert_span(window)
    order, limit = arguments["order"], arguments["limit"]
    rows, counts = await view.logs.query_all(
        (
            (alerts.listed(base, window, alerts.FIRST_ROW, order, limit), span),
            (alerts.counted(base, window), span),
        )
    )
    totals = AlertTotals.from_counts(counts)
    column, notes = alerts.ALERT_TIME, []
    if totals.begun and not totals.total:
        rows = await view.logs.query(alerts.listed(base, window, "StartTime", order, limit), span)
        totals = AlertTotals.from_counts(counts, "Begun")
        column = "StartTime"
        notes.append(alerts.BEGAN_IN_WINDOW)
    elif totals.begun != totals.total and window != TimeWindow():
        notes.append(f"By the start of the activity (StartTime) {totals.begun} alerts lie in the window.")
    return _Selection(
        tuple(Alert.from_record(record) for record in rows.records()), totals, (rows, counts), column, tuple(notes)
    )


async def _select_by_entity(
    view: WorkspaceView, arguments: Mapping[str, Any], window: TimeWindow, conditions: tuple[str, ...]
) -> _Selection:
    value, kind = arguments["entity"], arguments.get("entity_kind")
    base = alerts.newest_alerts((*conditions, net_condition(value)))
    span = alerts.alert_span(window)
    answer, column, told = await alerts.placed(
        lambda column: view.logs.query(alerts.listed(base, window, column, arguments["order"], MOST_CANDIDATES), span),
        window,
    )
    notes = list(told)
    candidates = [Alert.from_record(record) for record in answer.records()]
    found = alerts_naming(candidates, value, kind)
    if len(candidates) >= MOST_CANDIDATES:
        notes.append(f"Only the first {MOST_CANDIDATES} alerts that may name it were looked at; narrow the window.")
    unread = sum(not alert.entities.readable for alert in candidates)
    if unread:
        notes.append(f"{unread} alert{'s' if unread != 1 else ''} that may name it hold entities that do not parse.")
    if not found:
        near = near_names(candidates, value, kind)
        if near:
            notes.append(f"No entity is exactly {value!r}; near it: {', '.join(near)}.")
    return _Selection(
        tuple(found[: arguments["limit"]]), AlertTotals.from_alerts(found), (answer,), column, tuple(notes)
    )


async def _incident_condition(view: WorkspaceView, reference: str) -> tuple[str, tuple[str, ...]]:
    """A predicate for the alerts of the referenced incident, and what a reader should know about the reference."""
    resolution = await resolve_incident(view, reference)
    ids = list(dict.fromkeys(alert_id for record in resolution.records for alert_id in alert_ids_of(record)))
    return f"SystemAlertId in~ {list_literal(ids)}", resolution.notes


def reader_notes(found: Sequence[Alert], links: IncidentLinks) -> list[str]:
    """What the rows alone would let a reader miss: snapshots, unreadable entities, alerts of several incidents."""
    notes: list[str] = []
    snapshots = [alert for alert in found if _disagrees(alert, links)]
    if snapshots:
        newest = max(str(alert.row(None)["row_time"]) for alert in snapshots)
        notes.append(
            f"{len(snapshots)} alert{'s have' if len(snapshots) != 1 else ' has'} another state than the incident: an "
            f"alert row is a snapshot (ProcessingEndTime, here {newest} at the latest) and may lag behind Defender."
        )
    unreadable = sum(not alert.entities.readable for alert in found)
    if unreadable:
        notes.append(f"The entities of {unreadable} alert{'s' if unreadable != 1 else ''} do not parse as JSON.")
    dangling = sum(alert.entities.dangling for alert in found)
    if dangling:
        notes.append(f"{dangling} entity references point at nothing in their row.")
    several = links.several()
    if several:
        notes.append(
            f"{len(several)} alert{'s belong' if len(several) != 1 else ' belongs'} to more than one incident; "
            "incident_number is the one changed last."
        )
    return notes


def _disagrees(alert: Alert, links: IncidentLinks) -> bool:
    number = links.number_of(alert.alert_id)
    if number is None:
        return False
    alert_closed = alert.record["Status"] in ("Resolved", "Dismissed")
    return alert_closed != (links.statuses.get(number) == "Closed")
