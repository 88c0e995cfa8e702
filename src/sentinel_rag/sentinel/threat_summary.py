"""The tool get_threat_summary: the state of a window on one page, with the change against the window before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column, QueryResult, TimeWindow
from sentinel_rag.language.notes import CodedNote, note
from sentinel_rag.sentinel.alert_list import AlertTotals
from sentinel_rag.sentinel.alerts import alerts, newest_alerts
from sentinel_rag.sentinel.alerts.alerts import severity_conditions
from sentinel_rag.sentinel.arguments import previous_window, window_from, within
from sentinel_rag.sentinel.entities.entities import AlertEntities, EntityTally, parse_entities
from sentinel_rag.sentinel.incidents import incidents
from sentinel_rag.sentinel.incidents.incident_list import IncidentTotals, conditions, incident_totals, merged_note
from sentinel_rag.sentinel.incidents.incidents import INCIDENT_TABLE, IncidentLinks, incident_links
from sentinel_rag.sentinel.logs.kql_literals import MOST_IDS_IN_A_QUERY
from sentinel_rag.sentinel.logs.log_analytics import LogsTable, json_cell
from sentinel_rag.sentinel.response_bodies import together
from sentinel_rag.sentinel.workspace_view import (
    WorkspaceView,
    build_result,
    delay_notes,
    lower_bound,
    ordered,
    shortened,
)

MOST_ALERTS_READ = 5000
_LONGEST_NAME = 300
_COLUMNS = (
    Column("kind", "string"),
    Column("name", "string"),
    Column("alerts", "long"),
    Column("high_alerts", "long"),
    Column("first_seen", "datetime"),
    Column("last_seen", "datetime"),
    Column("incident_numbers", "dynamic"),
)


class EntityReading:
    """The alerts of a window with their entities, read once for as many rankings as a tool needs."""

    def __init__(self, answer: LogsTable, time_column: str, notes: tuple[CodedNote, ...] = ()) -> None:
        self.answer = answer
        if len(answer.rows) >= MOST_ALERTS_READ:
            self.answer = answer.cut(f"Only the newest {MOST_ALERTS_READ} alerts were considered; narrow the window.")
        self.time_column = time_column
        self._notes = notes
        self.records = {str(record["SystemAlertId"]).lower(): record for record in answer.records()}
        self.parsed: dict[str, AlertEntities] = {
            alert_id: parse_entities(record["Entities"]) for alert_id, record in self.records.items()
        }

    @property
    def unreadable(self) -> int:
        """How many alerts hold entities that do not parse."""
        return sum(not parsed.readable for parsed in self.parsed.values())

    def keep(self, alert_ids: Container[str]) -> None:
        """Leave all other alerts out of what is counted."""
        self.records = {alert_id: record for alert_id, record in self.records.items() if alert_id in alert_ids}
        self.parsed = {alert_id: parsed for alert_id, parsed in self.parsed.items() if alert_id in alert_ids}

    @property
    def notes(self) -> tuple[CodedNote, ...]:
        notes = list(self._notes)
        if self.unreadable:
            notes.append(note("entities_unreadable", count=self.unreadable, uncounted=True))
        return tuple(notes)

    def tally(self, kinds: Iterable[str]) -> EntityTally:
        """The entities of these kinds, counted over all alerts read."""
        wanted = set(kinds)
        tally = EntityTally()
        for alert_id, parsed in self.parsed.items():
            tally.add((entity for entity in parsed.entities if entity.kind in wanted), alert_id)
        return tally


async def read_entities(view: WorkspaceView, window: TimeWindow, conditions: tuple[str, ...] = ()) -> EntityReading:
    """Entities of the alerts of `window`, newest first, at most MOST_ALERTS_READ alerts."""
    answer, time_column, notes = await newest_alerts.placed(
        lambda column: view.logs.query(_entities_query(window, column, conditions), newest_alerts.alert_span(window)),
        window,
    )
    return EntityReading(answer, time_column, notes)


def _entities_query(window: TimeWindow, column: str, conditions: tuple[str, ...]) -> str:
    return (
        f"{newest_alerts.newest_alerts(conditions)}\n| where {within(column, window)}\n"
        f"| order by {newest_alerts.FIRST_ROW} desc, SystemAlertId asc\n| take {MOST_ALERTS_READ}\n"
        f"| project SystemAlertId, AlertSeverity, {newest_alerts.FIRST_ROW}, StartTime, Tactics, Entities"
    )


async def get_top_entities(view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
    """Entities of one kind by distinct alerts, falling."""
    kind = arguments["kind"]
    chosen = window_from(arguments, view.clock())
    conditions = severity_conditions(arguments)
    reading, statistics = await together(
        lambda: read_entities(view, chosen.window, conditions),
        lambda: view.statistics.read(newest_alerts.ALERT_TABLE, newest_alerts.ALERT_TIME),
    )
    links = IncidentLinks()
    if status := arguments.get("status"):
        links = await incident_links(view, reading.records)
        wanted = ("New", "Active") if status == "Open" else (status,)
        reading.keep({one for one, found in links.numbers.items() if links.statuses[found[0]] in wanted})
        # The states are those of incidents, joined here: the query shown names the alerts that are left.
        conditions += newest_alerts.named(list(reading.records))
    ranked = reading.tally((kind,)).ranked(kind)
    top = ranked[arguments["offset"] : arguments["offset"] + arguments["limit"]]
    links = (
        links
        if links.numbers
        else await incident_links(view, {alert_id for entity in top for alert_id in entity.alerts})
    )
    shown_time = _column(reading)
    rows: list[dict[str, JsonValue]] = []
    for entity in top:
        records = [reading.records[alert_id] for alert_id in entity.alerts]
        times = [record[shown_time] or record[newest_alerts.FIRST_ROW] for record in records]
        rows.append(
            {
                "kind": kind,
                "name": shortened(entity.name, _LONGEST_NAME),
                "alerts": len(entity.alerts),
                "high_alerts": sum(record["AlertSeverity"] == "High" for record in records),
                "first_seen": json_cell(min(times)),
                "last_seen": json_cell(max(times)),
                "incident_numbers": sorted(
                    {number for alert_id in entity.alerts for number in links.numbers.get(alert_id, ())}
                ),
            }
        )
    return build_result(
        _COLUMNS,
        rows,
        tables=(newest_alerts.ALERT_TABLE, INCIDENT_TABLE),
        window=chosen.window,
        time_column=reading.time_column,
        rows_total=None if reading.answer.partial else len(ranked),
        answers=(reading.answer, *((links.answer,) if links.answer is not None else ())),
        statistics=statistics,
        summary={
            **(lower_bound(len(ranked), 0) if reading.answer.partial else {"distinct_entities": len(ranked)}),
            "alerts_considered": len(reading.records),
            "alerts_with_unreadable_entities": reading.unreadable,
        },
        notes=(
            *chosen.notes,
            *reading.notes,
            *await delay_notes(view, newest_alerts.ALERT_TABLE, chosen.window),
        ),
        shown_query=_entities_query(chosen.window, _column(reading), conditions),
    )


def _column(reading: EntityReading) -> str:
    """What a query places the alerts of `reading` by."""
    return newest_alerts.FIRST_ROW if reading.time_column == newest_alerts.ALERT_TIME else reading.time_column


MOST_OPEN_INCIDENTS = 10
LONGEST_TOP_LIST = 5


async def get_threat_summary(view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
    """Totals of incidents and alerts, the worst open incidents, commonest names, accounts, hosts and addresses."""
    chosen = window_from(arguments, view.clock())
    window = chosen.window
    (now, before), (reading, open_ones, open_answers, of_before), statistics = await together(
        lambda: _totals_now_and_before(view, window),
        lambda: _open_incidents(view, window),
        lambda: view.statistics.read(incidents.INCIDENT_TABLE, incidents.INCIDENT_TIME),
    )
    rows = [incidents.incident_row(record) for record in open_answers[0].records()]
    tally = reading.tally(("account", "host", "ip"))
    alert_totals = now.alerts(reading.time_column)
    answers = [*open_answers, now.incident_answer, now.alert_answer, reading.answer]
    merged: tuple[CodedNote, ...] = ()
    if now.incidents.merged:
        told, merge_answers = await merged_note(view, incidents.newest_versions(window), window, now.incidents.merged)
        merged = (told,)
        answers += merge_answers
    previous: JsonValue = None
    if before is not None and (before.incident_answer.partial or before.alert_answer.partial):
        answers += [before.incident_answer, before.alert_answer]
    elif before is not None:
        previous = {"incidents": before.incidents.total, "alerts": before.alerts(reading.time_column).total}
        answers += [before.incident_answer, before.alert_answer]
    return build_result(
        incidents.INCIDENT_COLUMNS,
        rows,
        tables=(incidents.INCIDENT_TABLE, newest_alerts.ALERT_TABLE),
        window=window,
        time_column=incidents.INCIDENT_TIME,
        rows_total=None if any(each.partial for each in (*open_answers, now.incident_answer)) else open_ones,
        answers=answers,
        statistics=statistics,
        summary={
            "incidents": {
                "total": now.incidents.total,
                "open": now.incidents.open,
                "by_severity": now.incidents.by_severity,
                "by_status": now.incidents.by_status,
                "updated_in_window": now.incidents.updated,
                **({"open_of_before": older} if (older := open_ones - now.incidents.open) > 0 else {}),
                **({"merged": now.incidents.merged} if now.incidents.merged else {}),
            }
            if not now.incident_answer.partial
            else lower_bound(now.incidents.total, len(rows)),
            "alerts": {"total": alert_totals.total, "by_severity": alert_totals.by_severity()}
            if not now.alert_answer.partial
            else lower_bound(alert_totals.total, len(reading.records)),
            "previous": previous,
            "top_alert_names": [
                {"name": name, "count": count}
                for name, count in alert_totals.by_name().most_common(LONGEST_TOP_LIST)
                if not now.alert_answer.partial
            ],
            "top_accounts": _top(tally, "account"),
            "top_hosts": _top(tally, "host"),
            "top_ips": _top(tally, "ip"),
            "tactics": _tactics(reading),
        },
        notes=(
            *chosen.notes,
            *await delay_notes(view, newest_alerts.ALERT_TABLE, window),
            *reading.notes,
            *incidents.reopened_note(rows),
            *merged,
            note("placed_by"),
        ),
        shown_query=_counted_rows(window, previous_window(window), _column(reading)) + of_before,
    )


def _counted_rows(window: TimeWindow, earlier: TimeWindow | None, column: str) -> str:
    """KQL for the incidents and alerts that the summary counts, those of the window before it marked as such."""
    parts = []
    for name, each in (("this", window), ("before", earlier)):
        if each is None:
            continue
        alerts_of = newest_alerts.newest_alerts() + f"\n| where {within(column, each)}"
        fields = f"SystemAlertId, AlertName, AlertSeverity, {newest_alerts.FIRST_ROW}, StartTime, Tactics, Entities"
        both = (incidents.chosen(incidents.newest_versions(each), each), f"{alerts_of}\n| project {fields}")
        parts += [f'({query}\n| extend Window = "{name}")' for query in both]
    return "union\n" + ",\n".join(parts)


@dataclass(frozen=True, slots=True)
class _Totals:
    """Incidents of one window and the answers about incidents and alerts."""

    incidents: IncidentTotals
    incident_answer: LogsTable
    alert_answer: LogsTable

    def alerts(self, time_column: str) -> AlertTotals:
        """Alerts placed by `time_column`, as the entities of the same summary are."""
        return AlertTotals.from_counts(self.alert_answer, "Begun" if time_column == "StartTime" else "Recorded")


async def _totals(view: WorkspaceView, window: TimeWindow) -> _Totals:
    (incident_counts, incident_answer), alert_answer = await together(
        lambda: incident_totals(view, window),
        lambda: view.logs.query(
            newest_alerts.counted(newest_alerts.newest_alerts(), window), newest_alerts.alert_span(window)
        ),
    )
    return _Totals(incident_counts, incident_answer, alert_answer)


async def _totals_now_and_before(view: WorkspaceView, window: TimeWindow) -> tuple[_Totals, _Totals | None]:
    earlier = previous_window(window)
    if earlier is None:
        return await _totals(view, window), None
    return await together(lambda: _totals(view, window), lambda: _totals(view, earlier))


async def _open_incidents(
    view: WorkspaceView, window: TimeWindow
) -> tuple[EntityReading, int, tuple[LogsTable, ...], str]:
    """The alerts of `window`, how many open incidents were created in it or hold one of them, the answers for these, of
    which the first lists the worst, and the KQL for those of before. An attack may go on in one of before."""
    reading = await read_entities(view, window)
    links = await incident_links(view, reading.records if window != TimeWindow() else ())
    every = sorted({one for found in links.numbers.values() for one in found}, reverse=True)
    active = every[:MOST_IDS_IN_A_QUERY]
    placed = within(incidents.INCIDENT_TIME, window)
    inside = f"({placed}) or IncidentNumber in ({', '.join(map(str, active))})" if active else placed
    base = incidents.newest_versions(window, (*conditions({"status": "Open"}), inside))
    span = TimeWindow() if active else incidents.incident_span(window)
    listed, counted = await view.logs.query_all(
        (
            (incidents.listed(base, TimeWindow(), "severity", MOST_OPEN_INCIDENTS), span),
            (incidents.counted(base, TimeWindow()), span),
        )
    )
    if len(every) > len(active):
        told = f"Of {len(every)} incidents with alerts of this time the newest {len(active)} were looked at"
        listed = listed.cut(f"{told}; narrow the window.")
    answers = (listed, counted, *((links.answer,) if links.answer is not None else ()))
    shown = incidents.chosen(base, TimeWindow())
    return (
        reading,
        IncidentTotals.from_counts(counted).open,
        answers,
        f',\n({shown}\n| extend Window = "open")' if active else "",
    )


def _top(tally: EntityTally, kind: str) -> list[JsonValue]:
    return [
        {"name": shortened(entity.name), "alerts": len(entity.alerts)}
        for entity in tally.ranked(kind)[:LONGEST_TOP_LIST]
    ]


def _tactics(reading: EntityReading) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for record in reading.records.values():
        counts.update(alerts.comma_list(record["Tactics"]))
    return ordered(counts, [name for name, _ in counts.most_common()])
