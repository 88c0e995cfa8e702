"""Questions that only put another thing in the place of the last one: "no, the first one", "I meant incident 34",
"and [3]?", "not that one, the other".

Reads words only. What is left of them is a reference; the question that it belongs to is the one before.
"""

from __future__ import annotations

import re

from sentinel_rag.agent.references.wording import END, START

_NO = (
    r"no(?!\.\s*\d)|nope|nah|sorry|oops|wait|hmm|actually|wrong(?:\s+(?:one|incident|alert|host|account|line))?|my\s+(?:mistake|bad)|"
    r"not\s+(?:that|this|it)(?:\s+(?:one|incident|alert|host|account))?|i\s+(?:meant|mean|wanted|was\s+(?:asking|talking)\s+about)|"
    r"i['’]m\s+(?:asking|talking)\s+about|make\s+(?:that|it)|rather|i\s+(?:did|do)n['’]t\s+mean\s+(?:that|this|it)(?:\s+one)?|"
    r"the\s+(?:correct|right)\s+one\s+is|correction|instead"
)
_OPENING = re.compile(rf"{START}(?:(?:{_NO})\b[\s,;:.!–—-]*(?:(?:but|please|it['’]s|take|use)\b\s*)?)+", re.IGNORECASE)
_CLOSING = re.compile(
    rf"[\s,;.!–—-]*\b(?:instead|please|i\s+(?:meant|mean)|not\s+(?:that|this)(?:\s+one)?|rather|i\s+said){END}",
    re.IGNORECASE,
)
_REPEATS = re.compile(
    rf"{START}(?:(?:ok(?:ay)?|and|also|now|then|so)\b[\s,]*)*(?:and|also|or|what\s+about|how\s+about|(?:the\s+)?same\s+(?:for|with|of)|now|then)\b(?:\s+(?:for|of|about))?\s+",
    re.IGNORECASE,
)
_NOT_THIS_BUT = re.compile(
    rf"{START}(?:not\s+#?(?P<no>\d{{1,9}})[\s,;:.–—-]+(?:but\s+|rather\s+)?)?#?(?P<yes>\d{{1,9}}){END}", re.IGNORECASE
)
_THIS_NOT = re.compile(
    rf"{START}#?(?P<yes>\d{{1,9}})[\s,;:.–—-]+(?:and\s+)?not\s+#?(?P<no>\d{{1,9}}){END}", re.IGNORECASE
)


def replaced_number(words: str) -> tuple[str, str] | None:
    """The number that is denied, empty if none is, and the one in its place; None for other words."""
    match = _NOT_THIS_BUT.match(words) or _THIS_NOT.match(words)
    return None if match is None else (match["no"] or "", match["yes"])


def corrected(masked: str) -> tuple[int, int] | None:
    """Where the words stand that correct the last question; None if the question corrects nothing."""
    if re.match(r"\W*not\s", masked, re.IGNORECASE) and not _OPENING.match(masked):
        return (0, len(masked))
    if _THIS_NOT.match(masked):
        return (0, len(masked))
    opening = _OPENING.match(masked)
    closing = _CLOSING.search(masked)
    start = opening.end() if opening is not None else 0
    if opening is None and (closing is None or not re.search(r"instead|meant|mean|not\s", closing[0], re.IGNORECASE)):
        return None
    end = closing.start() if closing is not None and closing.start() > start else len(masked)
    return (start, end) if masked[start:end].strip(" .,;:!?") else None


def only_denied(masked: str) -> bool:
    """True for "not that one" alone: which one instead is not said."""
    return (
        re.fullmatch(r"\W*(?:(?:no|nope|sorry)\W+)?(?:not\s+(?:that|this|it)(?:\s+\w+)?|wrong\s+\w+)\W*", masked, re.I)
        is not None
    )


def repeats(masked: str) -> bool:
    """True for a question that opens like "and ..." or "what about ...": it may ask the last question again."""
    return _REPEATS.match(masked) is not None


def repeated_part(masked: str) -> int:
    """Where the words behind such an opening begin."""
    match = _REPEATS.match(masked)
    return 0 if match is None else match.end()
