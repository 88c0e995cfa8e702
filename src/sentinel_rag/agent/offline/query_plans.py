"""Plans over incidents, alerts, trends, rankings and summaries, each from the slots of a reading.

Which of them answers a question is the planner's decision; what a plan's arguments are is decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sentinel_rag.agent.conversation import ListItem
from sentinel_rag.agent.offline import cues
from sentinel_rag.agent.offline.arguments import alert_filters, entity_argument, incident_filters, window_arguments
from sentinel_rag.agent.offline.attributes import attribute_of, attributes_asked
from sentinel_rag.agent.offline.plan import Ask, Decision, Plan, PlannedCall, View
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.offline.subjects import Subject
from sentinel_rag.contracts.json_values import JsonValue


def incident_plan(reading: Reading, subject: Subject) -> Decision:
    """What is asked about one incident or several: fields, alerts, one property, or all."""
    asked = cues.aspects_of(reading)
    attribute = attribute_of(reading)
    lists_alerts = reading.has(cues.ALERT) and "alert_count" not in asked
    if reading.has(cues.ANALYSIS):
        return detail_plan(reading, subject, View.ANALYSIS, ())
    describing = [word for word in reading.unknown_words if len(word) > 3]
    if attribute is not None and (attribute.deep or reading.names or describing):
        calls = tuple(
            PlannedCall("query_alerts", {"incident": reference, "limit": 100}) for reference in subject.incidents
        )
        return Plan(view=View.ATTRIBUTE, calls=calls, reading=reading, aspects=_labels(reading))
    if reading.tactic is not None or (lists_alerts and not reading.has(r"(?:which|what|whose)\s+incident")):
        filters_ = alert_filters(reading)
        calls = tuple(
            PlannedCall("query_alerts", {"incident": reference, **filters_}) for reference in subject.incidents
        )
        view = View.ALERT_COUNT if reading.has(cues.COUNT) else View.ALERTS
        return Plan(view=view, calls=calls, reading=reading)
    if reading.names and attribute is None:
        calls = tuple(
            PlannedCall("query_alerts", {"incident": reference, **entity_argument(reading)})
            for reference in subject.incidents
        )
        return Plan(view=View.ALERTS, calls=calls, reading=reading)
    if attribute is not None and not asked:
        return detail_plan(reading, subject, View.INCIDENT, tuple(f"entities:{kind}" for kind in attribute.kinds))
    if not asked and reading.has(rf"{cues.ENTITIES}|involved|affected"):
        return detail_plan(reading, subject, View.INCIDENT, ("entities:",))
    if subject.reference_asked:
        asked = ("ids",)
    elif reading.has(r"about|explain|describe|details?|more|summar\w+"):
        asked = ()
    return detail_plan(reading, subject, View.INCIDENT, asked)


def detail_plan(reading: Reading, subject: Subject, view: View, aspects: tuple[str, ...]) -> Plan:
    """get_incident_detail for each incident."""
    calls = tuple(PlannedCall("get_incident_detail", {"incident": reference}) for reference in subject.incidents)
    return Plan(view=view, calls=calls, reading=reading, aspects=aspects)


def alert_plan(reading: Reading, subject: Subject) -> Decision:
    """One alert, read through its incident."""
    attribute = attribute_of(reading)
    item = subject.item
    assert item is not None
    reference = item.incident or item.value
    aspects: tuple[str, ...] = ()
    if reading.has(cues.BELONGS):
        aspects = ("incident",)
    elif attribute is not None and not reading.has(r"when|what\s+time|severity|status"):
        aspects = (f"attribute:{attribute.label}",)
    if reading.has(cues.BELONGS):
        reference = item.value
    return Plan(
        view=View.ALERT,
        calls=(PlannedCall("get_incident_detail", {"incident": reference}),),
        reading=reading,
        aspects=aspects,
        alert_id=item.value,
    )


def around_plan(reading: Reading, subject: Subject) -> Decision:
    """Alerts, or incidents, in a window around a thing that was shown."""
    assert subject.window is not None
    around = replace(reading, window=subject.window, around=None, items=(), that="")
    if reading.has(cues.INCIDENT) and not reading.has(cues.ALERT):
        return incidents_plan(around)
    return alerts_plan(around)


def alerts_plan(reading: Reading, entity: ListItem | None = None) -> Decision:
    """query_alerts with every filter that was said; `entity` is one that was shown in a list."""
    arguments: dict[str, JsonValue] = dict(alert_filters(reading))
    if entity is not None:
        arguments["entity"] = entity.value
        if entity.entity_kind:
            arguments["entity_kind"] = entity.entity_kind
    opening: tuple[str, ...] = (reading.severity.note,) if reading.severity.note else ()
    calls: tuple[PlannedCall, ...] = (PlannedCall("query_alerts", arguments),)
    if reading.status in ("open", "active"):
        opening += ("Alerts have no status Open. New and InProgress are not settled yet, so I asked for both.",)
        calls = tuple(PlannedCall("query_alerts", {**arguments, "status": status}) for status in ("New", "InProgress"))
    view = View.ALERT_COUNT if reading.has(cues.COUNT) and not reading.limit else View.ALERTS
    return Plan(view=view, calls=calls, reading=reading, opening=opening)


def incidents_plan(reading: Reading) -> Decision:
    """query_incidents with every filter that was said."""
    if reading.owner.mine:
        return Ask(
            "I do not know your name in Sentinel. Whose incidents do you want, for example by the owner's address?"
        )
    arguments = dict(incident_filters(reading))
    opening: tuple[str, ...] = (reading.severity.note,) if reading.severity.note else ()
    if reading.tactic is not None:
        opening += ("Incidents cannot be filtered by tactic, so I looked for its name in their titles.",)
    title = arguments.get("title_contains")
    if title and reading.has(r"the\s+(?:\S+\s+){0,4}(?:incident|case)") and not reading.has(cues.COUNT):
        return Plan(
            view=View.INCIDENT,
            calls=(PlannedCall("query_incidents", arguments),),
            reading=reading,
            aspects=cues.aspects_of(reading),
            opening=opening,
        )
    if reading.names and not title:
        return alerts_plan(reading)
    if reading.has(r"(?:the\s+)?(?:most|highest\s+number\s+of|many)\s+alerts"):
        call = PlannedCall("query_incidents", {**arguments, "limit": 100})
        return Plan(view=View.INCIDENTS, calls=(call,), reading=reading, aspects=("most_alerts",))
    view = View.INCIDENT_COUNT if reading.has(cues.COUNT) and not reading.limit else View.INCIDENTS
    return Plan(
        view=view,
        calls=(PlannedCall("query_incidents", arguments),),
        reading=reading,
        opening=opening,
    )


def trend_plan(reading: Reading, *, incident_noun: bool) -> Decision:
    """get_alert_trend; a trend of incidents is asked back, no tool has it."""
    arguments: dict[str, JsonValue] = {**window_arguments(reading), **reading.severity.arguments()}
    interval = cues.interval_of(reading)
    if interval is not None:
        arguments["interval"] = interval
    opening: tuple[str, ...] = (reading.severity.note,) if reading.severity.note else ()
    if incident_noun:
        return Ask(
            "I can count alerts over time, not incidents. Which of these do you want?",
            ("Show the trend of alerts per day", "List the incidents, newest first"),
        )
    if reading.names:
        opening += ("The trend counts all alerts; it cannot be narrowed to one name.",)
    return Plan(view=View.TREND, calls=(PlannedCall("get_alert_trend", arguments),), reading=reading, opening=opening)


def top_plan(reading: Reading, kind: str) -> Decision:
    """get_top_entities for one kind."""
    arguments: dict[str, JsonValue] = {"kind": kind, **window_arguments(reading), **reading.severity.arguments()}
    if reading.limit is not None:
        arguments["limit"] = reading.limit
    opening: tuple[str, ...] = (reading.severity.note,) if reading.severity.note else ()
    return Plan(view=View.TOP, calls=(PlannedCall("get_top_entities", arguments),), reading=reading, opening=opening)


def summary_plan(reading: Reading) -> Decision:
    """get_threat_summary."""
    call = PlannedCall("get_threat_summary", window_arguments(reading))
    return Plan(view=View.SUMMARY, calls=(call,), reading=reading)


def search_plan(reading: Reading, incidents: Sequence[str] = ()) -> Plan:
    """Look for the alert that the words describe: in the incidents named, else among the newest and oldest alerts."""
    calls = tuple(PlannedCall("query_alerts", {"incident": reference, "limit": 100}) for reference in incidents) or (
        PlannedCall("query_alerts", {**window_arguments(reading), "limit": 100}),
        PlannedCall("query_alerts", {**window_arguments(reading), "order": "oldest", "limit": 100}),
    )
    return Plan(view=View.ATTRIBUTE, calls=calls, reading=reading, aspects=_labels(reading))


def _labels(reading: Reading) -> tuple[str, ...]:
    return tuple(attribute.label for attribute in attributes_asked(reading))
