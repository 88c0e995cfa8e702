"""Plans over incidents, alerts, trends, rankings and summaries, each from the slots of a reading.

Which of them answers a question is the planner's decision; what a plan's arguments are is decided here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sentinel_rag.agent.conversation import ListItem
from sentinel_rag.agent.offline import cues
from sentinel_rag.agent.offline.arguments import (
    alert_filters,
    entity_argument,
    incident_filters,
    placed_words,
    window_arguments,
)
from sentinel_rag.agent.offline.attribute_catalogue import Attribute
from sentinel_rag.agent.offline.attributes import attribute_of, attributes_asked
from sentinel_rag.agent.offline.names import NameSlot
from sentinel_rag.agent.offline.plan import Ask, Decision, Plan, PlannedCall, View
from sentinel_rag.agent.offline.qualifiers import TECHNIQUES
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.offline.subjects import Subject
from sentinel_rag.contracts.json_values import JsonValue


def incident_plan(reading: Reading, subject: Subject) -> Decision:
    """What is asked about one incident or several: fields, alerts, one property, or all."""
    asked = cues.aspects_of(reading)
    attribute = attribute_of(reading)
    narrowed = bool(
        reading.names or reading.severity.arguments() or reading.status or reading.product or reading.window
    )
    lists_alerts = reading.has(cues.ALERT) and ("alert_count" not in asked or narrowed)
    if reading.has(cues.ANALYSIS):
        return detail_plan(reading, subject, View.ANALYSIS, ())
    if "alert_count" in asked and narrowed:
        return _alerts_of(reading, subject)
    describing = [word for word in reading.unknown_words if len(word) > 3]
    told_apart = bool(describing) or reading.has(_ACTS_ALONE)
    if attribute is not None and reading.names and not told_apart:
        return _property_plan(reading, subject.incidents)
    kinds = cues.kinds_named(reading)
    if attribute is not None and not reading.names and not told_apart and not set(asked) - {"products", "alert_count"}:
        return _entities_plan(reading, subject, attribute, kinds)
    if attribute is not None and (attribute.deep or reading.names or told_apart):
        calls = _search_calls(reading, subject.incidents)
        return Plan(view=View.ATTRIBUTE, calls=calls, reading=reading, aspects=_labels(reading))
    if reading.tactic is not None or (lists_alerts and not reading.has(r"(?:which|what|whose)\s+incident")):
        return _alerts_of(reading, subject)
    if reading.names and attribute is None:
        calls = tuple(
            PlannedCall("query_alerts", {"incident": reference, **entity_argument(reading)})
            for reference in subject.incidents
        )
        return Plan(view=View.ALERTS, calls=calls, reading=reading)
    if not asked and reading.has(rf"{cues.ENTITIES}|involved|affected"):
        return detail_plan(reading, subject, View.INCIDENT, ("entities:",))
    if subject.reference_asked:
        asked = ("ids",)
    elif reading.has(_ABOUT):
        asked = ()
    return detail_plan(reading, subject, View.INCIDENT, asked)


_ABOUT = r"about|explain|describe|details?|more|summar\w+"
ACTS = (
    r"click\w*|ran|run|launch\w*|execut\w*|download\w*|drop\w*|used|open\w*|access\w*|sent|creat\w*|visit\w*|"
    r"deliver\w*|connect\w*|logged|signed"
)
"""Verbs that tell one alert of an incident from the others ("which URL was clicked")."""
_ACTS_ALONE = ACTS.replace("|used", "").replace("|ran|run", "")
"""Those that do so without another word: every account of an incident "was used", every process "ran"."""


def _alerts_of(reading: Reading, subject: Subject) -> Plan:
    """query_alerts in each incident with every filter that was said, listed or counted."""
    filters_ = alert_filters(reading)
    calls = tuple(PlannedCall("query_alerts", {"incident": reference, **filters_}) for reference in subject.incidents)
    view = View.ALERT_COUNT if reading.has(cues.COUNT) else View.ALERTS
    return Plan(view=view, calls=calls, reading=reading)


def _entities_plan(reading: Reading, subject: Subject, attribute: Attribute, kinds: Sequence[str]) -> Plan:
    """Every kind that is named, from the incident's entities; behind what it is about, if that is asked too."""
    wanted = [] if attribute.label in _OF_KINDS else [f"values:{attribute.label}"]
    for kind in kinds:
        if kind not in attribute.kinds or attribute.label in _OF_KINDS:
            wanted.append(f"entities:{kind}")
    if not wanted:
        wanted = [f"entities:{kind}" for kind in attribute.kinds]
    first = ("everything",) if reading.has(_ABOUT) else ()
    if not first and "alert_count" in cues.aspects_of(reading):
        first = ("alert_count",)
    return detail_plan(reading, subject, View.INCIDENT, first + tuple(wanted))


_OF_KINDS = frozenset({"account", "host", "IP address", "URL", "file", "process", "mailbox", "malware", "application"})
"""Attributes that are whole entities; the others are properties of one."""


