"""Plans for the raw events behind an alert: get_alert_events for one, the list to choose from for an incident."""

from __future__ import annotations

from sentinel_rag.agent.offline import cues
from sentinel_rag.agent.offline.plan import Decision
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.offline.subjects import Subject
from sentinel_rag.agent.planner.plan import Ask, Plan, PlannedCall, View
from sentinel_rag.contracts.json_values import JsonValue

_WHICH = "Events stand behind a single alert. Ask for the events behind one of these by its number, as in [1]."
_NONE_NAMED = "Which alert do you mean? Give its id, or ask for a list first and name it by its number."
_LISTS = ("Show the newest alerts", "List the incidents, newest first")


def events_plan(reading: Reading, subject: Subject) -> Decision | None:
    """None if the question does not ask for the events behind an alert."""
    if not reading.has(cues.EVENTS):
        return None
    match subject.kind:
        case "alert":
            assert subject.item is not None
            arguments: dict[str, JsonValue] = {"alert_id": subject.item.value}
            if reading.limit is not None:
                arguments["limit"] = reading.limit
            call = PlannedCall("get_alert_events", arguments)
            return Plan(view=View.EVENTS, calls=(call,), reading=reading, alert_id=subject.item.value)
        case "incident":
            calls = tuple(PlannedCall("query_alerts", {"incident": reference}) for reference in subject.incidents)
            return Plan(view=View.ALERTS, calls=calls, reading=reading, opening=(_WHICH,))
        case "" if reading.has(cues.ALERT) and not reading.names:
            return Ask(_NONE_NAMED, _LISTS)
        case _:
            return None
