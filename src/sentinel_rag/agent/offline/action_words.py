"""A wish to change an incident, read from the person's own words: which fields, which comment, and the words that name
the incident.

A wish is taken only from a message that says nothing else, and only if every word of it is understood; what it lacks is
told as `problem` or found missing by `action_plans`. Reads no row and no conversation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from sentinel_rag.agent.offline.action_fields import names_classification, read_fields
from sentinel_rag.language.text import blank

NO_CHANGES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ActionWish:
    """`changes` are arguments of update_incident, `note` its classification_comment, `message` an incident comment.

    `target` holds the words that are left to name the incident, at their places in the question. `comments` if a
    comment was asked for, with or without its text; `apart` if the note is to be a comment beside the change; `unsure`
    if it was put as a question. The others are as `action_fields` tells them.
    """

    target: str
    changes: Mapping[str, str] = field(default_factory=lambda: NO_CHANGES)
    note: str = ""
    message: str = ""
    comments: bool = False
    apart: bool = False
    reclassifies: bool = False
    person: str = ""
    unsure: bool = False
    problem: str = ""


_OPENING = (
    r"(?:(?:hey|hi|hello|ok|okay|now|then|and|so|please|pls|plz|kindly|just|also|go\s+ahead\s+and|i\s+want\s+you\s+to|"
    r"i(?:'d|\s+would)\s+like\s+you\s+to|i\s+need\s+you\s+to|(?:can|could|would|will)\s+you(?:\s+please)?|let's|lets|"
    r"you\s+(?:should|must|need\s+to|can))[\s,:]+)*"
)
_DOUBT = (
    r"(?P<doubt>(?:(?:can|could|may|might|must)\s+(?:we|i|one)|(?:we|i)\s+(?:want|need|have)\s+to|"
    r"i(?:['’]d|\s+would)\s+like\s+to)\s+)?"
)
_VERBS = (
    r"(?P<verb>un-?assign|re-?assign|assign|re-?open|close|resolve|dismiss|set|change|update|modify|make|put|turn|move|"
    r"mark|re-?classify|classify|flag|lower|raise|downgrade|upgrade|bump|increase|decrease|comment|give|hand|take|"
    r"note(?=\s+(?:on|to|for|in)\b)|"
    r"(?:add|write|leave|post|put)\s+(?:an?\s+|the\s+|this\s+|following\s+)*(?:comment|note)|"
    r"(?:remove|clear|delete)\s+(?:the\s+)?(?:owner|assignee))"
)
_WISH = re.compile(rf"^\s*{_OPENING}{_DOUBT}{_OPENING}{_VERBS}\b(?!\s+me\b(?!\s+(?:incident|inc|case|#|\d)))", re.I)
_REFUSES = re.compile(
    rf"^\s*{_OPENING}(?:don['’]?t|do\s+not|never|no\s+need\s+to|you\s+must\s+not|you\s+should\s+not|stop)\s+"
    r"(?:un-?assign|re-?assign|assign|re-?open|clos(?:e|ing)|resolv(?:e|ing)|dismiss|chang(?:e|ing)|updat(?:e|ing)|"
    r"comment(?:ing)?|mark(?:ing)?|set(?:ting)?|touch)\b",
    re.IGNORECASE,
)
_PASTED = re.compile(r"^\s*(?:>|```|[\"'“‘«`])")
"""A message that begins as a quotation repeats the words of others."""

_TEXT_ALONE = re.compile(
    r"\bwith(?:\s+(?:an?|the|this))?\s+(?:closing\s+|classification\s+)?(?:comment|note|remark|explanation)\b\s*"
    r"(?:[:=]|saying|that\s+says|stating)?\s*(?P<text>\S.*)$|\bbecause\s+(?P<why>\S.*)$",
    re.IGNORECASE | re.DOTALL,
)
_SECOND_COMMENT = re.compile(
    r"(?:[,;]\s*|\s)(?:and\s+|then\s+)+(?:add|write|leave|post|comment)\b.*$|[,;]\s*(?:add|leave|post)\s+.*\b"
    r"(?:comment|note)\b.*$",
    re.IGNORECASE | re.DOTALL,
)
_SAYING = re.compile(r"\s(?:saying|that\s+says|stating|with\s+the\s+text)\s*:?\s+(?P<text>\S.*)$", re.I | re.S)
_COLON = re.compile(r":\s+(?P<text>\S.*)$|:(?P<tight>[^\s\d/\\:].*)$", re.DOTALL)
_DASH = re.compile(r"\s[-–—]\s+(?P<text>\S.*)$", re.DOTALL)
_QUOTED = re.compile(r"\"(?P<a>[^\"]+)\"|“(?P<b>[^”]+)”|'(?P<c>[^'\n]{2,}?)'(?!\w)", re.DOTALL)


def refuses_action(question: str) -> bool:
    """True for "do not close 12": nothing is to be done, so nothing is."""
    return _REFUSES.match(question) is not None


def read_action(question: str) -> ActionWish | None:
    """The change that `question` asks for; None if it asks for none of those that an incident takes."""
    match = None if _PASTED.match(question) else _WISH.match(question)
    if match is None:
        return None
    verb = re.sub(r"[\s-]+", "", match["verb"].lower())
    unsure = bool(match["doubt"])
    if verb.endswith(("comment", "note")):
        return _comment_wish(question, match.end(), unsure)
    head, note, apart = _without_text(question)
    polite = re.search(r"\b(?:can|could|would|will)\s+you\b", question[: match.start("verb")], re.IGNORECASE)
    unsure = unsure or (head.rstrip().endswith("?") and polite is None)
    fields = read_fields(blank(head, 0, match.end("verb")), verb)
    if fields is None:
        return None
    return ActionWish(
        fields.rest,
        fields.changes,
        note=note,
        apart=apart,
        reclassifies=fields.reclassifies,
        person=fields.person,
        unsure=unsure,
        problem=fields.problem,
    )


def _comment_wish(question: str, end: int, unsure: bool) -> ActionWish:
    """A comment: its text stands in quotation marks, behind a colon or behind "saying"."""
    behind = question[end:]
    found = min(
        (match for pattern in (_SAYING, _COLON, _QUOTED) if (match := pattern.search(behind)) is not None),
        key=lambda match: match.start(),
        default=None,
    )
    if found is None:
        return ActionWish(_aligned(behind, end), comments=True, unsure=unsure)
    text = next(group for group in found.groups() if group).strip()
    if found.re is _QUOTED:
        target = _aligned(blank(behind, found.start(), found.end()), end)
        return ActionWish(target, message=text, comments=True, unsure=unsure)
    return ActionWish(_aligned(behind[: found.start()], end), message=_unquoted(text), comments=True, unsure=unsure)


def _aligned(behind: str, begin: int) -> str:
    """Words that begin at `begin` of the question, at their place."""
    return " " * begin + behind


def _unquoted(text: str) -> str:
    """`text` without the quotation marks around all of it."""
    whole = _QUOTED.fullmatch(text)
    return next(group for group in whole.groups() if group).strip() if whole is not None else text


def _without_text(question: str) -> tuple[str, str, bool]:
    """(the wish without its free text, that text, whether it is to be a comment apart from the change)."""
    second = _SECOND_COMMENT.search(question)
    found = _TEXT_ALONE.search(question)
    if second is not None and (found is None or second.start() < found.start()):
        return question[: second.start()], _comment_wish(second[0], 0, unsure=False).message, True
    if found is not None:
        return question[: found.start()], _unquoted((found["text"] or found["why"]).strip()), False
    colon = _COLON.search(question) or _DASH.search(question)
    if colon is not None and names_classification(question[: colon.start()]):
        return question[: colon.start()], next(group for group in colon.groups() if group).strip(), False
    return question, "", False
