"""The check of a finished answer, whoever wrote it: read, judge, put right or leave out, and say so.

Goes over the text until nothing changes any more, because a sentence that is left out may have said what the next
one's "it" stood for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sentinel_rag.agent.grounding.atoms import Atom
from sentinel_rag.agent.grounding.evidence_index import EvidenceIndex
from sentinel_rag.agent.grounding.judging import Judged, judge
from sentinel_rag.agent.grounding.lookalikes import plain
from sentinel_rag.agent.grounding.markdown_text import Layout, Piece, pieces_of
from sentinel_rag.agent.grounding.number_atoms import incident_numbers_in, nouns_in
from sentinel_rag.agent.grounding.outcome import REMOVED, REPAIRED, UNCHECKED_CELL, Grounded, Removal, Repair
from sentinel_rag.agent.grounding.reading import Reading
from sentinel_rag.agent.grounding.recognition import Titles, atoms_of
from sentinel_rag.agent.grounding.repair_grammar import can_stand
from sentinel_rag.agent.grounding.subjects import STRONG, Context, Subject, Topic, subjects_in
from sentinel_rag.contracts.evidence import Evidence

MOST_ROUNDS = 12
_MOST_REPAIRS = 2
"""A sentence with more wrong values than this is left out: it speaks of something else."""
_FOLLOWING = 40
_PRECEDING = 2
"""Pieces before one from whose times it may measure ("two hours later")."""
_ROW_KEYS = (Layout.CELL, Layout.HEADER_CELL)


def ground(text: str, index: EvidenceIndex, *, question: str) -> Grounded:
    """`text` (Markdown) with every wrong value put right from the results, or its sentence left out, and marked so."""
    repairs: list[Repair] = []
    removals: list[Removal] = []
    evidence: tuple[Evidence, ...] = ()
    text = plain(text)
    for _ in range(MOST_ROUNDS):
        readings = _read(text, index, question)
        anything = any(run.rows or (run.run.worked and run.run.result is None and run.leaves) for run in index.results)
        judged = [list(judge(reading, anything_known=anything)) for reading in readings]
        evidence = _evidence(judged, index)
        edits = list(_edits(text, readings, judged, index))
        if not edits:
            break
        repairs += [repair for edit in edits for repair in edit.repairs]
        removals += [removal for edit in edits for removal in edit.removals]
        text = _edited(text, edits)
    return Grounded(text, evidence, tuple(repairs), tuple(removals))


def _read(text: str, index: EvidenceIndex, question: str) -> list[Reading]:
    # The mark of a repair says nothing of its own: it is read as blank space, so that every place stays where it is.
    text = text.replace(REPAIRED, " " * len(REPAIRED))
    pieces = [piece for piece in pieces_of(text) if piece.text.strip(" *_") not in ("", REMOVED, UNCHECKED_CELL)]
    titles = Titles.of(text, index)
    known = index.incident_numbers
    atoms = [atoms_of(piece, index, titles, known) for piece in pieces]
    readings: list[Reading] = []
    flow = _Flow(index, question)
    lead = ""
    for place, piece in enumerate(pieces):
        context = flow.before(piece)
        subjects = (
            subjects_in(piece.text, atoms[place], index, context, column=piece.header)
            if piece.layout is not Layout.CODE
            else []
        )
        following = [atom for later in range(place + 1, min(place + _FOLLOWING, len(pieces))) for atom in atoms[later]]
        preceding = [atom for earlier in range(max(0, place - _PRECEDING), place) for atom in atoms[earlier]]
        if piece.layout is not Layout.ITEM:
            leads = piece.layout is Layout.HEADING or piece.text.rstrip(" *_").endswith(":")
            lead = piece.text if leads else ""
        of_list = lead if piece.layout is Layout.ITEM else ""
        readings.append(
            Reading(piece, atoms[place], subjects, context, index, question, (), following, preceding, of_list)
        )
        flow.after(piece, subjects)
    _share_rows(readings)
    _look_ahead(readings)
    return readings


def _look_ahead(readings: Sequence[Reading]) -> None:
    """A list of "label: value" items that names one thing speaks of it in every item, also in those before the name."""
    blocks: dict[tuple[int, int], list[Reading]] = {}
    for reading in readings:
        if reading.piece.layout is Layout.ITEM:
            blocks.setdefault((reading.piece.block, reading.piece.depth), []).append(reading)
    for items in blocks.values():
        naming = [each for each in items if any(subject.topic in STRONG for subject in each.subjects)]
        named = [subject for each in naming for subject in each.subjects if subject.topic in STRONG]
        if not named or len(items) < 2 or not all(_NAMES.match(each.text) for each in naming):
            continue
        numbered = named[0].text.isdigit()
        if any(not named[0].same(other) for other in named[1:]) and not (numbered and len(named) == 2):
            continue
        subject = replace(named[0], start=-1, end=-1)
        for each in items:
            if each is not naming[0] and _LABEL.match(each.text):
                each.context.last, each.context.firm = subject, True


_LABEL = re.compile(r"^[*_`\s]*[A-Za-z][\w /()#-]{0,30}[*_`]*\s*(?:[:=]|[–-]\s)")
_NAMES = re.compile(
    r"^[*_`\s]*(?:incident|alert|number|no\.?|id|title|name|case|#)[\w /()#-]{0,20}[*_`]*\s*(?:[:=#]|[–-]\s)",
    re.IGNORECASE,
)


def _share_rows(readings: Sequence[Reading]) -> None:
    """Every cell of a table row knows the subjects of the others."""
    rows: dict[int, list[Reading]] = {}
    for reading in readings:
        if reading.piece.layout is Layout.CELL:
            rows.setdefault(reading.piece.group, []).append(reading)
    for cells in rows.values():
        for cell in cells:
            others = [subject for other in cells if other is not cell for subject in other.subjects]
            cell.row_subjects = tuple(_merged(others))


def _merged(subjects: Sequence[Subject]) -> Iterator[Subject]:
    """The subjects of a row; a title that several incidents share is the one whose number stands in the row."""
    numbered = [subject for subject in subjects if subject.topic is Topic.INCIDENT and subject.text.isdigit()]
    for subject in subjects:
        if subject.topic is Topic.INCIDENT and subject not in numbered and any(map(subject.same, numbered)):
            continue
        yield subject


class _Flow:
    """What each piece may refer back to: headings, list items above it, and the sentences before it."""

    def __init__(self, index: EvidenceIndex, question: str) -> None:
        self._index = index
        self._context = Context()
        self._headings: dict[int, Context] = {}
        self._items: dict[int, Context] = {}
        self._item_group = -1
        self._row = -1
        self._before_table: Context | None = None
        self._begin(question)

    def _begin(self, question: str) -> None:
        """The thing that the question names, or the only incident that was read in detail last."""
        nouns = list(nouns_in(question))
        self._context.noun = nouns[-1] if nouns else ""
        numbers = {str(atom.value) for atom in incident_numbers_in(question)}
        if not numbers:
            for run in self._index.results:
                if run.tool == "get_incident_detail" and len(run.rows) == 1:
                    numbers = {run.rows[0].incident}
                break
        if len(numbers) == 1:
            (number,) = numbers
            records = tuple(self._index.incidents(number))
            if records:
                subject = Subject(Topic.INCIDENT, number, records, frozenset({number}))
                self._context = Context(last=subject, incident=subject, noun=self._context.noun, firm=True)

    def before(self, piece: Piece) -> Context:
        if piece.layout is Layout.ITEM:
            if piece.group != self._item_group:
                self._item_group = piece.group
                outer = [depth for depth in self._items if depth < piece.depth]
                if piece.depth in self._items:
                    self._context = self._items[piece.depth].copy()
                elif outer:
                    self._context.firm = True
                for depth in [each for each in self._items if each > piece.depth]:
                    del self._items[depth]
                self._items.setdefault(piece.depth, self._context.copy())
        else:
            self._items.clear()
            self._item_group = -1
        if piece.layout is Layout.CELL:
            if self._before_table is None:
                self._before_table = self._context.copy()
            if piece.group != self._row:
                self._row = piece.group
        elif piece.layout is not Layout.HEADER_CELL:
            self._before_table = None
        if piece.layout is Layout.HEADING:
            outer = [depth for depth in self._headings if depth < piece.depth]
            if outer:
                self._context = self._headings[max(outer)].copy()
            for depth in [each for each in self._headings if each >= piece.depth]:
                del self._headings[depth]
        return self._context.copy()

    def after(self, piece: Piece, subjects: Sequence[Subject]) -> None:
        self._context.learn(subjects)
        nouns = list(nouns_in(piece.text))
        if nouns and piece.layout is not Layout.CELL:
            self._context.noun = nouns[-1]
        if piece.layout is Layout.HEADING:
            if any(subject.topic in STRONG for subject in subjects):
                self._context.firm = True
            self._headings[piece.depth] = self._context.copy()


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


def _edited(text: str, edits: Sequence[_Edit]) -> str:
    parts: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda each: each.start):
        between = text[at : edit.start]
        if edit.put == REMOVED and parts and parts[-1] == REMOVED and between.strip(" ") == "":
            at = edit.end
            continue
        parts += [between, edit.put]
        at = edit.end
    return "".join([*parts, text[at:]])
