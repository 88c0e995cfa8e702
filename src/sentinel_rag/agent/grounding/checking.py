"""The check of an answer, whoever wrote it: read, judge, put right or leave out, and say so.

Goes over the text until nothing changes any more, because a sentence that is left out may have said what the next
one's "it" stood for. An answer that is still being written goes through the same rounds part by part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sentinel_rag.agent.grounding.atoms import Atom
from sentinel_rag.agent.grounding.evidence_index import EvidenceIndex
from sentinel_rag.agent.grounding.judging import Judged, judge
from sentinel_rag.agent.grounding.lookalikes import plain
from sentinel_rag.agent.grounding.markdown_text import Layout, Piece
from sentinel_rag.agent.grounding.outcome import REMOVED, REPAIRED, UNCHECKED_CELL, Grounded, Removal, Repair
from sentinel_rag.agent.grounding.reader import CutElsewhereError, Reader
from sentinel_rag.agent.grounding.reading import Reading
from sentinel_rag.agent.grounding.repair_grammar import can_stand
from sentinel_rag.contracts.evidence import Evidence

MOST_ROUNDS = 12
_MOST_REPAIRS = 2
"""A sentence with more wrong values than this is left out: it speaks of something else."""
_ROW_KEYS = (Layout.CELL, Layout.HEADER_CELL)


def ground(text: str, index: EvidenceIndex, *, question: str) -> Grounded:
    """`text` (Markdown) with every wrong value put right from the results, or its sentence left out, and marked so."""
    text = plain(text)
    rounds: list[_Round] = []
    for _ in range(MOST_ROUNDS):
        rounds.append(_Round(index, question))
        text = rounds[-1].add(text)
        if not rounds[-1].edits:
            break
    edits = [edit for each in rounds for edit in each.edits]
    return Grounded(
        text,
        _evidence(rounds[-1].judged, index),
        tuple(repair for edit in edits for repair in edit.repairs),
        tuple(removal for edit in edits for removal in edit.removals),
    )


class GrowingCheck:
    """The check of a text that is still being written, over parts of it that no later text can change the pieces of.

    What it gives is the beginning of what `ground` makes of the whole text. A count of things that are listed further
    on is judged by what follows it, so from there on nothing is given.
    """

    def __init__(self, index: EvidenceIndex, question: str) -> None:
        self._index = index
        self._question = question
        self._rounds = [_Round(index, question)]
        self._held = False

    def add(self, text: str) -> str | None:
        """All that may be shown of `text`, which is the text so far and begins with the one before; None if its newest
        part, and all that comes, can only be judged with the whole."""
        if self._held:
            return None
        try:
            return self._added(plain(text))
        except CutElsewhereError:
            self._held = True
            return None

    def _added(self, text: str) -> str | None:
        for place in range(MOST_ROUNDS):
            if place == len(self._rounds):
                self._rounds.append(_Round(self._index, self._question))
            round_ = self._rounds[place]
            text = round_.add(text)
            if round_.looked_ahead:
                self._held = True
                return None
            if not round_.edits:
                break
        return text


class _Round:
    """One reading of a text with what it changes in it. `add` may be called again with more behind the same text."""

    def __init__(self, index: EvidenceIndex, question: str) -> None:
        self._index = index
        self._reader = Reader(index, question)
        self._anything = any(
            run.rows or (run.run.worked and run.run.result is None and run.leaves) for run in index.results
        )
        self._before = ""
        self._parts: list[str] = []
        self._at = 0
        self.judged: list[list[Judged]] = []
        self.edits: list[_Edit] = []
        self.looked_ahead = False

    def add(self, text: str) -> str:
        """`text` with what was wrong in it changed. Raises CutElsewhereError if it is not what was there before with
        more behind it."""
        if not text.startswith(self._before):
            raise CutElsewhereError
        self._before = text
        readings = self._reader.read(text)
        judged = [list(judge(reading, anything_known=self._anything)) for reading in readings]
        self.judged += judged
        self.looked_ahead = self.looked_ahead or any(reading.looked_ahead for reading in readings)
        edits = list(_edits(text, readings, judged, self._index))
        self.edits += edits
        return self._edited(text, edits)

    def _edited(self, text: str, edits: Sequence[_Edit]) -> str:
        for edit in sorted(edits, key=lambda each: each.start):
            between = text[self._at : edit.start]
            if edit.put == REMOVED and self._parts and self._parts[-1] == REMOVED and between.strip(" ") == "":
                self._at = edit.end
                continue
            self._parts += [between, edit.put]
            self._at = edit.end
        return "".join([*self._parts, text[self._at :]])


@dataclass(frozen=True, slots=True)
class _Edit:
    """`[start, end)` of the text becomes `put`."""

    start: int
    end: int
    put: str
    repairs: tuple[Repair, ...] = ()
    removals: tuple[Removal, ...] = ()


def _evidence(judged: Sequence[Sequence[Judged]], index: EvidenceIndex) -> tuple[Evidence, ...]:
    found: dict[tuple[str, str, str], Evidence] = {}
    for piece in judged:
        for each in piece:
            if each.verdict.supported and each.verdict.leaf is not None:
                evidence = index.evidence(each.verdict.leaf, each.atom.text)
                found.setdefault((evidence.text, evidence.call_id, evidence.pointer), evidence)
    return tuple(found.values())


def _edits(
    text: str, readings: Sequence[Reading], judged: Sequence[Sequence[Judged]], index: EvidenceIndex
) -> Iterator[_Edit]:
    broken_rows = {
        reading.piece.group
        for reading, verdicts in zip(readings, judged, strict=True)
        if reading.piece.layout is Layout.CELL
        and any(not each.verdict.supported and each.names_subject and not each.verdict.right for each in verdicts)
    }
    for reading, verdicts in zip(readings, judged, strict=True):
        piece = reading.piece
        written = text[piece.start : piece.end]
        wrong = [each for each in verdicts if not each.verdict.supported]
        if piece.layout is Layout.CELL and piece.group in broken_rows:
            atom = wrong[0].atom.text if wrong else written
            reason = wrong[0].verdict.reason if wrong else "its row speaks of something that no result holds"
            yield _Edit(piece.start, piece.end, UNCHECKED_CELL, removals=(Removal(atom, written, reason),))
        elif not wrong:
            continue
        elif len(wrong) <= _MOST_REPAIRS and all(_repairable(each, piece, written) for each in wrong):
            for each in wrong:
                yield _repair(each, piece, written, index)
        else:
            yield _removal(wrong[0], piece, written)


def _repairable(judged: Judged, piece: Piece, written: str) -> bool:
    """A repair that turns out wrong once more is none: what it should be is not clear."""
    if not judged.verdict.right or judged.verdict.leaf is None or piece.layout is Layout.CODE:
        return False
    if not can_stand(judged.verdict.right, judged.atom, written):
        return False
    end = judged.atom.end + len(_tail(judged.atom, written))
    return not written[end:].startswith(f" {REPAIRED}")


def _tail(atom: Atom, written: str) -> str:
    """What follows an atom without a space: the rest of a compound ("-severity") and the marks that close around it."""
    compound = re.match(r"-\w+|(?:st|nd|rd|th)\b", written[atom.end :])
    tail = compound[0] if compound else ""
    closing = re.match(r"[`*_”\"]+", written[atom.end + len(tail) :])
    return tail + (closing[0] if closing else "")


def _repair(judged: Judged, piece: Piece, written: str, index: EvidenceIndex) -> _Edit:
    """The right value in the place of the wrong one, with the mark behind the word, code span or emphasis around it."""
    atom, verdict = judged.atom, judged.verdict
    assert verdict.leaf is not None
    tail = _tail(atom, written)
    repair = Repair(atom.text, verdict.right, verdict.reason, index.evidence(verdict.leaf, verdict.right))
    end = piece.start + atom.end + len(tail)
    return _Edit(piece.start + atom.start, end, f"{verdict.right}{tail} {REPAIRED}", repairs=(repair,))


def _removal(judged: Judged, piece: Piece, written: str) -> _Edit:
    removal = Removal(judged.atom.text, written, judged.verdict.reason)
    if piece.layout in (*_ROW_KEYS, Layout.HEADING):
        return _Edit(piece.start, piece.end, UNCHECKED_CELL, removals=(removal,))
    if piece.layout is Layout.CODE:
        first, _, _ = written.partition("\n")
        fence = re.match(r"\s*(`{3,}|~{3,})", first)
        inside = f"{first}\n{UNCHECKED_CELL}\n{fence[1]}" if fence else UNCHECKED_CELL
        return _Edit(piece.start, piece.end, inside, removals=(removal,))
    put = REMOVED
    for mark in ("**", "__"):
        if written.count(mark) % 2:
            # Emphasis that opens or closes in another sentence keeps its other half.
            put = f"{mark}{put}" if written.lstrip().startswith(mark) else f"{put}{mark}"
    return _Edit(piece.start, piece.end, put, removals=(removal,))
