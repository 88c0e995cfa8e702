"""Plans over incidents, alerts, trends, rankings and summaries, each from the slots of a reading.

Which of them answers a question is the planner's decision; what a plan's arguments are is decided here.
"""

from __future__ import annotations

import re
from dataclasses import replace

from sentinel_rag.agent.offline import cues
from sentinel_rag.agent.offline.arguments import (
    alert_filters,
    are_meant_together,
    for_each_name,
    incident_filters,
    unsettled,
    window_arguments,
)
from sentinel_rag.agent.offline.attributes import attribute_of
from sentinel_rag.agent.offline.conversation import ListItem
from sentinel_rag.agent.offline.names import NameSlot
from sentinel_rag.agent.offline.plan import Decision
from sentinel_rag.agent.offline.qualifiers import TECHNIQUES
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.offline.subjects import Subject
from sentinel_rag.agent.planner.plan import Ask, Plan, PlannedCall, View
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.tool_schemas import MAX_LIMIT


def priority_plan(reading: Reading) -> Plan:
    """What to look at first: the open incidents, the most severe before the others."""
    arguments = dict(incident_filters(reading))
    if reading.has(r"today|now|this\s+(?:morning|shift)") or re.search(r"\btoday\b", reading.text, re.IGNORECASE):
        # The day of the work is meant, not the day on which the incident was created.
        for name in ("time_window", "start_time", "end_time"):
            arguments.pop(name, None)
    arguments |= {"status": arguments.get("status", "Open"), "order": "severity"}
    arguments.pop("title_contains", None)
    opening = ("These are the incidents still open, the most severe first.",)
    return Plan(
        view=View.INCIDENTS, calls=(PlannedCall("query_incidents", arguments),), reading=reading, opening=opening
    )


def alert_plan(reading: Reading, subject: Subject) -> Decision:
    """One alert, read through its incident."""
    attribute = attribute_of(reading)
    item = subject.item
    assert item is not None
    reference = item.incident or item.value
    if reading.has(cues.ANALYSIS):
        return Plan(
            view=View.ANALYSIS,
            calls=(PlannedCall("get_incident_detail", {"incident": reference}),),
            reading=reading,
            opening=("What I can analyze is an incident, so this is about the one that the alert belongs to.",),
        )
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
    around = replace(reading, window=subject.window, around=None, things=(), that="")
    if reading.has(cues.INCIDENT) and not reading.has(cues.ALERT):
        return incidents_plan(around)
    return alerts_plan(around)


def alerts_plan(reading: Reading, entity: ListItem | None = None) -> Decision:
    """query_alerts with every filter that was said; `entity` is one that was shown in a list."""
    if reading.owner.nobody or reading.owner.name or reading.owner.mine:
        said = re.sub(rf"\b(?:{cues.ALERT})\b", "incidents", reading.text, count=1, flags=re.IGNORECASE)
        return Ask(
            "Alerts have no owner; the incidents that they belong to have.",
            (said,) if said != reading.text else (),
        )
    arguments: dict[str, JsonValue] = dict(alert_filters(reading))
    if entity is not None:
        arguments["entity"] = entity.value
        if entity.entity_kind:
            arguments["entity_kind"] = entity.entity_kind
    opening: tuple[str, ...] = (reading.severity.note,) if reading.severity.note else ()
    if reading.has(f"{_ROWS_OF_LOGS}|{cues.LOGS}") and not reading.has(cues.ALERT):
        opening += ("I looked at alerts only. Rows of the logs need a stored query; ask “what queries can you run?”.",)
    calls = for_each_name(reading, PlannedCall("query_alerts", arguments))
    if len(calls) > 1 and are_meant_together(reading):
        wide = tuple(replace(call, arguments={**call.arguments, "limit": MAX_LIMIT}) for call in calls)
        return Plan(view=View.SHARED_ALERTS, calls=wide, reading=reading, opening=opening)
    view = View.ALERT_COUNT if reading.has(cues.COUNT) and not reading.limit else View.ALERTS
    plan = Plan(view=view, calls=calls, reading=reading, opening=opening)
    return unsettled(plan) if reading.status in ("open", "active") else plan


_ROWS_OF_LOGS = r"(?:raw\s+|log\s+)?events?|logs|records|log\s+(?:lines|entries)"
"""Nouns that ask for more than alerts."""
_ALERT_LIMITS = re.compile(
    r"(\b(?:more\s+than|over|at\s+least|above|fewer\s+than|less\s+than|under|at\s+most|below)\b|[<>]=?)\s*(\d{1,6})\s+alerts?\b",
    re.IGNORECASE,
)


def incidents_plan(reading: Reading) -> Decision:
    """query_incidents with every filter that was said."""
    if reading.owner.mine:
        return Ask(
            "I do not know your name in Sentinel. Whose incidents do you want, for example by the owner's address?"
        )
    involved = _involved(reading)
    if involved is not None:
        reading = replace(reading, names=(involved,), rest="", words=())
    if reading.tactic is not None and re.fullmatch(r"T\d{4}(\.\d{3})?", reading.tactic):
        found = alerts_plan(reading)
        sentence = (
            "Incidents cannot be filtered by technique. These are the alerts of it; each line names its incident."
        )
        assert isinstance(found, Plan)
        return replace(found, view=View.ALERTS, opening=(sentence, *found.opening))
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
    limits = _ALERT_LIMITS.search(reading.core)
    if limits is not None:
        call = PlannedCall("query_incidents", {**arguments, "limit": 100})
        more = re.match(r"more|over|at\s+least|above|>", limits[1], re.IGNORECASE) is not None
        exact = re.match(r"at|.=", limits[1], re.IGNORECASE) is not None
        aspects = ("more" if more else "fewer", "or equal" if exact else "", limits[2])
        return Plan(view=View.INCIDENTS_BY_ALERTS, calls=(call,), reading=reading, aspects=aspects, opening=opening)
    if reading.has(r"(?:the\s+)?(?:most|highest\s+number\s+of|many)\s+alerts|biggest|largest"):
        call = PlannedCall("query_incidents", {**arguments, "limit": 100})
        return Plan(view=View.INCIDENTS, calls=(call,), reading=reading, aspects=("most_alerts",))
    view = View.INCIDENT_COUNT if reading.has(cues.COUNT) and not reading.limit else View.INCIDENTS
    return Plan(
        view=view,
        calls=for_each_name(reading, PlannedCall("query_incidents", arguments)),
        reading=reading,
        opening=opening,
    )


def _involved(reading: Reading) -> NameSlot | None:
    """ "Incidents that involve gsmith", "incidents of gsmith": one plain word there is a name, unless an attack's."""
    words = reading.unknown_words
    links = r"involv\w+|mention\w*|affect\w*|touch\w*|hit\w*|target\w*|nam(?:es?|ing)|contain\w*|of|for|from|on|against"
    if reading.names or len(words) != 1 or words[0] in TECHNIQUES:
        return None
    match = re.search(rf"\b(?:{links})\s+(?:by\s+|the\s+)?({re.escape(words[0])})\b", reading.core, re.IGNORECASE)
    return None if match is None else NameSlot(match[1], shaped=False)


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


def summary_plan(reading: Reading) -> Plan:
    """get_threat_summary, of both windows where two are compared."""
    calls = [PlannedCall("get_threat_summary", window_arguments(reading))]
    if reading.other_window is not None:
        calls.append(PlannedCall("get_threat_summary", dict(reading.other_window.arguments())))
    return Plan(view=View.SUMMARY, calls=tuple(calls), reading=reading)
