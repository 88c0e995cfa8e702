"""Plans that look for something by words: a property of a named thing, a keyword, a field of alerts, an alert that the
words describe.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sentinel_rag.agent.offline import cues
from sentinel_rag.agent.offline.arguments import (
    alert_filters,
    entity_argument,
    window_arguments,
)
from sentinel_rag.agent.offline.attributes import attribute_of, attributes_asked
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.planner.plan import Plan, PlannedCall, View


def named_property_plan(reading: Reading, incidents: Sequence[str] = ()) -> Plan:
    """A property of a thing that is named: the alerts that name it, of one incident or of all."""
    filters_ = {**window_arguments(reading), **entity_argument(reading)}
    calls = tuple(PlannedCall("query_alerts", {"incident": each, **filters_}) for each in incidents)
    return Plan(
        view=View.PROPERTY,
        calls=calls or (PlannedCall("query_alerts", filters_),),
        reading=reading,
        aspects=labels(reading),
    )


def property_plan(reading: Reading) -> Plan | None:
    """`named_property_plan` without an incident, or None if the question names nothing or asks for no property."""
    attribute = attribute_of(reading)
    if attribute is None or not reading.names or any(name.quoted and " " in name.value for name in reading.names):
        return None
    if not attribute.deep and not reading.has(r"which|what|whose|who|whats|list|all|show|give|get|tell|[a-z]+\s+of"):
        return None
    return named_property_plan(reading)


_MANY_OF_IT = re.compile(r"(?<=\w)\s+(?:attempts?|attacks?)$", re.IGNORECASE)
"""What people say behind the name of an attack, and titles often do not."""


def keyword_plan(reading: Reading) -> Plan:
    """A word or two alone: in the titles of incidents and in the names of alerts."""
    said = reading.rest if reading.filtered and not reading.names else reading.text
    words = _MANY_OF_IT.sub("", " ".join(said.strip(" .,;?!\"'").split()))
    narrow = {**window_arguments(reading), **reading.severity.arguments()}
    calls = (
        PlannedCall("query_incidents", {"title_contains": words, **narrow}),
        PlannedCall("query_alerts", {"name_contains": words, **narrow}),
    )
    return Plan(view=View.KEYWORD, calls=calls, reading=reading)


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


def search_plan(reading: Reading, incidents: Sequence[str] = ()) -> Plan:
    """Look for the alert that the words describe: in the incidents named, else among the newest and oldest alerts."""
    named = [name for name in reading.names if not name.quoted and name.shaped][:1]
    calls = search_calls(reading, incidents) or (
        *(PlannedCall("query_alerts", {**window_arguments(reading), "entity": name.value}) for name in named),
        PlannedCall("query_alerts", {**window_arguments(reading), "limit": 100}),
        PlannedCall("query_alerts", {**window_arguments(reading), "order": "oldest", "limit": 100}),
    )
    return Plan(view=View.ATTRIBUTE, calls=calls, reading=reading, aspects=labels(reading))


def search_calls(reading: Reading, incidents: Sequence[str]) -> tuple[PlannedCall, ...]:
    """The alerts of each incident; for a property also its entities, which hold what other alerts say of one."""
    attribute = attribute_of(reading)
    calls = [PlannedCall("query_alerts", {"incident": reference, "limit": 100}) for reference in incidents]
    if attribute is not None and attribute.deep:
        calls += [PlannedCall("get_incident_detail", {"incident": reference}) for reference in incidents]
    return tuple(calls)


def labels(reading: Reading) -> tuple[str, ...]:
    return tuple(attribute.label for attribute in attributes_asked(reading))
