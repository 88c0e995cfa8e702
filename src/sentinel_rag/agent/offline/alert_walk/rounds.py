"""What to ask for next: the incident's alerts, then those alerts in full that the question may mean.

Arguments come from the person's words, from numbers and from ids in the form of a GUID; nothing that an attacker wrote
into a row becomes one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sentinel_rag.agent.offline.alert_walk.focus import focus_of, told_incidents
from sentinel_rag.agent.offline.alert_walk.pool import WITH_PROPERTIES, Alert, alerts_in
from sentinel_rag.agent.planner.plan import Plan, PlannedCall
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.tool_schemas import MAX_LIMIT

MOST_ROUNDS = 4
"""Rounds of calls after the first."""
MOST_LISTED = 300
"""Alerts of one incident that are listed at most; of a larger one no value is singled out."""
MOST_READ = 8
"""Calls of one round that read alerts in full."""
_ALERT_ID = re.compile(r"(?:[a-z]{2})?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[a-z]{2}\d{6,24}_-?\d{1,12}", re.I)


def next_calls(plan: Plan, runs: Sequence[ToolRun]) -> tuple[PlannedCall, ...]:
    """The calls of the next round; none when everything that matters was read."""
    alerts = alerts_in(runs)
    focus = focus_of(plan, runs, alerts)
    made = [(run.call.tool_name, dict(run.call.arguments)) for run in runs]
    references = told_incidents(plan) or focus.incidents
    calls = [call for reference in references for call in _listing(reference, runs)]
    if not _new(calls, made):
        calls = _reading([alert for alert in focus.meant if not alert.whole])
    return tuple(_new(calls, made))


def all_listed(runs: Sequence[ToolRun]) -> bool:
    """False if an incident has more alerts than were listed: what was not seen may tell another value."""
    listed = [run for run in runs if _lists(run, str(run.call.arguments.get("incident")))]
    return all(_total(run) <= MOST_LISTED for run in listed)


def _new(calls: Sequence[PlannedCall], made: Sequence[tuple[str, dict[str, JsonValue]]]) -> list[PlannedCall]:
    asked = [(tool, _without_place(arguments)) for tool, arguments in made]
    return [call for call in calls if (call.tool, dict(call.arguments)) not in asked]


def _without_place(arguments: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: value for name, value in arguments.items() if name != "workspace"}


def _listing(reference: str, runs: Sequence[ToolRun]) -> list[PlannedCall]:
    """All alerts of an incident, a page at a time."""
    calls = [PlannedCall("query_alerts", {"incident": reference, "limit": MAX_LIMIT})]
    total = next((_total(run) for run in runs if _lists(run, reference)), 0)
    for offset in range(MAX_LIMIT, min(total, MOST_LISTED), MAX_LIMIT):
        calls.append(PlannedCall("query_alerts", {"incident": reference, "limit": MAX_LIMIT, "offset": offset}))
    return calls


def _lists(run: ToolRun, reference: str) -> bool:
    arguments = run.call.arguments
    return arguments.get("incident") == reference and arguments.get("limit") == MAX_LIMIT and "offset" not in arguments


def _total(run: ToolRun) -> int:
    total = run.at("/coverage/rows_total")
    return total if isinstance(total, int) else len(run.rows)


def _reading(alerts: Sequence[Alert]) -> list[PlannedCall]:
    """These alerts in full: by the pages of their incident where that is fewer calls, else one by one."""
    pages: dict[tuple[str, int], None] = {}
    alone: list[PlannedCall] = []
    for alert in alerts:
        arguments = alert.run.call.arguments
        paged = "incident" in arguments and set(arguments) <= {"incident", "limit", "offset", "workspace"}
        if paged and len(alert.run.rows) > WITH_PROPERTIES:
            first = arguments.get("offset")
            place = alert.place + (first if isinstance(first, int) else 0)
            pages[str(arguments["incident"]), place // WITH_PROPERTIES * WITH_PROPERTIES] = None
        elif _ALERT_ID.fullmatch(alert.alert_id):
            alone.append(PlannedCall("query_alerts", {"alert_id": alert.alert_id}))
    calls = [
        PlannedCall("query_alerts", {"incident": incident, "limit": WITH_PROPERTIES, **({"offset": at} if at else {})})
        for incident, at in pages
    ]
    return (calls + alone)[:MOST_READ]
