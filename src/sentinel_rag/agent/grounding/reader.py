"""Reading an answer in its order: what each piece says, what it speaks of, and what stands around it.

Goes on where it stopped, so that an answer that is still being written is read once and not again with each sentence.
What a piece may refer back to is known when it is read; what follows it is known as far as it is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sentinel_rag.agent.grounding.atoms import Atom
from sentinel_rag.agent.grounding.evidence_index import EvidenceIndex
from sentinel_rag.agent.grounding.markdown_text import Layout, Piece, pieces_of
from sentinel_rag.agent.grounding.number_atoms import incident_numbers_in, nouns_in
from sentinel_rag.agent.grounding.outcome import REMOVED, REPAIRED, UNCHECKED_CELL
from sentinel_rag.agent.grounding.reading import Reading
from sentinel_rag.agent.grounding.recognition import Titles, atoms_of
from sentinel_rag.agent.grounding.subjects import STRONG, Context, Subject, Topic, subjects_in

_FOLLOWING = 40
_PRECEDING = 2
"""Pieces before one from whose times it may measure ("two hours later")."""


class CutElsewhereError(Exception):
    """What was read before is cut into other pieces now that more of the text is there."""


class Reader:
    """Reads one text. `read` may be called again with the same text and more behind it."""

    def __init__(self, index: EvidenceIndex, question: str) -> None:
        self._index = index
        self._flow = _Flow(index, question)
        self._question = question
        self._lead = ""
        self._read: list[tuple[int, int]] = []
        self._before: list[Sequence[Atom]] = []

    def read(self, text: str) -> list[Reading]:
        """The pieces of `text` behind those that were read already. Raises CutElsewhereError."""
        # The mark of a repair says nothing of its own: it is read as blank space, so that each place stays the same.
        text = text.replace(REPAIRED, " " * len(REPAIRED))
        pieces = [piece for piece in pieces_of(text) if piece.text.strip(" *_") not in ("", REMOVED, UNCHECKED_CELL)]
        known = len(self._read)
        if [(piece.start, piece.end) for piece in pieces[:known]] != self._read:
            raise CutElsewhereError
        pieces = pieces[known:]
        self._read += [(piece.start, piece.end) for piece in pieces]
        begin = pieces[0].start if pieces else len(text)
        titles = Titles.of(text[begin:], self._index)
        numbers = self._index.incident_numbers
        atoms = [atoms_of(piece, self._index, titles, numbers) for piece in pieces]
        readings: list[Reading] = []
        for place, piece in enumerate(pieces):
            context = self._flow.before(piece)
            subjects = (
                subjects_in(piece.text, atoms[place], self._index, context, column=piece.header)
                if piece.layout is not Layout.CODE
                else []
            )
            following = [
                atom for later in range(place + 1, min(place + _FOLLOWING, len(pieces))) for atom in atoms[later]
            ]
            if piece.layout is not Layout.ITEM:
                leads = piece.layout is Layout.HEADING or piece.text.rstrip(" *_").endswith(":")
                self._lead = piece.text if leads else ""
            of_list = self._lead if piece.layout is Layout.ITEM else ""
            preceding = [atom for earlier in self._before for atom in earlier]
            self._before = [*self._before, atoms[place]][-_PRECEDING:]
            readings.append(
                Reading(
                    piece,
                    atoms[place],
                    subjects,
                    context,
                    self._index,
                    self._question,
                    (),
                    following,
                    preceding,
                    of_list,
                )
            )
            self._flow.after(piece, subjects)
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
