"""Incidents side by side: "compare 34 and 38", "difference between [1] and [2]", "what do they share".

Two to four incidents, each read whole. Windows that are compared ("this week with last week") are no matter of this.
"""

from __future__ import annotations

import re

from sentinel_rag.agent.conversation import Conversation
from sentinel_rag.agent.offline import cues
from sentinel_rag.agent.offline.plan import Ask, Plan, PlannedCall, View
from sentinel_rag.agent.offline.reading import Reading

SHARES = (
    r"(?:in|have|anything|something)\s+common|shar(?:e|es|ed|ing)|overlap\w*|related(?:\s+to\s+each\s+other)?|connect(?:ed|ion)|"
    r"linked|common\s+(?:entit\w+|hosts?|accounts?|users?|ips?|addresses|files|urls|hashes)|same\s+(?:entit\w+|hosts?|"
    r"accounts?|users?|ips?|addresses|attacker|actor|files?|urls?)"
)
_SIDE_BY_SIDE = r"side\s+by\s+side|compar(?:e|ed|ing|ison)|versus|vs\.?|differ(?:ence|ences|ent|s)?"
MOST_COMPARED = 4
_TOO_MANY = "I compare two to four incidents at a time. Which ones? Name their numbers, or say compare [n] and [n]."
_ONE_MORE = "Compare it with which other incident? Name the numbers of both."


def comparison_plan(reading: Reading, conversation: Conversation) -> Plan | Ask | None:
    """The plan; `Ask` where it is not clear which incidents; None for any other question."""
    shares = reading.has(SHARES)
    if not (shares or reading.has(_SIDE_BY_SIDE)) or reading.window is not None or reading.other_window is not None:
        return None
    incidents = _incidents(reading, conversation)
    if incidents is None or isinstance(incidents, Ask):
        return incidents
    if not 2 <= len(incidents) <= MOST_COMPARED:
        return Ask(_ONE_MORE if len(incidents) == 1 else _TOO_MANY)
    calls = tuple(PlannedCall("get_incident_detail", {"incident": each}) for each in incidents)
    kinds = tuple(f"entities:{kind}" for kind in cues.kinds_named(reading))
    return Plan(view=View.COMPARISON, calls=calls, reading=reading, aspects=(*(("shared",) if shares else ()), *kinds))


def _incidents(reading: Reading, conversation: Conversation) -> tuple[str, ...] | Ask | None:
    """What is compared; None if no incidents are, or if one is asked about something that is no other incident."""
    listed = tuple(item for item in conversation.listed if item.kind == "incident")
    named = reading.incidents + reading.incident_urls + reading.guids
    if reading.items:
        lines = [conversation.item(place) for place in reading.items]
        found = [line for line in lines if line is not None]
        if len(found) < len(lines):
            return Ask("There is no such line in the last list. Ask for a list first, or name the incidents.")
        if any(line.kind == "alert" for line in found):
            numbers = dict.fromkeys(line.incident for line in found if line.incident)
            option = (f"Compare incidents {' and '.join(numbers)}",) if len(numbers) > 1 else ()
            return Ask("Those lines are alerts, and I compare incidents side by side.", option)
        if any(line.kind != "incident" for line in found):
            return None
        named += tuple(line.value for line in found)
    if not named or len(named) == 1:
        named += reading.numbers
    if len(named) == 1 and reading.that in ("it", "incident", "case", "one") and conversation.incident is not None:
        named = (conversation.incident, *named)
    if not named and (reading.that == "them" or reading.has(r"both|two|these|the\s+incidents")):
        count = 2 if reading.has(r"first\s+two|top\s+two") or reading.limit == 2 else len(listed)
        if not listed:
            return (
                Ask("Which incidents do you mean? Name their numbers, or ask for a list first.")
                if (reading.that == "them" and re.search(r"\bcompar", reading.core, re.IGNORECASE))
                else None
            )
        named = tuple(item.value for item in listed[:count])
    unique = tuple(dict.fromkeys(named))
    if not unique and re.search(r"\bcompare\b", reading.core, re.I) and reading.has(cues.INCIDENT):
        return None if reading.has(cues.COUNT) else Ask(_TOO_MANY)
    if len(unique) == 1 and not re.search(r"\b(?:compare|versus|vs|difference)\b", reading.core, re.IGNORECASE):
        return None  # "which hosts are related to incident 12" is about one
    return unique or None
