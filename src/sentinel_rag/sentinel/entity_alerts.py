"""The alerts of a workspace that name an entity: one bounded read, decided exactly by `entity_search`.

Below the tools query_alerts and query_incidents, which ask the same and show different things.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sentinel_rag.contracts.query_results import TimeWindow
from sentinel_rag.sentinel import newest_alerts
from sentinel_rag.sentinel.alerts import Alert
from sentinel_rag.sentinel.entity_search import (
    MOST_CANDIDATES,
    alerts_naming,
    net_condition,
    other_keys,
    pieces_condition,
    read_entity,
    wider_net,
)
from sentinel_rag.sentinel.log_tables import LogsTable
from sentinel_rag.sentinel.near_names import NameCode, NameReading
from sentinel_rag.sentinel.workspace_view import WorkspaceView

KIND_WITHOUT_ENTITY = "entity_kind tells of what kind `entity` is; without entity it was not used."


@dataclass(frozen=True, slots=True)
class EntityAlerts:
    """All alerts found, in the order asked for. `whole` is False if more may name the entity than were looked at;
    `answer` is partial then. `notes` are for the reader, `net` is the KQL predicate that found the candidates, `value`
    what they name: the name as it was given, or the one that `reading` used in its place."""

    alerts: tuple[Alert, ...]
    answer: LogsTable
    time_column: str
    notes: tuple[str, ...]
    whole: bool
    net: str
    value: str
    reading: NameReading | None = None


async def find_entity_alerts(
    view: WorkspaceView,
    value: str,
    kind: str | None,
    *,
    window: TimeWindow,
    order: str,
    conditions: tuple[str, ...] = (),
    advice: str = "narrow the window",
) -> EntityAlerts:
    """Alerts of `window` that meet `conditions` and name `value`; at most MOST_CANDIDATES are looked at, and `advice`
    ends the sentence that says so."""
    found = await _alerts_naming(view, value, kind, window, order, conditions, advice)
    if found.alerts or not found.whole:
        return found
    answer = await view.logs.query(
        newest_alerts.listed(
            newest_alerts.newest_alerts((wider_net(value),)),
            TimeWindow(),
            newest_alerts.FIRST_ROW,
            "newest",
            MOST_CANDIDATES,
        ),
        TimeWindow(),
    )
    alerts = [Alert.from_record(record) for record in answer.records()]
    if answer.partial or len(alerts) >= MOST_CANDIDATES:
        return found
    if alerts_naming(alerts, value, kind):
        reading, used = NameReading("entity", value, NameCode.KNOWN), None
    else:
        reading, used = read_entity(alerts, value, kind)
    if reading.used is not None:
        found = await _alerts_naming(view, reading.used, used, window, order, conditions, advice)
    return replace(found, reading=reading, notes=(*found.notes, reading.note("SecurityAlert")))


async def _alerts_naming(
    view: WorkspaceView,
    value: str,
    kind: str | None,
    window: TimeWindow,
    order: str,
    conditions: tuple[str, ...],
    advice: str,
) -> EntityAlerts:
    span = newest_alerts.alert_span(window)

    async def caught(net: str) -> tuple[LogsTable, str, tuple[str, ...]]:
        base = newest_alerts.newest_alerts((*conditions, net))
        return await newest_alerts.placed(
            lambda column: view.logs.query(newest_alerts.listed(base, window, column, order, MOST_CANDIDATES), span),
            window,
        )

    net = net_condition(value)
    answer, column, told = await caught(net)
    candidates = [Alert.from_record(record) for record in answer.records()]
    found = alerts_naming(candidates, value, kind)
    nets = {net, *map(pieces_condition, other_keys(found, value, kind))}
    if len(nets) > 1 and "true" not in nets:  # other alerts may tell of the same account by its id alone
        net, first = " or ".join(f"({each})" for each in sorted(nets)), answer
        answer, column, told = await caught(net)
        answer = answer.cut(first.partial_reason) if first.partial else answer
        candidates = [Alert.from_record(record) for record in answer.records()]
        found = alerts_naming(candidates, value, kind)
    notes = list(told)
    whole = len(candidates) < MOST_CANDIDATES and not answer.partial
    if len(candidates) >= MOST_CANDIDATES:
        answer = answer.cut(f"Only {MOST_CANDIDATES} alerts that may name it were looked at; {advice}.")
    unread = sum(not alert.entities.readable for alert in candidates)
    if unread:
        notes.append(f"{unread} alert{'s' if unread != 1 else ''} that may name it hold entities that do not parse.")
    return EntityAlerts(tuple(found), answer, column, tuple(notes), whole, net, value)
