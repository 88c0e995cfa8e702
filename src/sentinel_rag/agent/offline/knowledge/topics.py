"""What a question to the knowledge base is about, in words to search by, and what it narrows the search to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.offline.vocabulary import mend
from sentinel_rag.agent.offline.word_lists import word_list
from sentinel_rag.agent.references.wording import mask
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.knowledge_tools import MAX_QUESTION_CHARACTERS
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.contracts.tool_schemas import SEVERITIES, TIME_WINDOWS
from sentinel_rag.language.times.kinds import Now

_FILLERS = frozenset(
    word_list(
        """
        a an the this that these those it its them their there here and or but so also just only please pls thanks hey
        hi ok okay now again any some all every each one ones more most other others else thing things something
        anything everything kind kinds sort sorts type types case cases incident incidents inc incs ticket tickets
        past previous prior earlier former older old historic historical similar like such same comparable resembling
        resemble resembles before already ever last time times previously recently seen see saw had have has having
        happen happened happens occur occurred occurs encountered encounter handled handle dealt deal come across
        experienced know known knew was were is are be been being do does did done doing we us our ours you your yours
        i me my mine one's anyone anybody someone somebody people team what which who whom whose when where why how
        can could should shall must may might will would need needs needed want wants supposed to of for in on at by
        with from about into against during if then than as not no yes tell show give get list find search look
        looking up say says said tells describe describes explain explains recommend recommends recommended suggest
        suggests suggested mention mentions according follow following apply applies applicable fit fits fitting use
        used using exist exists existing available step steps next action actions measure measures response respond
        react procedure procedures playbook playbooks runbook runbooks play run book books sop sops guide guides plan
        plans instruction instructions document documents section file knowledge base closed close closing resolved
        resolve classified involved involving involve involves related concerning regarding true false benign positive
        positives undetermined severity technique techniques tactic tactics mitre attack's status quickly best exactly
        first proceed approach tackle treat go end ended ends turn turned out keep kept keeping decide decides decided
        approve approves approved authorise authorises authorize authorizes because due owing being s t re ve d ll off
        """
    )
)
"""Words that say what is wanted and not what it is about."""
_WORD = re.compile(r"[^\W_][\w'’.+-]*[^\W_]|[^\W_]")
_NEIGHBOURS = re.compile(r"(?=\b([\w'’+-]+)\s+([\w'’+-]+))")
_SECOND_WORDS = frozenset({"ticket", "tickets", "file", "files", "document", "documents", "base", "handle", "handles"})
_FIRST_WORDS = frozenset({"ticket", "file", "document", "knowledge", "base", "handle"})
"""Fillers that belong to the word beside them: a golden ticket, a file server, a document macro."""
_PASSED = re.compile(r"\bpass(?:ing)?[\s-]+the[\s-]+ticket", re.IGNORECASE)
_TECHNIQUE = re.compile(r"T\d{4}(?:\.\d{3})?", re.IGNORECASE)
_CLASSIFICATIONS = (
    (re.compile(r"\btrue[\s-]+positives?\b", re.IGNORECASE), "TruePositive"),
    (re.compile(r"\bbenign(?:[\s-]+positives?)?\b", re.IGNORECASE), "BenignPositive"),
    (re.compile(r"\bfalse[\s-]+(?:positives?|alarms?)\b", re.IGNORECASE), "FalsePositive"),
    (re.compile(r"\bundetermined\b", re.IGNORECASE), "Undetermined"),
)
_SAYS_TACTIC = re.compile(r"\btactics?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """Arguments of the search, and what was asked for that it cannot filter by."""

    arguments: Mapping[str, JsonValue]
    remarks: tuple[str, ...] = ()


def topic_of(reading: Reading) -> str:
    """The words that a question is about: things that it names first, then its other telling words in their order."""
    names = [name.value for name in reading.names]
    quotations = re.findall(r"[\"“]([^\"”]{2,200})[\"”]", reading.text)
    tactic = reading.tactic or ""
    said = [*names, *(each for each in quotations if each not in names)]
    if tactic and not _SAYS_TACTIC.search(reading.text):
        said.append(tactic if _TECHNIQUE.fullmatch(tactic) else re.sub(r"(?<=[a-z])(?=[A-Z])", " ", tactic).lower())
    left = {word.lower() for word in _WORD.findall(reading.rest)}
    # The grammar mends slips towards its own words; what is searched by is as the person wrote it.
    words = (word for word in _WORD.findall(mask(reading.text)) if mend(word).lower() in left or word.lower() in left)
    said += _telling_words([word for word in words if not word.isdigit()], mask(reading.text))
    kept = dict.fromkeys(word for word in said if word.strip("\ufffc"))
    return " ".join(kept)[:MAX_QUESTION_CHARACTERS]


def _telling_words(words: list[str], text: str) -> list[str]:
    """The words without those that only say what is wanted; "golden ticket" keeps both of its words."""
    telling = {word for word in words if word.lower() not in _FILLERS}
    kept = set(telling)
    for pair in _NEIGHBOURS.finditer(text):
        first, second = pair[1], pair[2]
        if first in telling and second.lower() in _SECOND_WORDS:
            kept.add(second)
        if second in telling and first.lower() in _FIRST_WORDS:
            kept.add(first)
    return [word for word in words if word in kept or (_PASSED.search(text) and word.lower() == "ticket")]


def filters_of(reading: Reading, now: Now, *, past: bool) -> SearchFilters:
    """What the question narrows the search to. Playbooks have a technique only; `past` incidents have all of it."""
    arguments: dict[str, JsonValue] = {}
    remarks: list[str] = []
    if reading.tactic and _TECHNIQUE.fullmatch(reading.tactic):
        arguments["technique"] = reading.tactic.upper()
    if not past:
        return SearchFilters(arguments)
    severity = reading.severity.arguments()
    if "severity" in severity:
        arguments["severity"] = severity["severity"]
    elif severity.get("min_severity") == SEVERITIES[-1]:
        arguments["severity"] = SEVERITIES[-1]
    elif severity:
        remarks.append("The search of past incidents takes one severity and no threshold, so all severities are here.")
    if reading.tactic and not _TECHNIQUE.fullmatch(reading.tactic):
        arguments["tactic"] = reading.tactic
    for pattern, classification in _CLASSIFICATIONS:
        if pattern.search(reading.text):
            arguments["classification"] = classification
            break
    return SearchFilters(arguments | _window(reading, now), tuple(remarks))


def _window(reading: Reading, now: Now) -> dict[str, JsonValue]:
    window = reading.window
    if window is None:
        return {}
    if window.relative is not None:
        return {
            "since": format_time(now.moment.replace(microsecond=0) - timedelta(hours=TIME_WINDOWS[window.relative]))
        }
    sides = {"since": window.start, "until": window.end}
    return {name: format_time(side.replace(microsecond=0)) for name, side in sides.items() if side is not None}
