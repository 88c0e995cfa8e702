"""Questions that lean on an answer from the knowledge base: "the next section", "its KQL", "only the high ones".

They mean the section that was quoted or pointed at last, or the search of the last answer with one thing changed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from sentinel_rag.agent.knowledge_hits import INCIDENTS
from sentinel_rag.agent.offline.conversation import AskedCall, Conversation
from sentinel_rag.agent.offline.knowledge.phases import phase_asked, phase_of
from sentinel_rag.agent.offline.knowledge.topics import filters_of, topic_of
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.things import SECTION, ListItem
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.language.times.kinds import Now


class Further(StrEnum):
    """What a follow-up wants of a section."""

    WHOLE = "whole"
    NEXT = "next"
    KQL = "kql"
    PHASE = "phase"


@dataclass(frozen=True, slots=True)
class SectionWish:
    """`section` is the one that is meant; `phase` is another phase of its playbook, for PHASE."""

    further: Further
    section: ListItem
    phase: str = ""


_KQL = re.compile(r"\b(?:kql|quer(?:y|ies))\b", re.IGNORECASE)
_NOT_ITS_KQL = re.compile(
    r"\b(?:templates?|run|execute|stored|saved|hunting|available|named|which|what\s+quer|alerts?|incidents?)\b", re.I
)
_OF_IT = re.compile(
    r"\b(?:that|this|the|its|these|those|there|it)\b|^\W*(?:please\s+)?(?:show|give|print|display)?\s*(?:me\s+)?(?:kql|quer(?:y|ies))\W*$",
    re.IGNORECASE,
)
_NEXT = re.compile(
    r"^\W*(?:(?:and|ok|please|now|then|so|show|give|read|go\s+to)\s+(?:me\s+)?)*(?:(?:to\s+)?the\s+|its\s+)?(?:next|following)"
    r"(?:\s+(?:section|step|part|phase|chapter|one))?\W*$|^\W*(?:and\s+)?(?:what|which\s+(?:section|step|part))\s+(?:comes|is|follows|would\s+be)\s+"
    r"(?:next|after(?:\s+(?:that|this|it))?|then)\W*$|^\W*(?:and\s+)?(?:then|after\s+that|afterwards|what\s+then|what(?:['’]?s|\s+is)?\s+next)\W*$|^\W*(?:go\s+on|continue|keep\s+going|read\s+on)\W*$|"
    r"^\W*(?:what\s+(?:are|is)\s+)?the\s+next\s+steps?\W*$|^\W*next\s+steps?\W*$",
    re.IGNORECASE,
)
_LEANS = re.compile(
    r"^\W*(?:and|what\s+about|how\s+about|now|then|ok|but|also|show\s+me|show|go\s+to|jump\s+to|who)\b", re.IGNORECASE
)
_NARROWS = re.compile(
    r"^\W*(?:and\s+)?(?:only|just|but|what\s+about|how\s+about|and|in|from|since|the\s+same|same|now|without)\b",
    re.IGNORECASE,
)
_NARROWING_WORDS = frozenset(
    [
        "ones",
        "one",
        "those",
        "them",
        "these",
        "same",
        "only",
        "just",
        "now",
        "with",
        "severity",
        "closed",
        "from",
        "since",
    ]
)


def read_section_wish(reading: Reading, conversation: Conversation) -> SectionWish | None:
    """What the question wants of a section that was shown; None if it wants something else."""
    pointed = [thing for thing in reading.things if thing.kind == SECTION and thing.value]
    asks_kql = _KQL.search(reading.text) is not None and not _NOT_ITS_KQL.search(reading.text)
    if pointed:
        phase = phase_asked(reading.text)
        if asks_kql:
            return SectionWish(Further.KQL, pointed[0])
        if _NEXT.match(reading.text):
            return SectionWish(Further.NEXT, pointed[0])
        asks_other = phase and phase != phase_of(pointed[0].value.split(" > "))
        return SectionWish(Further.PHASE if asks_other else Further.WHOLE, pointed[0], phase)
    focus = conversation.references.focus(SECTION)
    if conversation.knowledge is None or focus is None:
        return None
    if asks_kql and _OF_IT.search(reading.text) and len(reading.text.split()) <= 12:
        return SectionWish(Further.KQL, focus.item)
    if _NEXT.match(reading.text):
        return SectionWish(Further.NEXT, focus.item)
    phase = phase_asked(reading.text)
    short = len(reading.text.split()) <= 7 and not reading.names and not reading.incidents
    if phase and short and _LEANS.match(reading.text) and not _other_topic(reading, phase):
        return SectionWish(Further.PHASE, focus.item, phase)
    return None


def narrowed_search(
    reading: Reading, conversation: Conversation, now: Now
) -> tuple[AskedCall, dict[str, JsonValue]] | None:
    """The search of past incidents with further filters, for words that say only those; None for any other question."""
    asked = conversation.knowledge
    if asked is None or asked.arguments.get("collection") != INCIDENTS or reading.names or reading.incidents:
        return None
    if not _NARROWS.match(reading.text) or len(reading.text.split()) > 9:
        return None
    filters = dict(filters_of(reading, now, past=True).arguments)
    left = [word for word in topic_of(reading).lower().split() if word not in _NARROWING_WORDS]
    tactic = str(reading.tactic or "").lower()
    if not filters or any(word not in tactic and not tactic.startswith(word) for word in left):
        return None
    return asked, filters


def _other_topic(reading: Reading, phase: str) -> bool:
    """True if the words name something beside the phase: "and how do we contain ransomware"."""
    return any(not phase_asked(word) and len(word) > 3 for word in topic_of(reading).split())
