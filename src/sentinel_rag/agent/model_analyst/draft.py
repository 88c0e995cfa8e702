"""An answer that a model is still writing, as a person sees it: its text as it comes, marks as its sentences end.

What was given out is the beginning of the answer, so nothing is shown twice. Where a later word could still change what
the text so far looks like (an open code span, half a citation), it waits; a text that may turn out to be a call of a
tool waits for its end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sentinel_rag.agent.answers.check import GrowingAnswer
from sentinel_rag.agent.answers.evidence import Evidence
from sentinel_rag.agent.model_analyst.answer_text import code_in, shown
from sentinel_rag.agent.model_analyst.local_forms import without_reasoning
from sentinel_rag.contracts.evidence import Sentence

_MAY_BE_A_CALL = re.compile(r"\s*(?:<|\{|```|\[(?!c?\d))")
_MAY_SETTLE = re.compile(r"\n|[.!?]\s")
"""Signs behind which more may be shown; a model often writes the blank behind a stop with the next word."""
_PAIRS = (("[", "]"), ("(", ")"), ("<", ">"), ("【", "】"))


class Draft:
    """One text of a model. `opening` stands before the answer."""

    def __init__(self, evidence: Evidence, *, opening: str = "") -> None:
        self._growing = GrowingAnswer(evidence)
        self._opening = f"{opening}\n\n" if opening else ""
        self._text = ""
        self._taken = 0
        self._body = ""
        self._given = False

    def add(self, more: str) -> tuple[str, tuple[Sentence, ...]]:
        """What may be shown beyond what was given before, now that `more` was written, and the sentences whose check
        has ended; both are often empty."""
        self._text += more
        if not _MAY_SETTLE.search(self._text, max(0, len(self._text) - len(more) - 1)):
            return "", ()
        text = without_reasoning(self._text, growing=True)
        if _MAY_BE_A_CALL.match(text) or "<think" in text[self._taken :]:
            return "", ()
        end = _settled(text, self._taken)
        if end <= self._taken:
            return "", ()
        self._taken = end
        body = _sanitised(text[:end])
        if not body.startswith(self._body):  # what comes now would be no part of the answer; it is shown as a whole
            return "", ()
        piece, self._body = body[len(self._body) :], body
        written, sentences = self._growing.add(piece)
        if written and not self._given:
            self._given, written = True, self._opening + written
        return written, moved(sentences, len(self._opening))


def _settled(text: str, start: int) -> int:
    """The last place at or behind `start` at which no later character changes what stands before it: the end of a line
    or of a sentence, with nothing open."""
    code = code_in(text)
    end = start
    for line in re.finditer(r"[^\n]*\n|[^\n]+$", text[start:]):
        if line[0].endswith("\n"):
            places = [line.end()]
        elif "|" in line[0]:
            continue
        else:
            stops = (line.start() + stop.end() for stop in re.finditer(r"[.!?](?=\s)", line[0]))
            places = [stop for stop in stops if _balanced(line[0][: stop - line.start()])]
        for place in places:
            if not any(first < start + place <= last for first, last in code):
                end = start + place
    return end


def _balanced(text: str) -> bool:
    return text.count("`") % 2 == 0 and all(text.count(left) <= text.count(right) for left, right in _PAIRS)


def _sanitised(beginning: str) -> str:
    """`shown` for the beginning of a text, with the line ends behind it."""
    body, tail = shown(beginning), beginning[len(beginning.rstrip()) :]
    return body + tail[:2] if body and not tail.strip("\n") else body


def moved(sentences: Sequence[Sentence], by: int) -> tuple[Sentence, ...]:
    """`sentences` with all places `by` characters further on."""
    return tuple(
        replace(
            each,
            start=each.start + by,
            end=each.end + by,
            marks=tuple(replace(mark, start=mark.start + by, end=mark.end + by) for mark in each.marks),
        )
        for each in sentences
    )
