"""The lines of a PDF page with their type: what pypdf tells piece by piece, put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypdf import PageObject

_ONE_WIDTH = ("courier", "mono", "consol", "menlo", "inconsolata", "typewriter", "lucidasans-typewriter", "cascadia")

_MARGIN = 0.08


@dataclass(frozen=True, slots=True)
class Line:
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


def page_lines(page: PageObject) -> list[Line]:
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
    return [_line(pieces, low + margin, high - margin) for pieces in written]


def _line(pieces: list[_Piece], low: float, high: float) -> Line:
    written = [piece for piece in pieces if piece.text.strip()]
    longest = max(written, key=lambda piece: len(piece.text.strip()))
    mono = all(piece.mono for piece in written)
    text = "".join(piece.text for piece in pieces)
    y = written[0].y
    return Line(text.rstrip() if mono else " ".join(text.split()), longest.size, y, mono, not low <= y <= high)
