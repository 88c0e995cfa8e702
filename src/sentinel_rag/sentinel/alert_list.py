"""The tool query_alerts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sentinel_rag.contracts.query_results import QueryResult, TimeWindow
from sentinel_rag.sentinel import newest_alerts
from sentinel_rag.sentinel.alert_filters import alert_conditions
from sentinel_rag.sentinel.alert_notes import late_notes, reader_notes
from sentinel_rag.sentinel.alert_totals import AlertTotals
from sentinel_rag.sentinel.alerts import ALERT_COLUMNS, Alert, row_budget
from sentinel_rag.sentinel.concurrency import together
from sentinel_rag.sentinel.entity_alerts import KIND_WITHOUT_ENTITY, find_entity_alerts
from sentinel_rag.sentinel.incident_links import MOST_IDS_IN_A_QUERY, incident_links
from sentinel_rag.sentinel.incident_resolution import Resolution, resolve_incident
from sentinel_rag.sentinel.incidents import INCIDENT_TABLE, alert_ids_of
from sentinel_rag.sentinel.ingestion_delay import delay_notes
from sentinel_rag.sentinel.kql_literals import list_literal
from sentinel_rag.sentinel.log_tables import LogsTable
from sentinel_rag.sentinel.near_names import NameReading, readings_summary
from sentinel_rag.sentinel.results import Stopwatch, build_result, lower_bound
from sentinel_rag.sentinel.time_windows import window_from
from sentinel_rag.sentinel.workspace_view import WorkspaceView


@dataclass(frozen=True, slots=True)
class _Selection:
    """Alerts to return, totals of all that match, the answers they came from (coverage shows the first).

    `whole` is False if more alerts may match than were looked at, so that the totals are a lower bound.
    """

    alerts: tuple[Alert, ...]
    totals: AlertTotals
    answers: tuple[LogsTable, ...]
    time_column: str
    notes: tuple[str, ...]
    shown_query: str
    """Finds as many alerts as the totals say."""
    whole: bool = True
    entity: str = ""
    reading: NameReading | None = None


async def query_alerts(view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
    """Checked arguments in, alerts out; shapes in `contracts.tool_schemas`. Raises QueryFailedError."""
    stopwatch = Stopwatch()
    chosen = window_from(arguments, view.clock())
    conditions = list(alert_conditions(arguments))
    notes = [*chosen.notes, *await delay_notes(view, newest_alerts.ALERT_TABLE, chosen.window)]
    if "entity_kind" in arguments and "entity" not in arguments:
        notes.append(KIND_WITHOUT_ENTITY)
    named: int | None = None
    resolved: Resolution | None = None
    if "incident" in arguments:
        incident = (await resolve_incident(view, arguments["incident"])).of_sentinel()
        resolved = incident
        notes.extend(incident.merge_notes())
        into = next((merge.into for merge in incident.merges.values() if merge.into is not None), None)
        if into is not None and len(incident.records) == 1:
            notes.append(f"The alerts told are those of incident {into}, into which it was merged.")
            incident = (await resolve_incident(view, str(into))).of_sentinel()
        ids = {alert_id for record in incident.records for alert_id in alert_ids_of(record)}
        looked_for = sorted(ids)[: 2 * MOST_IDS_IN_A_QUERY]
        conditions.append(f"SystemAlertId in~ {list_literal(looked_for)}")
        if len(looked_for) < len(ids):
            notes.append(f"The incident names {len(ids)} alerts; {len(looked_for)} of them were looked for.")
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
        notes.append(
            f"The incident names {named} alerts; SecurityAlert has no row for {named - selection.totals.total} of them."
        )
    return build_result(
        ALERT_COLUMNS,
        [alert.row(links.number_of(alert.alert_id), budget, selection.entity) for alert in selection.alerts],
        workspace=view.logs.name,
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
        stopwatch=stopwatch,
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


def _no_such_alert(alert_id: str, *, others: bool) -> str:
    if others:
        return f"No alert with the id {alert_id!r} meets the other conditions; leave them out to see whether it exists."
    return f"No alert of this workspace has the id {alert_id!r} (SystemAlertId or VendorOriginalId)."


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
        notes.append(newest_alerts.BEGAN_IN_WINDOW)
    elif totals.begun != totals.total and window != TimeWindow() and not counts.partial:
        notes.append(f"By the start of the activity (StartTime) {totals.begun} alerts lie in the window.")
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
    ids = [alert.alert_id for alert in found.alerts]
    exact = (f"SystemAlertId in~ {list_literal(ids)}",) if 0 < len(ids) <= MOST_IDS_IN_A_QUERY else ()
    exact = exact or (() if ids else ("false",))
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