def _property_plan(reading: Reading, incidents: Sequence[str] = ()) -> Plan:
    """A property of a thing that is named: the alerts that name it, of one incident or of all."""
    filters_ = {**window_arguments(reading), **entity_argument(reading)}
    calls = tuple(PlannedCall("query_alerts", {"incident": each, **filters_}) for each in incidents)
    return Plan(
        view=View.PROPERTY,
        calls=calls or (PlannedCall("query_alerts", filters_),),
        reading=reading,
        aspects=_labels(reading),
    )


def property_plan(reading: Reading) -> Plan | None:
    """`_property_plan` without an incident, or None if the question names nothing or asks for no property."""
    attribute = attribute_of(reading)
    if attribute is None or not reading.names or any(name.quoted and " " in name.value for name in reading.names):
        return None
    if not attribute.deep and not reading.has(r"which|what|whose|who|whats|list|all|show|give|get|tell|[a-z]+\s+of"):
        return None
    return _property_plan(reading)


def keyword_plan(reading: Reading) -> Plan:
    """A word or two alone: in the titles of incidents and in the names of alerts."""
    words = " ".join(reading.text.strip(" .?!\"'").split())
    calls = (
        PlannedCall("query_incidents", {"title_contains": words, **window_arguments(reading)}),
        PlannedCall("query_alerts", {"name_contains": words, **window_arguments(reading)}),
    )
    return Plan(view=View.KEYWORD, calls=calls, reading=reading)


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


def alert_field_plan(reading: Reading) -> Plan | None:
    """A field of alerts that are named by their name: description, remediation steps, product, ...; or None."""
    fields = cues.alert_fields_of(reading)
    arguments = dict(alert_filters(reading))
    if not fields or not ({"name_contains", "entity"} & set(arguments)):
        words = " ".join(word for word in reading.unknown_words if word not in _FIELD_WORDS)
        if not fields or not words:
            return None
        arguments["name_contains"] = words
    if not any(name.quoted for name in reading.names) and "name_contains" in arguments:
        said = str(arguments["name_contains"])
        arguments["name_contains"] = " ".join(word for word in said.split() if word not in _FIELD_WORDS) or said
    if "name_contains" not in arguments and not reading.names[0].shaped:
        arguments["name_contains"] = arguments.pop("entity")
        arguments.pop("entity_kind", None)
    if "remediation" in fields:
        arguments["limit"] = 5  # steps are long: the tool gives them for a few rows only
    return Plan(
        view=View.ALERTS, calls=(PlannedCall("query_alerts", arguments),), reading=reading, aspects=("fields", *fields)
    )


_FIELD_WORDS = frozenset({"remediation", "remediate", "mitigate", "mitigation", "fix", "steps", "meaning"})


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
    involved = _involved(reading)
    if involved is not None:
        reading = replace(reading, names=(involved,), rest="", words=())
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


def _involved(reading: Reading) -> NameSlot | None:
    """ "Incidents that involve gsmith": one plain word behind such a verb is a name, unless it is an attack's."""
    words = placed_words(reading)
    verbs = r"involv\w+|mention\w*|affect\w*|touch\w*|hit\w*|target\w*|nam(?:es?|ing)|contain\w*"
    if reading.names or len(words) != 1 or words[0] in TECHNIQUES:
        return None
    match = re.search(rf"\b(?:{verbs})\s+(?:by\s+|the\s+)?({re.escape(words[0])})\b", reading.core, re.IGNORECASE)
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


def summary_plan(reading: Reading) -> Decision:
    """get_threat_summary."""
    call = PlannedCall("get_threat_summary", window_arguments(reading))
    return Plan(view=View.SUMMARY, calls=(call,), reading=reading)


def search_plan(reading: Reading, incidents: Sequence[str] = ()) -> Plan:
    """Look for the alert that the words describe: in the incidents named, else among the newest and oldest alerts."""
    named = [name for name in reading.names if not name.quoted and name.shaped][:1]
    calls = _search_calls(reading, incidents) or (
        *(PlannedCall("query_alerts", {**window_arguments(reading), "entity": name.value}) for name in named),
        PlannedCall("query_alerts", {**window_arguments(reading), "limit": 100}),
        PlannedCall("query_alerts", {**window_arguments(reading), "order": "oldest", "limit": 100}),
    )
    return Plan(view=View.ATTRIBUTE, calls=calls, reading=reading, aspects=_labels(reading))


def _search_calls(reading: Reading, incidents: Sequence[str]) -> tuple[PlannedCall, ...]:
    """The alerts of each incident; for a property also its entities, which hold what other alerts say of one."""
    attribute = attribute_of(reading)
    calls = [PlannedCall("query_alerts", {"incident": reference, "limit": 100}) for reference in incidents]
    if attribute is not None and attribute.deep:
        calls += [PlannedCall("get_incident_detail", {"incident": reference}) for reference in incidents]
    return tuple(calls)


def _labels(reading: Reading) -> tuple[str, ...]:
    return tuple(attribute.label for attribute in attributes_asked(reading))
