"""Claims of a model about itself that the calls of the turn disprove: a change that it says it made and did not make.

Such a sentence holds no value that a result could support or contradict, so grounding cannot see it; the record of the
calls can. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from sentinel_rag.agent.model_analyst.made_changes import MadeChange

NOT_MADE = "A sentence was left out here, because it tells of a change that was not made."
NOT_MADE_NOW = "A sentence was left out here, because it tells of a change that this question did not make."
_DONE = (
    r"(?P<{}>(?:clos|re-?open|assign|re-?assign|unassign|escalat|re-?classif|classif|comment|add|post|updat|chang|set|mark|resolv"
    r"|dismiss|isolat|disabl|block|quarantin|reset|revok|delet|remov|sen[dt]|creat|notif|lower|rais))(?:i?ed|ed|d|t)?"
)
_FIRST_PERSON = re.compile(
    rf"\b(?:I|we)\s*(?:['’]ve|have)?\s*(?:just|now|already|also|successfully|hereby)?\s*{_DONE.format('own')}\b(?!\s+(?:for\s+you\s+to|up)\b)"
    rf"|\b(?:has|have|is|are|was|were)\s+(?:now|been|successfully|just|hereby|\s)+{_DONE.format('passive')}\b"
    r"(?=[^.!?\n]*\b(?:as\s+(?:you\s+)?(?:requested|asked|instructed)|for\s+you|successfully|now)\b)"
    rf"|\b(?:successfully)\s+{_DONE.format('adverb')}\b|^\W*(?:done|all\s+set)\b",
    re.IGNORECASE,
)
_AND_DID = re.compile(rf"(?:\band|,)\s+(?:(?:then|also|just|now|and)\s+)*{_DONE.format('next')}\b", re.IGNORECASE)
_INCIDENT = re.compile(r"(?:\bincidents?\s+(?:number\s+|no\.?\s+)?#?|#)(\d+)", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?])[ \t]+")


def without_false_deeds(text: str, made: Collection[MadeChange] = (), *, note: str = NOT_MADE) -> str:
    """`text` without the sentences in which its writer claims a change that is not among those `made` in this turn:
    another deed, or one at another incident. `note` stands in their place."""
    return "\n".join(_line(line, made, note) for line in text.split("\n"))


def _line(line: str, made: Collection[MadeChange], note: str) -> str:
    kept: list[str] = []
    for sentence in _SENTENCE.split(line):
        if _stands(sentence, made):
            kept.append(sentence)
        elif not kept or kept[-1] != note:
            kept.append(note)
    return " ".join(kept)


def _stands(sentence: str, made: Collection[MadeChange]) -> bool:
    claims = list(_FIRST_PERSON.finditer(sentence))
    if claims:
        claims += _AND_DID.finditer(sentence, claims[0].end())
    named = set(_INCIDENT.findall(sentence))
    known = [change for change in made if not named or change.incident in named or not change.incident.isdigit()]
    return all(_told(claim, known) for claim in claims)


def _told(claim: re.Match[str], known: Collection[MadeChange]) -> bool:
    verb = next((words for words in claim.groups() if words), "").casefold()
    return any(not verb or not change.verbs or verb in change.verbs for change in known)
