"""Plans over one incident or several: its fields, its alerts, its entities, one property of one thing, or all of it."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel_rag.agent.offline import cues
from sentinel_rag.agent.offline.arguments import (
    alert_filters,
    entity_argument,
    for_each_name,
)
from sentinel_rag.agent.offline.attribute_catalogue import Attribute
from sentinel_rag.agent.offline.attributes import attribute_of
from sentinel_rag.agent.offline.plan import Decision
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.offline.search_plans import labels, named_property_plan, search_calls
from sentinel_rag.agent.offline.subjects import Subject
from sentinel_rag.agent.planner.plan import Plan, PlannedCall, View

_OF_KINDS = frozenset({"account", "host", "IP address", "URL", "file", "process", "mailbox", "malware", "application"})
"""Attributes that are whole entities; the others are properties of one."""


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
        return named_property_plan(reading, subject.incidents)
    kinds = cues.kinds_named(reading)
    if attribute is not None and not reading.names and not told_apart and not set(asked) - {"products", "alert_count"}:
        return _entities_plan(reading, subject, attribute, kinds)
    if attribute is not None and (attribute.deep or reading.names or told_apart):
        calls = search_calls(reading, subject.incidents)
        return Plan(view=View.ATTRIBUTE, calls=calls, reading=reading, aspects=labels(reading))
    if reading.tactic is not None or (lists_alerts and not reading.has(r"(?:which|what|whose)\s+incident")):
        return _alerts_of(reading, subject)
    if reading.names and attribute is None:
        calls = tuple(
            call
            for reference in subject.incidents
            for call in for_each_name(
                reading, PlannedCall("query_alerts", {"incident": reference, **entity_argument(reading)})
            )
        )
        return Plan(view=View.ALERTS, calls=calls, reading=reading)
    if attribute is None and kinds and not asked:
        first = ("everything",) if reading.has(_ABOUT) else ()
        return detail_plan(reading, subject, View.INCIDENT, first + tuple(f"entities:{kind}" for kind in kinds))
    if not asked and reading.has(rf"{cues.ENTITIES}|involved|affected"):
        return detail_plan(reading, subject, View.INCIDENT, ("entities:",))
    if subject.reference_asked:
        asked = ("ids",)
    elif reading.has(_ABOUT) and "custom_details" not in asked:
        asked = ()
    return detail_plan(reading, subject, View.INCIDENT, asked)


_OF_ITS_ROW = frozenset(
    {
        "owner",
        "severity",
        "status",
        "created",
        "updated",
        "closed",
        "duration",
        "ids",
        "classification",
        "closer",
        "reopened",
        "response",
        "description",
    }
)
"""Fields that an incident's compact form holds too."""


def needs_whole_incident(plan: Plan) -> bool:
    """False if the compact form of an incident answers the question: it keeps every field but not every list."""
    return plan.view is not View.INCIDENT or not plan.aspects or not _OF_ITS_ROW.issuperset(plan.aspects)


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
    calls = tuple(
        call
        for reference in subject.incidents
        for call in for_each_name(reading, PlannedCall("query_alerts", {"incident": reference, **filters_}))
    )
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


def detail_plan(reading: Reading, subject: Subject, view: View, aspects: tuple[str, ...]) -> Plan:
    """get_incident_detail for each incident."""
    calls = tuple(PlannedCall("get_incident_detail", {"incident": reference}) for reference in subject.incidents)
    return Plan(view=view, calls=calls, reading=reading, aspects=aspects)
