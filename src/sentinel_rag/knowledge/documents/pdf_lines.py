"""The lines of a PDF page with their type: what pypdf tells piece by piece, put together."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypdf import PageObject

_ONE_WIDTH = ("courier", "mono", "consol", "menlo", "inconsolata", "typewriter", "lucidasans-typewriter", "cascadia")

_MARGIN = 0.08
_RUN_TOGETHER = re.compile(r"[^\W\d_]{25,}")
"""Longer than all but a few words of any language; reading such a page once more costs time and changes nothing."""


@dataclass(frozen=True, slots=True)
class PdfLine:
    """One line: its text, the size of most of its type in points (to half a point), its height `y` on the page (it
    falls from line to line), whether all its type is of one width, as code is, and whether it stands at the upper or
    lower edge of the page, where running heads do."""

    text: str
    size: float
    y: float
    mono: bool = False
    in_margin: bool = False


@dataclass(slots=True)
class _Piece:
    text: str
    size: float
    y: float
    mono: bool


def page_lines(page: PageObject) -> list[PdfLine]:
    """The lines of a page that hold text, in reading order. Raises whatever pypdf does on a damaged page."""
    lines: list[list[_Piece]] = [[]]

    def take(text: str, outer: Any, matrix: Any, font: Any, size: Any) -> None:
        scale = abs(float(matrix[3]) or float(matrix[1])) * (abs(float(outer[3])) or 1.0)
        points = round(2 * float(size or 0) * (scale or 1.0)) / 2
        y = float(matrix[5]) * float(outer[3]) + float(outer[5])
        name = str(font.get("/BaseFont", "")).casefold() if font else ""
        mono = any(word in name for word in _ONE_WIDTH)
        for place, part in enumerate(text.split("\n")):
            if place:
                lines.append([])
            if part:
                lines[-1].append(_Piece(part, points, y, mono))

    page.extract_text(visitor_text=take)
    low, high = float(page.mediabox.bottom), float(page.mediabox.top)
    margin = _MARGIN * (high - low)
    written = [pieces for pieces in lines if any(piece.text.strip() for piece in pieces)]
    found = [_line(pieces, low + margin, high - margin) for pieces in written]
    if any(_RUN_TOGETHER.search(line.text) for line in found if not line.mono):
        return _with_gaps(page, found)
    return found


def _with_gaps(page: PageObject, lines: list[PdfLine]) -> list[PdfLine]:
    """The lines with the gaps between words that only their places tell: where each word is a piece of its own and no
    blank is written, pypdf's plain reading runs them together, and its reading by layout does not."""
    laid_out = page.extract_text(extraction_mode="layout").splitlines()
    apart = {"".join(text.split()): " ".join(text.split()) for text in laid_out}
    return [
        line if line.mono else replace(line, text=apart.get("".join(line.text.split()), line.text)) for line in lines
    ]


def _line(pieces: list[_Piece], low: float, high: float) -> PdfLine:
    written = [piece for piece in pieces if piece.text.strip()]
    longest = max(written, key=lambda piece: len(piece.text.strip()))
    mono = all(piece.mono for piece in written)
    text = "".join(piece.text for piece in pieces)
    y = written[0].y
    return PdfLine(text.rstrip() if mono else " ".join(text.split()), longest.size, y, mono, not low <= y <= high)
