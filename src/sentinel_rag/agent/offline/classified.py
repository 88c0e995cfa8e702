"""Incidents by how they were closed: "closed as false positive", "how many benign positives last month".

No filter of query_incidents says it, so the closed incidents are asked for, page by page, and the rows are kept that
carry the classification. Above it stands the planner; `compositions.classified` tells the rows. Shares and comparisons
of classifications are a stored query's.
"""

from __future__ import annotations

import re

from sentinel_rag.agent.offline import cues
from sentinel_rag.agent.offline.arguments import incident_filters, unused_words
from sentinel_rag.agent.offline.conversation import Conversation
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.planner.plan import Ask, Plan, PlannedCall, View
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.tool_schemas import CLASSIFICATION_REASONS, MAX_LIMIT

_SAID = re.compile(
    r"\b(?P<which>true|false|benign)[\s-]*positives?\b|\bas\s+(?P<short>benign)\b|\b(?P<open>undetermined)\b",
    re.IGNORECASE,
)
_SHARES = re.compile(
    r"\b(?:rates?|ratios?|shares?|percent(?:age)?s?|proportions?|vs\.?|versus|compared?|by|per|most|trend)\b|%",
    re.IGNORECASE,
)
_OF_THOSE = re.compile(
    r"^\W*(?:and\s+)?(?:(?:how\s+many|which|any)\s+(?:ones?\b|of\s+(?:them|these|those)\b|(?=(?:were|was|are|got)\b))"
    r"|only\b|just\b)",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\b(?:not|never|isn['’]?t|aren['’]?t|wasn['’]?t|weren['’]?t|except|excluding|without|other\s+than|apart\s+from)\b",
    re.IGNORECASE,
)
_NARROWING = ("time_window", "start_time", "end_time", "time_field", "severity", "min_severity", "owner",
              "title_contains", "entity", "entity_kind")  # fmt: skip
"""Arguments of a list that a question about its rows keeps."""


def classified_plan(reading: Reading, conversation: Conversation) -> Plan | Ask | None:
    """The plan for incidents of one classification, or a question back; None for any other question."""
    said = classifications_said(reading)
    one_thing = reading.incidents or reading.incident_urls or reading.guids or reading.numbers
    if len(said) != 1 or one_thing or _SHARES.search(reading.core):
        return None
    (wanted,) = said
    if negates(reading):
        return Ask(
            "I can list the incidents of one classification, not all but those. Which of these do you want?",
            (f"Incidents closed as {_words(wanted)}", "Incidents by classification"),
        )
    shown = conversation.listed_by
    if _OF_THOSE.match(reading.text) and shown is not None and shown.tool == "query_incidents":
        arguments = {name: value for name, value in shown.arguments.items() if name in _NARROWING}
        return _plan(reading, wanted, {**arguments, **incident_filters(reading)})
    if reading.things or reading.that:
        return None
    if reading.has(cues.ALERT) and not reading.has(cues.INCIDENT):
        words = _words(wanted)
        return Ask(
            "Alerts carry no classification; incidents do, once they are closed.", (f"Incidents closed as {words}",)
        )
    listed = reading.has(rf"{cues.INCIDENT}|{cues.COUNT}|closed|resolved|list|show|all|any|recent|last|which")
    plural = re.search(r"positives\b", reading.core, re.IGNORECASE) is not None
    if not listed and not plural:
        return None
    arguments = dict(incident_filters(reading))
    if unused_words(reading, str(arguments)):
        return None
    if reading.window is not None and not reading.has("created|opened|raised"):
        arguments["time_field"] = "closed"
    return _plan(reading, wanted, arguments)


def classifications_said(reading: Reading) -> set[str]:
    """The classifications that the question names, as Sentinel spells them."""
    return {_classification(match) for match in _SAID.finditer(reading.core)}


def negates(reading: Reading) -> bool:
    """True for "not a false positive" and the like."""
    return _NEGATED.search(reading.core) is not None


def _plan(reading: Reading, wanted: str, arguments: dict[str, JsonValue]) -> Plan:
    counted = ("count",) if reading.has(cues.COUNT) and not reading.limit else ()
    call = PlannedCall("query_incidents", {**arguments, "status": "Closed", "limit": MAX_LIMIT})
    return Plan(view=View.INCIDENTS_CLASSIFIED, calls=(call,), reading=reading, aspects=(wanted, *counted))


def _classification(match: re.Match[str]) -> str:
    if match["open"]:
        return "Undetermined"
    return f"{(match['which'] or match['short']).capitalize()}Positive"


def _words(classification: str) -> str:
    """A classification as people say it."""
    assert classification in CLASSIFICATION_REASONS
    return classification.replace("Positive", " positive").lower()
