"""What the wording of a question says about the value that it asks for, besides its kind.

One or all of them, on the host that was told of, of a mailbox. Nothing here knows what an alert holds.
"""

from __future__ import annotations

import re

from sentinel_rag.agent.offline.alert_walk.values import attributes_of
from sentinel_rag.agent.offline.attribute_catalogue import Attribute
from sentinel_rag.agent.planner.plan import Plan

_ASK_WORD = re.compile(
    r"\b(?:what|which|whose|who|identify|find(?:\s+out)?|provide|determine|retrieve|obtain|get|tell|name|specify|reveal|"
    r"confirm|give|when)\b",
    re.IGNORECASE,
)
_FARTHEST = 6
"""Words between the asking word and what it asks for."""
_SAME_HOST = re.compile(r"\b(?:same|this)\s+(?:device|host|machine|endpoint|computer|system|server)\b", re.IGNORECASE)
_PERSON = re.compile(r"\b(?:users?|who(?:m|se)?|persons?|individuals?|employees?|people)\b", re.IGNORECASE)
_MAILBOX = re.compile(r"\bmail\s*box(?:es)?\b", re.IGNORECASE)
_ONE_OF = re.compile(r"\b(?:one|name|an?\s+\w+)\s+of\s+(?:the|these|those)\b", re.IGNORECASE)


def asks_for_several(plan: Plan) -> bool:
    """True if the question asks for all values there are: "which hosts", "what are the URLs"."""
    if _ONE_OF.search(plan.frame.text):
        return False
    cue = attributes_of(plan)[0].cue
    asked = re.search(rf"\b(?:{cue})\b", plan.frame.text, re.IGNORECASE)
    word = "" if asked is None else asked[0].lower()
    return word.endswith("s") and not word.endswith("ss")


def asked_directly(attribute: Attribute, question: str) -> bool:
    """False where the word for the property stands far behind the word that asks: "which service was started by the
    command ..." asks for no command."""
    cue = list(re.finditer(rf"\b(?:{attribute.cue})\b", question, re.IGNORECASE))
    for match in cue:
        before = re.split(_ASK_WORD, question[: match.start()])
        if len(before) > 1 and len(re.findall(r"[\w'-]+", before[-1])) <= _FARTHEST:
            return True
    return not cue


def asks_of_same_host(question: str) -> bool:
    """True for "on the same device"."""
    return _SAME_HOST.search(question) is not None


def asks_of_mailbox(question: str) -> bool:
    """True if the question speaks of a mailbox."""
    return _MAILBOX.search(question) is not None


def asks_for_person(question: str) -> bool:
    """True if the question is about a user; an account may be that of the system."""
    return _PERSON.search(question) is not None
