"""What the check of an answer gives back: the text that may be shown, what it rests on, and what was changed in it."""

from __future__ import annotations

from dataclasses import dataclass

from sentinel_rag.contracts.evidence import REMOVED, Evidence

__all__ = ["REMOVED", "REPAIRED", "UNCHECKED_CELL", "Grounded", "Removal", "Repair"]

UNCHECKED_CELL = "(not checked)"
REPAIRED = "(corrected)"
"""Stands behind a value that was put right, so that a reader sees it."""


@dataclass(frozen=True, slots=True)
class Repair:
    """`found` stood in the answer, `put` stands there now, because `reason`; `evidence` holds the right value."""

    found: str
    put: str
    reason: str
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Removal:
    """`text` (a sentence, a list item or a cell) was left out because of `atom`, for `reason`."""

    atom: str
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Grounded:
    """A checked answer: Markdown, with a piece of evidence for each atom that a result holds."""

    text: str
    evidence: tuple[Evidence, ...] = ()
    repairs: tuple[Repair, ...] = ()
    removals: tuple[Removal, ...] = ()

    @property
    def touched(self) -> bool:
        """True if the text is not what the writer wrote."""
        return bool(self.repairs or self.removals)
