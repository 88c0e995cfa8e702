"""One piece of an answer, read: its atoms, the subjects that it names, and what stands around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sentinel_rag.agent.grounding.atoms import Atom
from sentinel_rag.agent.grounding.evidence_index import EvidenceIndex
from sentinel_rag.agent.grounding.markdown_text import Piece
from sentinel_rag.agent.grounding.subjects import Context, Subject


@dataclass(slots=True)
class Reading:
    """A piece with what judging it needs. `row_subjects` are those of the other cells of its table row, `following`
    the atoms of the pieces after it, `preceding` those of the two pieces before it."""

    piece: Piece
    atoms: Sequence[Atom]
    subjects: Sequence[Subject]
    context: Context
    index: EvidenceIndex
    question: str
    row_subjects: Sequence[Subject] = ()
    following: Sequence[Atom] = field(default_factory=tuple)
    preceding: Sequence[Atom] = field(default_factory=tuple)
    lead: str = ""
    """For an item of a list, the heading or the sentence with a colon that stands above the list."""
    looked_ahead: bool = False
    """True once a verdict asked for what follows: with more text behind it, it may be another one."""

    @property
    def text(self) -> str:
        return self.piece.text

    def look_ahead(self) -> Sequence[Atom]:
        """The atoms of the pieces that follow."""
        self.looked_ahead = True
        return self.following

    @property
    def column_words(self) -> str:
        """For a cell, what its column and its row are called."""
        return f"{self.piece.header} {self.piece.row_label}"
