"""Questions that choose among the lines that were shown: "which one was created last?", "which of these has no owner?",
"how many were closed yesterday?".

They name nothing themselves, so leftover words must not find them another query: they are answered from the lines, by
the query of the list with what is said on top, or asked back. States are queried again; lines only say which ids.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from sentinel_rag.agent.offline import cues, follow_up
from sentinel_rag.agent.offline.conversation import AskedCall, Conversation, ListItem
from sentinel_rag.agent.offline.incident_plans import detail_plan
from sentinel_rag.agent.offline.plan import Decision
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.offline.subjects import Subject
from sentinel_rag.agent.planner.plan import Ask, Plan, PlannedCall, View
from sentinel_rag.agent.references.state import ShownList
from sentinel_rag.agent.references.wording import kind_of
from sentinel_rag.contracts.json_values import JsonValue

_OPENS = r"^\W*(?:(?:and|so|ok(?:ay)?|but|now|then|of\s+(?:these|those|them)),?\s+)*"
_OF_THESE = (
    r"(?:\w+\s+)?of\s+(?:(?:these|those|them|the)\b(?:\s+(?:two|three|four|five|six|\d{1,2}))?)"
    rf"(?:\s+(?P<noun>{cues.INCIDENT}|alerts?|ones|lines|rows|hosts?|accounts?|users?|machines?))?\b"
)
_IS = r"(?:is|are|was|were|has|have|had|got|came|happened)\b"
_CHOOSES = re.compile(
    rf"{_OPENS}(?:(?:which|what)\s+(?:ones?\b|{_OF_THESE})|(?P<bare>which\s+(?={_IS}(?!\s+(?:it|that|this|they|those|these)\b)))"
    rf"|{_IS}\s+(?:any|some|one|none|all)\s+of\s+(?:these|those|them)\b)",
    re.IGNORECASE,
)
_COUNTS = re.compile(
    rf"{_OPENS}how\s+many\s+(?:of\s+(?:these|those|them)\b|ones?\b|(?=(?:{_IS}|did|do|does)))",
    re.IGNORECASE,
)
_MADE = r"created|opened|raised|started|began|happened|occurred|came(?:\s+in)?|reported|detected"
_LAST = re.compile(
    rf"\b(?:newest|latest|newer|youngest|younger|most\s+recent(?:ly)?|(?:{_MADE})\s+(?:\w+\s+)?last)\b", re.IGNORECASE
)
_FIRST = re.compile(rf"\b(?:oldest|older|earliest|earlier|(?:{_MADE})\s+(?:\w+\s+)?first)\b", re.IGNORECASE)
_OTHER_TIME = re.compile(r"\b(?:clos\w+|resolv\w+|updated?|chang\w+|modif\w+|touch\w+|assign\w+)\b", re.IGNORECASE)
_WORST = re.compile(
    r"\b(?:(?:most|more)\s+(?:severe|serious|critical|important|urgent|dangerous)|worst|worse|highest(?:\s+severity)?|"
    r"severest|higher)\b",
    re.IGNORECASE,
)
_MOST_ALERTS = re.compile(r"\b(?:most|highest\s+number\s+of|more)\s+alerts\b|\bbiggest\b|\blargest\b", re.IGNORECASE)
_RANKS = ("informational", "low", "medium", "high")
MOST_LOOKED_AT = 10
"""Incidents that are read one by one for a field of each; of more the person names those that matter."""


def among_shown(reading: Reading, conversation: Conversation) -> Decision | None:
    """What to do about a question that chooses among lines; None if it is not such a one, or can stand alone."""
    names_its_own = reading.incidents or reading.incident_urls or reading.guids or reading.things or reading.unclear
    if names_its_own or reading.numbers:
        return None
    if _COUNTS.match(reading.text):
        return _counted(reading, conversation)
    choice = _CHOOSES.match(reading.text)
    if choice is None or reading.has(cues.PRIORITY) or (choice["bare"] and _stands_alone(reading)):
        return None
    lines = _lines(conversation)
    kind = "" if choice["noun"] is None else kind_of(choice["noun"])
    if not lines or (kind and any(line.of_kind != kind for line in lines)):
        return None if choice["bare"] else Ask("Which ones do you mean? Name them, or ask for a list first.")
    return _chosen(reading, conversation, lines) or Ask(
        "I cannot tell that from the lines that were shown. Name one by its number, such as [1], or ask the whole "
        "question with “incidents” or “alerts” in it."
    )


def _stands_alone(reading: Reading) -> bool:
    """True for "which are the newest incidents": it has a noun of its own, which "which has most alerts" has not."""
    rest = _MOST_ALERTS.sub(" ", reading.core)
    others = f"{cues.INCIDENT}|{cues.ALERT}|{cues.TEMPLATES}|{cues.TABLES}|{cues.LOGS}|{cues.RAW}|{cues.TREND}"
    return bool(re.search(rf"\b(?:{others})\b", rest, re.IGNORECASE) or cues.kinds_named(reading))


def _lists(conversation: Conversation) -> list[ShownList]:
    """The lists among whose lines a person can choose: of several things."""
    return [each for each in conversation.references.lists if len(_things(each)) > 1]


def _things(shown: ShownList) -> tuple[ListItem, ...]:
    return tuple(item for item in shown.items if item.value and item.kind != "question")


def _lines(conversation: Conversation) -> tuple[ListItem, ...]:
    """The incidents or alerts that were listed last, or that were spoken of together since. One line alone, such as the
    only alert beside an incident, is nothing to choose among."""
    references = conversation.references
    lists = _lists(conversation)
    together = tuple(item for item in references.group if item.kind == "incident")
    if len(together) > 1 and (not lists or references.group_turn >= lists[-1].turn):
        return together
    return _things(lists[-1]) if lists else ()


def _query(conversation: Conversation) -> AskedCall | None:
    """The query behind the list that was shown last, if that list is one query's."""
    numbers = [conversation.references.number_of(each) for each in _lists(conversation)]
    return conversation.listed_by if numbers and numbers[-1] == conversation.listed_as else None


