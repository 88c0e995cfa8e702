"""The first calls of a walk: what the person named, the incident they named, else the newest and oldest alerts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from sentinel_rag.agent.offline.alert_walk.briefing import read_briefing
from sentinel_rag.agent.offline.attributes import attributes_asked
from sentinel_rag.agent.offline.names import NameSlot
from sentinel_rag.agent.offline.reading import Reading, read_question
from sentinel_rag.agent.planner.plan import Plan, PlannedCall, View
from sentinel_rag.contracts.tool_schemas import MAX_LIMIT
from sentinel_rag.language.frames import Frame
from sentinel_rag.language.frames.orders import read_order
from sentinel_rag.language.times.kinds import Now

MOST_NAMED = 4
"""Things of the context whose alerts are asked for."""


_LIST_NUMBER = re.compile(r"\[\d{1,3}\]")
_ASKS = re.compile(
    r"\b(?:what|which|who(?:m|se)?|identify|find|provide|determine|retrieve|obtain|get|tell|name|specify|reveal|confirm|"
    r"give)\b",
    re.IGNORECASE,
)
_ASKS_FOR_MANY = re.compile(
    r"\b(?:how\s+many|number\s+of|count|list|top|most|rank\w*|per\s+(?:day|hour)|trend)\b|"
    r"\b(?:what|which|who|identify|find|provide|give|tell|get)\W+(?:\w+\W+){0,3}(?:all|every|each|incidents|alerts|queries|"
    r"tables|templates)\b",
    re.IGNORECASE,
)


def walk_plan(text: str, now: Now) -> Plan | None:
    """A plan for a text that tells what happened and asks for one thing of it, or None for any other text."""
    briefing = read_briefing(text)
    if briefing is None or _LIST_NUMBER.search(text):
        return None
    # Tools join the parts of a process by two underscores; a word may end there.
    asked, told = briefing.question.replace("__", " "), " ".join(briefing.told)
    reading, context = read_question(asked, now), read_question(told, now)
    if not _ASKS.search(asked) or _ASKS_FOR_MANY.search(asked) or read_order(asked) is not None:
        return None
    attributes = attributes_asked(reading)
    if not attributes:
        return None
    incidents = tuple(dict.fromkeys((*reading.incidents, *context.incidents)))
    named = () if incidents else tuple(_naming(name) for name in _distinct(reading, context))
    # Days and severities of a briefing describe what happened; they are no filter on what is asked.
    return Plan(
        view=View.ATTRIBUTE,
        calls=(*listings(incidents), *named),
        frame=Frame(asked, features=defaultdict(list, name=[name.value for name in reading.names])),
        aspects=tuple(attribute.label for attribute in attributes),
        told=briefing.told,
    )


def listings(incidents: Sequence[str]) -> tuple[PlannedCall, ...]:
    """The alerts of the incidents, or the newest and the oldest ones of all."""
    if incidents:
        return tuple(PlannedCall("query_alerts", {"incident": each, "limit": MAX_LIMIT}) for each in incidents)
    return (
        PlannedCall("query_alerts", {"limit": MAX_LIMIT}),
        PlannedCall("query_alerts", {"order": "oldest", "limit": MAX_LIMIT}),
    )


def _distinct(*readings: Reading) -> list[NameSlot]:
    """Names that tell things apart: with a digit, a dot or a path in them, each once."""
    found: dict[str, NameSlot] = {}
    for reading in readings:
        for name in reading.names:
            if any(character.isdigit() or character in ".\\@" for character in name.value) and " " not in name.value:
                found.setdefault(name.value.lower(), name)
    return list(found.values())[:MOST_NAMED]


def _naming(name: NameSlot) -> PlannedCall:
    return PlannedCall("query_alerts", {"entity": name.value, "limit": 100})
