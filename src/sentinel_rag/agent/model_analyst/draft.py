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
from sentinel_rag.agent.model_analyst.answer_text import shown
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
        self._given = 0

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
        piece, self._taken = text[self._taken : end], end
        written, sentences = self._growing.add(_sanitised(piece, first=self._given == 0))
        if not written:
            return "", moved(sentences, len(self._opening))
        opening = self._opening if not self._given else ""
        self._given += len(written)
        return opening + written, moved(sentences, len(self._opening))


def _settled(text: str, start: int) -> int:
    """The last place at or behind `start` at which no later character changes what stands before it: the end of a line
    or of a sentence, with nothing open."""
    end = start
    fenced = text.count("```", 0, start) % 2 == 1
    for line in re.finditer(r"[^\n]*\n|[^\n]+$", text[start:]):
        whole = line[0].endswith("\n")
        if line[0].lstrip().startswith("```"):
            fenced = not fenced
        if fenced:
            if line[0].lstrip().startswith("```") or whole:
                continue
            break
        if whole and _balanced(line[0]):
            end = start + line.end()
        elif not whole:
            for stop in re.finditer(r"[.!?](?=\s)", line[0]):
                if _balanced(line[0][: stop.end()]) and "|" not in line[0]:
                    end = start + line.start() + stop.end()
        elif whole:
            end = start + line.end()
    return end


def _balanced(text: str) -> bool:
    return text.count("`") % 2 == 0 and all(text.count(left) <= text.count(right) for left, right in _PAIRS)


def _sanitised(piece: str, *, first: bool) -> str:
    """`shown` for a part of a text, with the blank space that stands around it."""
    body = shown(piece)
    if not body:
        return "" if first else "\n" * min(piece.count("\n"), 2)
    lead = piece[: len(piece) - len(piece.lstrip())]
    tail = piece[len(piece.rstrip()) :]
    before = "" if first else ("\n" * min(lead.count("\n"), 2) or (" " if lead else ""))
    return before + body + ("\n" * min(tail.count("\n"), 2))


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
