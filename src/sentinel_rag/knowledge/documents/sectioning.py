"""Headings and blocks in reading order to sections with their paths; what all file formats have in common."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sentinel_rag.knowledge.documents.model import DocumentBlock, DocumentSection

LONGEST_HEADING = 300


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of level 1 (outermost) to 6. `place` as in Block."""

    level: int
    text: str
    place: int


def sections_of(parts: Iterable[Heading | DocumentBlock]) -> tuple[DocumentSection, ...]:
    """One section for each heading that has blocks of its own; a heading without any lives on in the paths below it."""
    found: list[DocumentSection] = []
    above: list[Heading] = []
    blocks: list[DocumentBlock] = []

    def close() -> None:
        if blocks:
            found.append(
                DocumentSection(tuple(each.text[:LONGEST_HEADING] for each in above if each.text), tuple(blocks))
            )
            blocks.clear()

    for part in parts:
        if isinstance(part, DocumentBlock):
            blocks.append(part)
            continue
        close()
        while above and above[-1].level >= part.level:
            above.pop()
        above.append(part)
    close()
    return tuple(found)
