"""Which incidents an entity leaves of all: those that hold an alert which names it.

An incident does not say what its alerts are about; the alerts do, and `incident_links` leads from them to incidents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sentinel_rag.contracts.query_results import TimeWindow
from sentinel_rag.sentinel.entity_alerts import find_entity_alerts
from sentinel_rag.sentinel.incident_links import incident_links
from sentinel_rag.sentinel.kql_literals import list_literal
from sentinel_rag.sentinel.log_tables import LogsTable
from sentinel_rag.sentinel.near_names import NameReading
from sentinel_rag.sentinel.newest_alerts import ALERT_TABLE
from sentinel_rag.sentinel.workspace_view import WorkspaceView


@dataclass(frozen=True, slots=True)
class EntityIncidents:
    """KQL conditions on incidents, and what was read to know them; empty where no entity is asked for.

    `whole` is False if an incident may be missing, because more alerts may name the entity than were looked at.
    """

    conditions: tuple[str, ...] = ()
    answers: tuple[LogsTable, ...] = ()
    tables: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    whole: bool = True
    reading: NameReading | None = None


async def incidents_naming(view: WorkspaceView, arguments: Mapping[str, Any]) -> EntityIncidents:
    """From `entity` and `entity_kind`. Alerts of all times are looked at: those of an incident may be older than it."""
    found = await find_entity_alerts(
        view,
        arguments["entity"],
        arguments.get("entity_kind"),
        window=TimeWindow(),
        order="newest",
        advice="incidents of older alerts may be missing",
    )
    value = found.value
    links = await incident_links(view, [alert.alert_id for alert in found.alerts])
    numbers = sorted({number for known in links.numbers.values() for number in known})
    notes = list(found.notes)
    if found.alerts and not numbers:
        count = len(found.alerts)
        notes.append(
            f"{count} alert{'s name' if count != 1 else ' names'} {value!r}, but no incident holds any of them."
        )
    return EntityIncidents(
        (f"IncidentNumber in {list_literal(numbers)}",),
        (found.answer,) if links.answer is None else (found.answer, links.answer),
        (ALERT_TABLE,),
        tuple(notes),
        found.whole and (links.answer is None or not links.answer.partial),
        found.reading,
    )
