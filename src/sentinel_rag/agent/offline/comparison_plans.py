"""Incidents side by side: "compare 34 and 38", "difference between [1] and [2]", "what do they share".

Two to four incidents, each read whole. Windows that are compared ("this week with last week") are no matter of this.
"""

from __future__ import annotations

import re

from sentinel_rag.agent.offline import cues
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.planner.plan import Ask, Plan, PlannedCall, View

SHARES = (
    r"(?:in|have|anything|something)\s+common|shar(?:e|es|ed|ing)|overlap\w*|related(?:\s+to\s+each\s+other)?|connect(?:ed|ion)|"
    r"linked|common\s+(?:entit\w+|hosts?|accounts?|users?|ips?|addresses|files|urls|hashes)|same\s+(?:entit\w+|hosts?|"
    r"accounts?|users?|ips?|addresses|attacker|actor|files?|urls?)"
)
_ALIKE = r"(?:similar|comparable|identical)\s+to|alike|resembl\w+|like(?=\s+#?\d)|the\s+same\s+as"
"""Words that compare where they stand between two incidents; of one they ask for others like it."""
_SIDE_BY_SIDE = r"side\s+by\s+side|compar(?:e|ed|ing|ison)|versus|vs\.?|differ(?:ence|ences|ent|s)?"
MOST_COMPARED = 4
_TOO_MANY = "I compare two to four incidents at a time. Which ones? Name their numbers, or say compare [n] and [n]."
_ONE_MORE = "Compare it with which other incident? Name the numbers of both."


def comparison_plan(reading: Reading) -> Plan | Ask | None:
    """The plan; `Ask` where it is not clear which incidents; None for any other question."""
    shares = reading.has(SHARES) or reading.has(_ALIKE)
    if not (shares or reading.has(_SIDE_BY_SIDE)) or reading.window is not None or reading.other_window is not None:
        return None
    incidents = _incidents(reading)
    if incidents is None or isinstance(incidents, Ask):
        return incidents
    if not 2 <= len(incidents) <= MOST_COMPARED:
        return Ask(_ONE_MORE if len(incidents) == 1 else _TOO_MANY)
    calls = tuple(PlannedCall("get_incident_detail", {"incident": each}) for each in incidents)
    kinds = tuple(f"entities:{kind}" for kind in cues.kinds_named(reading))
    return Plan(view=View.COMPARISON, calls=calls, reading=reading, aspects=(*(("shared",) if shares else ()), *kinds))


def _incidents(reading: Reading) -> tuple[str, ...] | Ask | None:
    """What is compared; None if no incidents are, or if one is asked about something that is no other incident."""
    alerts = [thing for thing in reading.things if thing.kind == "alert"]
    if alerts:
        numbers = dict.fromkeys(alert.incident for alert in alerts if alert.incident.isdigit())
        option = (f"Compare incidents {' and '.join(numbers)}",) if len(numbers) > 1 else ()
        return Ask("Those are alerts, and I compare incidents side by side.", option)
    named = reading.incidents + reading.incident_urls + reading.guids
    if len(named) < 2:
        named += reading.numbers
    unique = tuple(dict.fromkeys(named))
    compares = re.search(r"\bcompare\b", reading.core, re.IGNORECASE) is not None
    if not unique and compares and (reading.unclear or reading.that == "them"):
        return Ask(reading.unclear or "Which incidents do you mean? Name their numbers, or ask for a list first.")
    if not unique and compares and reading.has(cues.INCIDENT):
        return None if reading.has(cues.COUNT) else Ask(_TOO_MANY)
    if len(unique) == 1 and not reading.has(r"compare|versus|vs|difference"):
        return None  # "which hosts are related to incident 12" is about one
    return unique or None
