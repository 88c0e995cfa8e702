"""Which alert of an incident came right before or right after another one that is told by words of its name.

A plan only; what came when is read from the rows by `compositions.alert_order`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.planner.plan import Plan, PlannedCall, View
from sentinel_rag.contracts.tool_schemas import MAX_LIMIT

_BEFORE = r"before|prior\s+to|preced(?:es|ed|ing)|(?:leading|led)\s+up\s+to"
_AFTER = r"after|following|follow(?:s|ed)|behind|succeed(?:s|ed|ing)"
_NEIGHBOUR = re.compile(
    r"\b(?:which|what)\s+(?:(?:other\s+)?(?:alert|detection)\b|happened\b|came\b|fired\b|was\s+(?:seen|raised)\b)[^.?]*?"
    rf"\b(?:(?P<before>{_BEFORE})|(?P<after>{_AFTER}))\s+(?P<words>[^?]+)",
    re.IGNORECASE,
)
_PLACE = re.compile(
    r"\b(?:in|of|from|within)\s+(?:the\s+)?(?:incident|case)\s*#?\s*[\w-]*|\b(?:the|that|this|an?|alerts?|one|named|called)\b",
    re.IGNORECASE,
)


def order_plan(reading: Reading, incidents: Sequence[str]) -> Plan | None:
    """The alerts of the one incident that is named, or None if the question asks for no neighbour of an alert."""
    match = _NEIGHBOUR.search(reading.text)
    if match is None or len(incidents) != 1 or reading.window is not None:
        return None
    words = " ".join(_PLACE.sub(" ", match["words"]).split())
    if not re.search(r"[A-Za-z]{3}", words):
        return None
    side = "before" if match["before"] else "after"
    call = PlannedCall("query_alerts", {"incident": incidents[0], "limit": MAX_LIMIT})
    return Plan(view=View.NEIGHBOUR, calls=(call,), reading=reading, aspects=(side, words))
