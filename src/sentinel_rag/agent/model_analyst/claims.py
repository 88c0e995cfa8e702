"""Claims of a model about itself that the calls of the turn disprove: a change that it says it made and did not make.

Such a sentence holds no value that a result could support or contradict, so grounding cannot see it; the record of the
calls can. Pure.
"""

from __future__ import annotations

import re

NOT_MADE = "A sentence was left out here, because it tells of a change that was not made."
NOT_MADE_NOW = "A sentence was left out here, because it tells of a change that this question did not make."
_DONE = (
    r"(?:clos|re-?open|assign|re-?assign|unassign|escalat|re-?classif|classif|comment|add|post|updat|chang|set|mark|resolv"
    r"|dismiss|isolat|disabl|block|quarantin|reset|revok|delet|remov|sen[dt]|creat|notif|lower|rais)(?:i?ed|ed|d|t)?"
)
_FIRST_PERSON = re.compile(
    rf"\b(?:I|we)\s*(?:['’]ve|have)?\s*(?:just|now|already|also|successfully|hereby)?\s*{_DONE}\b(?!\s+(?:for\s+you\s+to|up)\b)"
    rf"|\b(?:has|have|is|are|was|were)\s+(?:now|been|successfully|just|hereby|\s)+{_DONE}\b"
    r"(?=[^.!?\n]*\b(?:as\s+(?:you\s+)?(?:requested|asked|instructed)|for\s+you|successfully|now)\b)"
    rf"|\b(?:successfully)\s+{_DONE}\b|^\W*(?:done|all\s+set)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])[ \t]+")


def without_false_deeds(text: str, *, note: str = NOT_MADE) -> str:
    """`text` without the sentences in which its writer claims to have changed something, `note` in their place. For a
    turn without a call that did."""
    return "\n".join(_line(line, note) for line in text.split("\n"))


def _line(line: str, note: str) -> str:
    kept: list[str] = []
    for sentence in _SENTENCE.split(line):
        if not _FIRST_PERSON.search(sentence):
            kept.append(sentence)
        elif not kept or kept[-1] != note:
            kept.append(note)
    return " ".join(kept)
