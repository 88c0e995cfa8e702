"""The fields of an incident that a wish sets: severity, status, owner, classification with its reason.

Each reader takes the words of the wish behind its verb and gives what it found with the words that are left. Patterns
only; `action_words` reads the sentence around them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sentinel_rag.agent.offline.word_lists import word_list
from sentinel_rag.language.text import blank

_CLASSES = {
    "FalsePositive": r"false[\s_-]*positives?|fp",
    "TruePositive": r"(?<!benign )true[\s_-]*positives?|tp",
    "BenignPositive": r"benign(?:[\s_-]*true)?[\s_-]*positives?|bp",
    "Undetermined": r"undetermined|inconclusive",
}
_REASONS = {
    "IncorrectAlertLogic": r"(?:incorrect|wrong|bad)[\s_-]*(?:alert[\s_-]*|rule[\s_-]*|detection[\s_-]*)?logic",
    "InaccurateData": r"(?:inaccurate|incorrect|wrong|bad)[\s_-]*data",
    "SuspiciousButExpected": r"suspicious[\s_,-]*but[\s_-]*expected|expected(?:\s+(?:activity|behaviou?r))?",
    "SuspiciousActivity": r"suspicious[\s_-]*activity",
}
_LEVELS = {
    "?": "critical|crit",
    "High": "high",
    "Medium": "medium|med|moderate",
    "Low": "low",
    "Informational": "informational|info|information",
}
_STATES = {
    "Closed": r"closed?|closing|resolved?|dismiss(?:ed)?",
    "Active": r"active|in[\s-]*progress|re-?open(?:ed)?|open(?=\s+again)",
    "New": r"new",
    "?": r"open",
}
_FROM = re.compile(r"\bfrom\s+(?:high|medium|low|informational|new|active|closed)\b(?=\s+to\b)", re.IGNORECASE)
_STATE_SAID = r"(?:status|state)\s*(?:back\s+)?(?:to|=|:|as|is)?\s*|(?:as|to|on|back\s+to)\s+(?:status\s+)?"
_GUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
_ADDRESS = r"[^\s@<>\"(),:;\[\]]+@[^\s@<>\"(),:;\[\]]+?(?=[\"'”’`)]?[.,;!?]?(?:\s|$))"
_PERSON = rf"(?P<person>me\b|myself\b|nobody\b|no\s*one\b|unassigned\b|{_GUID}|{_ADDRESS})"
_ME_WHO = re.compile(
    rf"\b(?:to|for)\s+me\s*,?\s+(?:who\s+is\s|i\s+am\s|\()\s*[\"'“‘`]?(?P<person>{_GUID}|{_ADDRESS})[\"'”’`)]?",
    re.IGNORECASE,
)
_OWNER = re.compile(
    rf"\b(?:(?:owner|assignee)\s*(?:\s(?:to|is|as)|=|:)?|to|for|over\s+to)\s+[\"'“‘`]?{_PERSON}"
    r"[\"'”’`]?",
    re.IGNORECASE,
)
_FROM_OWNER = re.compile(r"\bfrom\s+\S+(?=\s+(?:over\s+)?to\s)", re.IGNORECASE)
_ASSIGN_ME = re.compile(r"^\s*me\b", re.IGNORECASE)
_OWNS = re.compile(r"\b(?:owner|assignee)\b", re.IGNORECASE)
_NAME = re.compile(
    r"\b(?:to(?!\s+(?:the\s+)?(?:incident|case|ticket|it|this|that)\b)|owner\s+(?:to|is|=)?)\s+"
    r"([^\W\d_][\w.'’-]*(?:\s+[^\W\d_][\w.'’-]*){0,3})",
    re.IGNORECASE,
)
_MOVES_SEVERITY = frozenset({"lower", "raise", "downgrade", "upgrade", "bump", "increase", "decrease"})
_SETS = frozenset(
    word_list("lower raise downgrade upgrade bump increase decrease make set put turn move mark change update flag")
)
"""Verbs behind which a bare severity or status is the value to set."""


@dataclass(frozen=True, slots=True)
class FieldReading:
    """`changes` are arguments of update_incident; `rest` what no field claimed. An owner "me" or "?name" is no argument
    yet, `person` is who "me" is by the words. `reclassifies` if the words say that there is a classification already;
    `problem` asks back."""

    changes: Mapping[str, str]
    rest: str
    person: str = ""
    reclassifies: bool = False
    problem: str = ""


def read_fields(head: str, verb: str) -> FieldReading | None:
    """What `head`, the words behind `verb`, sets; None if it sets nothing."""
    changes: dict[str, str] = {}
    problem = ""
    head = _FROM_OWNER.sub(lambda said: " " * len(said[0]), head) if verb == "reassign" else head
    who = _ME_WHO.search(head)
    if who is not None:
        said = f"to {who['person']}".rjust(who.end() - who.start())
        head = f"{head[: who.start()]}{said}{head[who.end() :]}"
    owner, head = _read_owner(head, verb)
    if owner:
        changes["owner"] = owner
    kinds = _found(head, _CLASSES)
    reclassifies = verb == "reclassify" or re.search(r"\bclassification\b", head, re.IGNORECASE) is not None
    reasons = _found(head, _REASONS)
    if len(kinds) > 1 or len(reasons) > 1:
        problem = problem or "The wish names more than one classification. Which one do you mean?"
    if kinds:
        changes["classification"] = kinds[0]
    if reasons:
        changes["classification_reason"] = reasons[0]
    head = _taken(head, *_CLASSES.values(), *_REASONS.values())
    head = _FROM.sub(lambda said: " " * len(said[0]), head)
    states, head = _read_states(head, verb)
    levels, head = _read_levels(head, verb, classified=bool(kinds))
    if len(levels) > 1 or len(states) > 1:
        problem = problem or "The wish names more than one value for one field. Which one do you mean?"
    elif levels == ["?"]:
        problem = problem or "Sentinel has no severity Critical, its highest is High. Ask for High if you mean that."
    elif states == ["?"]:
        problem = problem or "An open incident is New or Active. Which of the two do you mean?"
    if levels:
        changes["severity"] = levels[0]
    if states:
        changes["status"] = states[0]
    if not changes and verb in _MOVES_SEVERITY:
        problem = "To which severity: High, Medium, Low or Informational?"
    elif not changes:
        return None
    return FieldReading(changes, head, who["person"] if who else "", reclassifies, problem)


def _read_owner(head: str, verb: str) -> tuple[str, str]:
    """Who is to own it ("unassigned" for nobody, "me" as it was said), and the rest."""
    if verb == "unassign" or re.match(r"(?:remove|clear|delete)", verb):
        return "unassigned", head
    match = _OWNER.search(head)
    if match is not None:
        person = match["person"].lower()
        nobody = re.fullmatch(r"nobody|no\s*one|unassigned", person) is not None
        said = "unassigned" if nobody else "me" if person in ("me", "myself") else match["person"]
        return said, blank(head, match.start(), match.end())
    if verb in ("assign", "reassign") and (match := _ASSIGN_ME.search(head)) is not None:
        return "me", blank(head, 0, match.end())
    if verb == "take" and not re.search(r"\b(?:look|screenshot|down|off|out|over\s+from)\b", head, re.IGNORECASE):
        return "me", head
    addressed = list(re.finditer(rf"{_ADDRESS}", head, re.IGNORECASE))
    if len(addressed) == 1 and (verb in ("assign", "reassign", "give", "hand") or _OWNS.search(head)):
        (only,) = addressed
        return only[0], blank(head, only.start(), only.end())
    if verb in ("assign", "reassign") and (name := _NAME.search(head)) is not None:
        return f"?{name[1]}", blank(head, name.start(), name.end())
    return "", head


def _read_states(head: str, verb: str) -> tuple[list[str], str]:
    """Statuses that the wish asks for, by its verb or behind "status", "as" and "to"; "?" for a mere "open"."""
    if verb in ("close", "resolve", "dismiss", "reopen"):
        return ["Active" if verb == "reopen" else "Closed"], head
    second = re.search(r"\band\s+(?:then\s+)?(?:close|resolve)\b", head, re.IGNORECASE)
    if second is not None:
        return ["Closed"], blank(head, second.start(), second.end())
    for before in (_STATE_SAID, "") if verb in _SETS else (_STATE_SAID,):
        said = {state: rf"(?:{before})(?:{pattern})" for state, pattern in _STATES.items()}
        found = _found(head, said)
        if found:
            return found, _taken(head, *said.values())
    return [], head


def _read_levels(head: str, verb: str, *, classified: bool) -> tuple[list[str], str]:
    """Severities that the wish asks for; "?" for Critical, which Sentinel does not have."""
    named = re.search(r"\b(?:severity|sev|prio(?:rity)?)\b", head, re.IGNORECASE) is not None
    if not named and (classified or verb not in _SETS):
        return [], head
    return _found(head, _LEVELS), _taken(head, *_LEVELS.values())


def _found(text: str, patterns: Mapping[str, str]) -> list[str]:
    return [name for name, pattern in patterns.items() if re.search(rf"\b(?:{pattern})\b", text, re.IGNORECASE)]


def _taken(text: str, *patterns: str) -> str:
    """`text` without what the patterns match, of the same length."""
    for pattern in patterns:
        for match in list(re.finditer(rf"\b(?:{pattern})\b", text, re.IGNORECASE)):
            text = blank(text, match.start(), match.end())
    return text


def names_person(text: str) -> bool:
    """True if a user is named for certain: by an address or an object id."""
    return re.search(rf"{_ADDRESS}|{_GUID}", text, re.IGNORECASE) is not None


def names_classification(text: str) -> bool:
    """True if a classification stands in `text`."""
    return bool(_found(text, _CLASSES))
