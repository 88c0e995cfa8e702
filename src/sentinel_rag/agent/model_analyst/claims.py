"""Claims of a model about itself that the changes of the conversation disprove: one that it says it made and did not.

Such a sentence holds no value that a result could support or contradict, so grounding cannot see it; the record of the
calls can. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from sentinel_rag.agent.model_analyst.made_changes import MadeChange

NOT_MADE = "A sentence was left out here, because it tells of a change that was not made."
_DONE = (
    r"(?P<{0}>(?:clos|re-?open|assign|re-?assign|unassign|escalat|re-?classif|classif|comment|add|post|updat|chang|set|mark|resolv"
    r"|dismiss|isolat|disabl|block|quarantin|reset|revok|delet|remov|sen[dt]|creat|notif|lower|rais))(?:i?ed|ed|d|t)?"
)
_CLAIM = re.compile(
    rf"\b(?:I|we)\s*(?:['’]ve|have)?\s*(?:just|now|already|also|successfully|hereby)?\s*{_DONE.format('own')}\b"
    r"(?!\s+(?:for\s+you\s+to|up)\b)"
    rf"|\b(?:has|have|is|are|was|were)\s+(?:now|been|successfully|just|hereby|\s)+{_DONE.format('passive')}\b"
    r"(?=[^.!?\n]*\b(?:as\s+(?:you\s+)?(?:requested|asked|instructed)|for\s+you|successfully|now)\b)"
    rf"|\b(?:successfully)\s+{_DONE.format('adverb')}\b|^\W*(?:done|all\s+set)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])[ \t]+")
_INCIDENT = re.compile(r"(?:\bincidents?\s+(?:number\s+|no\.?\s+)?#?|#)(\d+)", re.IGNORECASE)
_JUST_NOW = re.compile(r"^\W*(?:done|all\s+set)\b|\b(?:now|just)\b", re.IGNORECASE)


def without_false_deeds(text: str, made: Collection[MadeChange] = (), *, now: Collection[MadeChange] = ()) -> str:
    """`text` without the sentences in which its writer claims a change that is neither among those `made` earlier in
    the conversation nor among those of `now`, this turn's: another deed, or one at another incident."""
    return "\n".join(_line(line, made, now) for line in text.split("\n"))


def _line(line: str, made: Collection[MadeChange], now: Collection[MadeChange]) -> str:
    kept: list[str] = []
    for sentence in _SENTENCE.split(line):
        if _stands(sentence, made, now):
            kept.append(sentence)
        elif not kept or kept[-1] != NOT_MADE:
            kept.append(NOT_MADE)
    return " ".join(kept)


def _stands(sentence: str, made: Collection[MadeChange], now: Collection[MadeChange]) -> bool:
    claims = list(_CLAIM.finditer(sentence))
    if not claims:
        return True
    # What is told as done just now was done in this turn.
    known = list(now) if _JUST_NOW.search(sentence) else [*now, *made]
    named = set(_INCIDENT.findall(sentence))
    if named:
        known = [change for change in known if change.incident in named or not change.incident.isdigit()]
    return all(_made(claim, known) for claim in claims)


def _made(claim: re.Match[str], known: Collection[MadeChange]) -> bool:
    verb = next((words for words in claim.groups() if words), "").casefold()
    return any(not verb or verb in change.verbs for change in known)
