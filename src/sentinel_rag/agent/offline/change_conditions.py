"""Wishes to change something under a condition or at a later time: "if it is bad, close 12", "tomorrow close 12".

Nothing is kept to be done later, and no condition is judged here; such a wish is told back as one that nothing came of.
Pure.
"""

from __future__ import annotations

import re

from sentinel_rag.agent.offline.action_guard import wants_action
from sentinel_rag.agent.offline.action_words import read_action

SENTENCE = (
    "Nothing was changed: I do not wait for a condition or for a time. Look first, and say it when it is to be done, "
    "such as: {}."
)
_OPENING = r"^\W*(?:(?:please|pls|ok(?:ay)?|and|so|then|but|also)[\s,]+)*"
_CONDITION = re.compile(
    rf"{_OPENING}(?:if|unless|when(?:ever)?|once|as\s+soon\s+as|in\s+case|provided|assuming|should|after|until|while)\b",
    re.IGNORECASE,
)
_LATER = re.compile(
    rf"{_OPENING}(?:tomorrow|tonight|later(?:\s+today)?|next\s+\w+|on\s+(?:mon|tues|wednes|thurs|fri|satur|sun)day|"
    r"in\s+(?:\d+|an?|one|two|three|a\s+few)\s+(?:minutes?|hours?|days?|weeks?)|at\s+\d{1,2}(?::\d{2})?(?:\s*(?:am|pm|utc|o['’]clock))?|"
    r"at\s+(?:noon|midnight)|every\s+\w+|this\s+(?:evening|afternoon))\b[\s,:]*(?:please\s+)?",
    re.IGNORECASE,
)
_BEHIND = re.compile(r"[,;:]\s*(?:then\s+)?|\bthen\s+", re.IGNORECASE)
_WISH_BEGINS = re.compile(
    r"\b(?=(?:close|re-?open|resolve|dismiss|assign|unassign|set|mark|comment|change|update)\b)", re.I
)
_EXAMPLE = "close incident N as benign positive"


def put_off(question: str) -> str:
    """The sentence for a wish that depends on something or is for later; empty for any other question."""
    wish = _wish_behind(question)
    if not wish:
        return ""
    said = wish.strip(" .!?")
    return SENTENCE.format(said if len(said) <= 100 and "\n" not in said else _EXAMPLE)


def _wish_behind(question: str) -> str:
    later = _LATER.match(question)
    if later is not None and _acts(question[later.end() :]):
        return question[later.end() :]
    if _CONDITION.match(question) is None or question.rstrip().endswith("?"):
        return ""
    begins = [match.end() for match in _BEHIND.finditer(question)] or [
        match.start() for match in _WISH_BEGINS.finditer(question)
    ]
    return next((question[begin:] for begin in begins if _acts(question[begin:])), "")


def _acts(text: str) -> bool:
    return read_action(text) is not None or wants_action(text)
