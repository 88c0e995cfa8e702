"""A text that tells what happened and then asks: which sentences are the telling and which are the question.

Pure text; what the question asks for is read elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LEAST_WORDS = 18
"""Words from which on several sentences are a briefing; fewer are a question with a greeting."""

_SENTENCE = re.compile(r"(?<=[.?!])[\"'”`)]*\s+(?=[A-Z\"'`“(])|(?<=[}\]])\s+(?=[A-Z])")
_PARAGRAPH = re.compile(r"\s*\n\s*")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|approx|no|incl)|\b[A-Z])\.$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Briefing:
    """`told` are the sentences before the last one, `question` is the last."""

    told: tuple[str, ...]
    question: str


def read_briefing(text: str) -> Briefing | None:
    """The two parts, or None where the text is one sentence, too short to tell anything, or more questions than one."""
    sentences = [sentence for part in _PARAGRAPH.split(text.strip()) for sentence in sentences_of(part)]
    if len(sentences) < 2 or len(text.split()) < LEAST_WORDS:
        return None
    return Briefing(tuple(sentences[:-1]), sentences[-1])


def sentences_of(text: str) -> list[str]:
    """The sentences of one paragraph, in order."""
    found: list[str] = []
    for piece in _SENTENCE.split(text):
        if found and _ABBREVIATION.search(found[-1]):
            found[-1] += " " + piece
        elif piece.strip():
            found.append(piece.strip())
    return found
