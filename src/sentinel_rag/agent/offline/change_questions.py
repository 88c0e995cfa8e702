"""Questions about what was changed in this conversation: "what did you change?", "did you close 12?", "undo that".

The conversation knows which changes it asked for and what became of each; no tool is asked, and what other people
changed is not told. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sentinel_rag.agent.offline.compositions.changes import call_text
from sentinel_rag.agent.offline.conversation import AskedChange
from sentinel_rag.agent.row_text import plain

_OPENING = r"^\W*(?:(?:and|so|ok(?:ay)?|but|wait|hey|please|pls|now|then|tell\s+me|show(?:\s+me)?)[\s,]+)*"
_MAKE = r"chang(?:e|ed)|modif(?:y|ied)|updated?|alter(?:ed)?|wr(?:ite|ote|itten)"
_DEED = (
    rf"(?:{_MAKE}|closed?|re-?open(?:ed)?|(?:re-?|un)?assign(?:ed)?|comment(?:ed)?|resolved?|dismiss(?:ed)?|classif(?:y|ied)|"
    r"escalated?|raised?|lower(?:ed)?|set|touch(?:ed)?|edit(?:ed)?)"
)
_WHAT = re.compile(
    rf"{_OPENING}(?:(?:what|which\s+(?:incidents?|ones?|cases?|things?))\s+(?:all\s+)?(?:did|have|has)\s+(?:you|we|i)\s+"
    rf"(?:already\s+|just\s+|actually\s+)?(?:{_DEED}|do\b(?=\s+(?:to|with)\s+(?:it|them|the\s+incidents?)))"
    rf"|(?:did|have)\s+you\s+(?:already\s+|really\s+|just\s+)?(?:{_MAKE}|close[d]?)\s+(?:anything|something|any\s+incidents?|any)\b"
    r"|(?:what|which|any)\s+changes?\s+(?:did\s+you|have\s+you|have\s+been|has\s+been|were|was|are|is|do\s+you)\b"
    r"(?=[^?]*\b(?:you|made|make|wait\w*|pending|asked|open)\b)"
    r"|(?:list\s+|all\s+)?(?:your|the)\s+changes\s+(?:of|in)\s+this\s+(?:conversation|session|chat))",
    re.IGNORECASE,
)
_DID_YOU = re.compile(
    rf"{_OPENING}(?:(?:did|have)\s+you\s+(?:already\s+|really\s+|just\s+|actually\s+)?{_DEED}\b|(?:was|is)\s+(?:it|that|your\s+change|the\s+change)\s+(?:made|done)\b)",
    re.IGNORECASE,
)
_UNDO = re.compile(
    rf"{_OPENING}(?:can\s+(?:you|i|we)\s+|could\s+you\s+|how\s+(?:do|can)\s+(?:i|we|you)\s+)?"
    r"(?:undo|revert|reverse|roll\s*back|take\s+(?:that|it|this)\s+back|take\s+back|change\s+(?:it|that)\s+back|put\s+(?:it|that)\s+back)"
    r"(?:\s+(?:it|that|this|them|everything|all|(?:the|your|my)\s+(?:last\s+)?(?:changes?|comments?)|what\s+you\s+did|"
    r"(?:the\s+)?(?:incident\s*)?#?\d{1,9}))?(?:\s+(?:again|please|now))*\W*$",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.:/-])#?(\d{1,9})\b(?![\w/-]|[.:]\d)")
_NOTHING = "Nothing{} was changed in this conversation"
_ELSEWHERE = "What other people changed is not known here."


class About(StrEnum):
    """What of the changes a question wants to know."""

    ALL = "all"
    INCIDENT = "incident"
    UNDO = "undo"


@dataclass(frozen=True, slots=True)
class Told:
    """An answer and the questions that lead on."""

    text: str
    suggestions: tuple[str, ...] = ()


def changes_asked_about(question: str) -> About | None:
    """What `question` wants to know of the changes of this conversation; None if it asks something else."""
    if _UNDO.match(question):
        return About.UNDO
    if _WHAT.match(question):
        return About.ALL
    return About.INCIDENT if _DID_YOU.match(question) else None


def incidents_in(text: str) -> tuple[str, ...]:
    """The incidents that a resolved question names by their numbers."""
    return tuple(dict.fromkeys(_NUMBER.findall(text)))


def told_changes(about: About, incidents: Sequence[str], changes: Sequence[AskedChange]) -> Told:
    """The answer, of `incidents` alone where there are such."""
    known = [each for each in changes if not incidents or str(each.arguments.get("incident")) in incidents]
    made = [each for each in known if each.done]
    if about is About.UNDO:
        return _undone(known, made)
    of = f" of incident {' and '.join(incidents)}" if incidents else ""
    lines = [f"{'Yes. ' if about is About.INCIDENT else ''}Changed in this conversation:"] if made else []
    lines += [f"- {call_text(each.tool, each.arguments)}" for each in made]
    if not made:
        lines.append(f"{'No. ' if about is About.INCIDENT else ''}{_NOTHING.format(of)}.")
    lines += _not_made(known)
    if not known and incidents:
        lines.append(_ELSEWHERE)
    return Told("\n".join(lines), tuple(f"What is the status of incident {each}?" for each in incidents[:2]))


def _not_made(changes: Sequence[AskedChange]) -> list[str]:
    lines = []
    for each in changes:
        call = call_text(each.tool, each.arguments)
        if each.done:
            continue
        if each.unknown:
            lines.append(f"Whether this one was made is not known: {call}. Look at the incident.")
        elif each.approval_id:
            lines.append(
                f"Asked for and not made: {call}. It was sent to approval {plain(each.approval_id)}; once a person has "
                "approved it, say: do it now."
            )
        else:
            lines.append(f"Asked for and not made, because it was refused or failed: {call}.")
    return lines


def _undone(known: Sequence[AskedChange], made: Sequence[AskedChange]) -> Told:
    if not made:
        lines = [f"{_NOTHING.format('')}, so there is nothing to undo.", *_not_made(known)]
        if any(each.approval_id and not each.unknown for each in known):
            lines.append("To drop it, say: never mind, right after asking for it; or have the approval denied.")
        return Told("\n".join(lines))
    last = made[-1]
    incident = plain(str(last.arguments.get("incident")))
    text = (
        f"I undo nothing by myself. The last change was {call_text(last.tool, last.arguments)}. "
        f"Ask for the opposite as a change of its own, {_opposite(last, incident)}"
    )
    return Told(text, (f"What is the status of incident {incident}?",))


def _opposite(change: AskedChange, incident: str) -> str:
    if change.tool == "add_incident_comment":
        return "in the portal: a comment cannot be taken out by me."
    if change.arguments.get("status") == "Closed":
        return f"such as: reopen incident {incident}."
    if "owner" in change.arguments:
        return f"such as: assign incident {incident} to somebody@example.com."
    if "severity" in change.arguments:
        return f"such as: set the severity of incident {incident} to medium."
    return f"such as: close incident {incident} as undetermined."
