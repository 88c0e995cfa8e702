"""The tool get_top_entities: which accounts, hosts, addresses, ... the most distinct alerts name."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column, QueryResult, TimeWindow
from sentinel_rag.sentinel import newest_alerts
from sentinel_rag.sentinel.alert_filters import severity_conditions
from sentinel_rag.sentinel.concurrency import together
from sentinel_rag.sentinel.entities import AlertEntities, parse_entities
from sentinel_rag.sentinel.entity_tally import EntityTally
from sentinel_rag.sentinel.incident_links import IncidentLinks, incident_links
from sentinel_rag.sentinel.incidents import INCIDENT_TABLE
from sentinel_rag.sentinel.ingestion_delay import delay_notes
from sentinel_rag.sentinel.log_tables import LogsTable, json_cell
from sentinel_rag.sentinel.results import Stopwatch, build_result, lower_bound, shortened
from sentinel_rag.sentinel.time_windows import window_from, within
from sentinel_rag.sentinel.workspace_view import WorkspaceView

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

    def __init__(self, answer: LogsTable, time_column: str, notes: tuple[str, ...] = ()) -> None:
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
    def notes(self) -> tuple[str, ...]:
        notes = list(self._notes)
        if self.unreadable:
            plural = "s" if self.unreadable != 1 else ""
            notes.append(f"The entities of {self.unreadable} alert{plural} do not parse as JSON and are not counted.")
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
    base = newest_alerts.newest_alerts(conditions)

    def kql(column: str) -> str:
        return (
            f"{base}\n| where {within(column, window)}\n"
            f"| order by {newest_alerts.FIRST_ROW} desc, SystemAlertId asc\n| take {MOST_ALERTS_READ}\n"
            f"| project SystemAlertId, AlertSeverity, {newest_alerts.FIRST_ROW}, StartTime, Tactics, Entities"
        )

    answer, time_column, notes = await newest_alerts.placed(
        lambda column: view.logs.query(kql(column), newest_alerts.alert_span(window)), window
    )
    return EntityReading(answer, time_column, notes)


async def get_top_entities(view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
    """Entities of one kind by distinct alerts, falling."""
    stopwatch = Stopwatch()
    kind = arguments["kind"]
    chosen = window_from(arguments, view.clock())
    reading, statistics = await together(
        lambda: read_entities(view, chosen.window, severity_conditions(arguments)),
        lambda: view.statistics.read(newest_alerts.ALERT_TABLE, newest_alerts.ALERT_TIME),
    )
    links = IncidentLinks()
    if status := arguments.get("status"):
        links = await incident_links(view, reading.records)
        wanted = ("New", "Active") if status == "Open" else (status,)
        reading.keep({one for one, found in links.numbers.items() if links.statuses[found[0]] in wanted})
    ranked = reading.tally((kind,)).ranked(kind)
    top = ranked[arguments["offset"] : arguments["offset"] + arguments["limit"]]
    links = (
        links
        if links.numbers
        else await incident_links(view, {alert_id for entity in top for alert_id in entity.alerts})
    )
    shown_time = newest_alerts.FIRST_ROW if reading.time_column == newest_alerts.ALERT_TIME else reading.time_column
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
        workspace=view.logs.name,
        tables=(newest_alerts.ALERT_TABLE, INCIDENT_TABLE),
        window=chosen.window,
        time_column=reading.time_column,
        rows_total=None if reading.answer.partial else len(ranked),
        answers=(reading.answer, *((links.answer,) if links.answer is not None else ())),
        statistics=statistics,
        stopwatch=stopwatch,
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
    )
