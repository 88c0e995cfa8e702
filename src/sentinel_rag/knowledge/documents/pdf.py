"""Read a PDF into sections by its type: larger type is a heading, type of one width is code."""

from __future__ import annotations

import io
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sentinel_rag.knowledge.documents.model import (
    BlockKind,
    DocumentBlock,
    DocumentSection,
    FileFault,
    Heading,
    sections_of,
)

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


# A PDF has places of glyphs and no structure, so this is a reading of its type, and tables come out as lines. pypdf is
# pure Python and bounds what it unpacks; pages and characters are bounded here. Running heads and page numbers are left
# out. A scanned PDF has no text and is told so, since no character recognition is done here.
MOST_PAGES = 5_000
MOST_CHARACTERS = 40_000_000
MOST_SECONDS = 300.0
_HEADING_SIZE = 1.15
"""Type so much larger than the body's is a heading."""
_PARAGRAPH_GAP = 1.7
"""Lines further apart than so many sizes of their type are two paragraphs."""
_LONGEST_HEADING = 160
_ITEM = re.compile(r"([•▪◦‣●*–-]|\d{1,3}[.)]|[a-z][.)])\s+")
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class PdfText:
    """Title (of its metadata, else its first heading, else empty), sections whose places are pages, pages in all and
    those without any text. `remarks` are sentences about what was left out."""

    title: str
    sections: tuple[DocumentSection, ...]
    pages: int
    pages_without_text: int
    remarks: tuple[str, ...] = ()


def read_pdf(content: bytes, *, clock: Callable[[], float] = time.monotonic) -> PdfText:
    """The text of a PDF. Raises FileFault; a page that is broken by itself is left out with a remark. Of one that takes
    too long only the first pages are read."""
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it tells every flaw of a file that it reads all the same
    try:
        reader = PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise FileFault("It is locked with a password.")
        count = len(reader.pages)
        metadata = reader.metadata
        title = " ".join(str((metadata.title if metadata else None) or "").split())
    except FileFault:
        raise
    except Exception as error:  # pypdf lets errors of many kinds through on damaged files
        if "cryptography" in str(error):
            raise FileFault("It is locked in a way that cannot be opened here.") from None
        raise FileFault("It is damaged, or no PDF.") from None
    pages: list[list[PdfLine]] = []
    broken: list[int] = []
    characters, began = 0, clock()
    for number in range(1, min(count, MOST_PAGES) + 1):
        try:
            lines = page_lines(reader.pages[number - 1])
        except Exception:  # as above
            broken.append(number)
            lines = []
        pages.append(lines)
        characters += sum(len(line.text) for line in lines)
        if characters > MOST_CHARACTERS or clock() - began > MOST_SECONDS:
            break
    remarks = tuple(_remarks(count, len(pages), broken))
    body = _body_size(line for page in pages for line in page)
    parts = list(_parts(_without_running_heads(pages, body), body))
    title = title or next((part.text for part in parts if isinstance(part, Heading)), "")
    return PdfText(title, sections_of(parts), count, sum(not page for page in pages), remarks)


def _remarks(count: int, read: int, broken: Sequence[int]) -> Iterator[str]:
    if read < count:
        yield f"Only the first {read:,} of its {count:,} pages were read."
    if broken:
        told = ", ".join(map(str, broken[:10])) + (" and more" if len(broken) > 10 else "")
        yield f"Page{'s' if len(broken) > 1 else ''} {told} could not be read."


def _without_running_heads(pages: Sequence[Sequence[PdfLine]], body: float) -> list[Sequence[PdfLine]]:
    """Pages less the lines in their margins that most pages have there, numbers aside. They are looked for wherever
    they come in the page's order: many programs write feet first."""
    if len(pages) < 4:
        return list(pages)
    heads = Counter(text for page in pages for text in {_masked(line) for line in _edges(page, body)})
    running = {text for text, times in heads.items() if times > 0.6 * len(pages)}
    kept: list[Sequence[PdfLine]] = []
    for page in pages:
        out = {id(line) for line in _edges(page, body) if _masked(line) in running}
        kept.append([line for line in page if id(line) not in out])
    return kept


def _edges(page: Sequence[PdfLine], body: float) -> list[PdfLine]:
    """The lines in the margins of a page that are no headings."""
    return [line for line in page if line.in_margin and not _is_heading(line, body)]


def _masked(line: PdfLine) -> str:
    return _DIGITS.sub("0", line.text)


def _parts(pages: Sequence[Sequence[PdfLine]], body: float) -> Iterator[Heading | DocumentBlock]:
    numbered = [(number, line) for number, page in enumerate(pages, 1) for line in page]
    sizes = sorted({line.size for _, line in numbered if _is_heading(line, body)}, reverse=True)
    kind, texts, place, before = BlockKind.PARAGRAPH, list[str](), 0, PdfLine("", 0, 0)
    for number, line in _whole_headings(numbered, body):
        heading = _is_heading(line, body)
        item = not line.mono and _ITEM.match(line.text) is not None
        parted = not line.mono and (item or before.y - line.y > _PARAGRAPH_GAP * line.size)
        if texts and (heading or parted or (kind is BlockKind.CODE) != line.mono):
            yield DocumentBlock(kind, _joined(kind, texts), place)
            texts = []
        if heading:
            yield Heading(min(6, sizes.index(line.size) + 1), line.text, number)
        else:
            if not texts:
                kind = BlockKind.CODE if line.mono else BlockKind.LIST_ITEM if item else BlockKind.PARAGRAPH
                place = number
            texts.append(line.text)
        before = line
    if texts:
        yield DocumentBlock(kind, _joined(kind, texts), place)


def _whole_headings(numbered: Sequence[tuple[int, PdfLine]], body: float) -> Iterator[tuple[int, PdfLine]]:
    """The lines, with a heading that was set over several lines as one of them."""
    held: tuple[int, PdfLine] | None = None
    for number, line in numbered:
        if held is not None:
            first, heading = held
            near = first == number and 0 < heading.y - line.y < _PARAGRAPH_GAP * line.size
            if near and line.size == heading.size and _is_heading(line, body):
                held = (first, replace(line, text=f"{heading.text} {line.text}"))
                continue
            yield held
            held = None
        if _is_heading(line, body):
            held = (number, line)
        else:
            yield number, line
    if held is not None:
        yield held


def _body_size(lines: Iterable[PdfLine]) -> float:
    """The size in which most characters stand."""
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[line.size] += len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def _is_heading(line: PdfLine, body: float) -> bool:
    return not line.mono and line.size >= _HEADING_SIZE * body and len(line.text) <= _LONGEST_HEADING


def _joined(kind: BlockKind, lines: Sequence[str]) -> str:
    if kind is BlockKind.CODE:
        return "\n".join(("```", *lines, "```"))
    text = lines[0]
    for line in lines[1:]:
        # A word parted at the end of a line is one word again.
        parted = text.endswith("-") and len(text) > 1 and text[-2].isalpha() and line[:1].islower()
        text = text[:-1] + line if parted else f"{text} {line}"
    return text
