"""Sentences that speak of one incident and name another: whose title a title is, and whether a value can be put right.

A title in prose ("Password spray is its title") names an incident of its own, but the sentence speaks of the one that
stands before it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sentinel_rag.agent.grounding.subjects import STRONG, Context, Subject, Topic

_PRONOUN = re.compile(r"^[\s*_`>-]*(?:it|its|it[’']s|this|that|the (?:incident|case))\b", re.IGNORECASE)
_TITLE_BEHIND = re.compile(
    r"^[\s*_`”\")]*(?:is|was)\s+(?:its|the incident[’']s|the|that incident[’']s)\s+(?:title|name)\b", re.IGNORECASE
)
_TITLE_BEFORE = re.compile(
    r"(?:\b(?:its|the incident[’']s)\s+(?:title|name)\s+(?:is|was|reads)|"
    r"\b(?:is|was|and is|being)\s+(?:titled|entitled|named|called))[\s:*_`“\"(]*$",
    re.IGNORECASE,
)


def names_two(subjects: Sequence[Subject], text: str) -> bool:
    """True if a sentence begins with a pronoun for one thing and names another: no value can be put right in it, since
    whose it is stays in doubt."""
    strong = [subject for subject in subjects if subject.topic in STRONG and subject.start >= 0]
    return bool(_PRONOUN.match(text)) and any(not strong[0].same(other) for other in strong[1:])


def titled_otherwise(subjects: Sequence[Subject], text: str, context: Context) -> Subject | None:
    """A title of which the sentence says that it is that of the incident spoken of, and which is another's."""
    incidents = [subject for subject in subjects if subject.topic is Topic.INCIDENT and subject.start >= 0]
    for title in incidents:
        if title.text.isdigit():
            continue
        if not _TITLE_BEHIND.match(text[title.end :]) and not _TITLE_BEFORE.search(text[: title.start]):
            continue
        before = [each for each in incidents if each is not title and each.end <= title.start]
        owner = before[-1] if before else context.incident
        if owner is not None and not title.same(owner):
            return title
    return None