def _counted(reading: Reading, conversation: Conversation) -> Decision | None:
    query = _query(conversation)
    says = _says_filter(reading)
    if query is not None and says and query.tool in _LISTING:
        narrowed = _narrowed(reading, conversation, query)
        if narrowed is not None:
            return narrowed
    lines = _lines(conversation)
    kinds = {line.kind for line in lines} & {"incident", "alert"}
    if not says or (not lines and query is None):
        return None
    match = _COUNTS.match(reading.text)
    assert match is not None
    rest = reading.text[match.end() :].strip(" ?.!")
    nouns = [f"{kind}s" for kind in sorted(kinds)] or ["incidents", "alerts"]
    return Ask("How many of what? Which of these do you mean?", tuple(f"How many {noun} {rest}?" for noun in nouns))


_LISTING = ("query_incidents", "query_alerts")


def _says_filter(reading: Reading) -> bool:
    narrows = (
        reading.window or reading.severity.arguments() or reading.status or reading.names or reading.tactic
        or reading.product or reading.owner.nobody or reading.owner.name
    )  # fmt: skip
    return bool(narrows) and not reading.unknown_words


def _narrowed(reading: Reading, conversation: Conversation, query: AskedCall) -> Plan | None:
    """The query of the list with what is said on top; it says so where the list showed only a part of its rows."""
    lists = _lists(conversation)
    whole = lists[-1].total is None or lists[-1].total <= len(lists[-1].items)
    arguments = {name: value for name, value in query.arguments.items() if name != "limit"}
    plan = follow_up.narrowed(reading, replace(query, arguments=arguments))
    if plan is None or whole:
        return plan
    return replace(plan, opening=("The list showed only some of its rows; I looked at all of them.",))


def _chosen(reading: Reading, conversation: Conversation, lines: Sequence[ListItem]) -> Decision | None:
    text = reading.core
    query = _query(conversation)
    incidents = tuple(line for line in lines if line.kind == "incident")
    whole = len(incidents) == len(lines)
    if _MOST_ALERTS.search(text) and whole:
        if query is not None and query.tool == "query_incidents":
            arguments: dict[str, JsonValue] = {k: v for k, v in query.arguments.items() if k != "offset"}
            call = PlannedCall("query_incidents", {**arguments, "limit": len(lines)})
            return Plan(view=View.INCIDENTS, calls=(call,), reading=reading, aspects=("most_alerts",))
        return _each(reading, incidents, ("alert_count",))
    about_made = not _OTHER_TIME.search(text)
    for pattern, best, sentence in (
        (_LAST, max, "Of the lines that were shown, this one is the newest."),
        (_FIRST, min, "Of the lines that were shown, this one is the oldest."),
    ):
        if about_made and pattern.search(text):
            return _extreme(reading, lines, lambda line: line.time, best, ("created",), sentence)
    if _WORST.search(text) and all(line.severity.lower() in _RANKS for line in lines):
        sentence = "Of the lines that were shown, this one is the most severe."
        return _extreme(reading, lines, _severity, max, ("severity",), sentence)
    if _says_filter(reading) and query is not None and query.tool in _LISTING:
        return _narrowed(reading, conversation, query)
    asked = cues.aspects_of(reading)
    return _each(reading, incidents, asked) if whole and asked and not reading.unknown_words else None


def _severity(line: ListItem) -> str:
    return str(_RANKS.index(line.severity.lower()))


def _extreme(
    reading: Reading,
    lines: Sequence[ListItem],
    by: Callable[[ListItem], str],
    best: Callable[[Sequence[str]], str],
    aspects: tuple[str, ...],
    sentence: str,
) -> Decision | None:
    """The line that is first or last by a value, looked at anew; each of them where several are, or values are not
    known."""
    incidents = tuple(line for line in lines if line.kind == "incident")
    if not all(by(line) for line in lines):
        return _each(reading, incidents, aspects) if len(incidents) == len(lines) else None
    wanted = best([by(line) for line in lines])
    found = tuple(line for line in lines if by(line) == wanted)
    if all(line.kind == "incident" for line in found):
        plan = _each(reading, found, aspects)
        return replace(plan, opening=(sentence,)) if isinstance(plan, Plan) and len(found) == 1 else plan
    if len(found) == 1 and found[0].kind == "alert":
        call = PlannedCall("get_incident_detail", {"incident": found[0].incident or found[0].value})
        return Plan(view=View.ALERT, calls=(call,), reading=reading, alert_id=found[0].value, opening=(sentence,))
    return None


def _each(reading: Reading, incidents: Sequence[ListItem], aspects: tuple[str, ...]) -> Plan | None:
    """The field of each incident, told one below the other."""
    if not 0 < len(incidents) <= MOST_LOOKED_AT:
        return None
    subject = Subject("incident", tuple(line.value for line in incidents))
    return detail_plan(reading, subject, View.INCIDENT, aspects)
