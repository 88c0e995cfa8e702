"""An answer's Markdown cut into the pieces that are kept or left out: sentences, table cells, headings, code blocks.

Pieces tell where they lie in the text, so that a change touches nothing around them, and which heading, list item or
table row they belong to. Reads layout only; what a piece says is for the recognisers.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise


class Layout(StrEnum):
    """What a piece is on the page."""

    SENTENCE = "sentence"
    ITEM = "item"
    CELL = "cell"
    HEADER_CELL = "header cell"
    HEADING = "heading"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece at `[start, end)` of the text. `block` counts paragraphs, lists and tables; `depth` is the level of a
    heading or the indent of a list item; `group` is shared by the sentences of one item or the cells of one row;
    `header` is the column's title, `column` its place and `row_label` the text of the row's first cell."""

    text: str
    start: int
    end: int
    layout: Layout
    block: int
    depth: int = 0
    group: int = 0
    header: str = ""
    column: int = 0
    row_label: str = ""


_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+")
_ITEM = re.compile(r"^([ \t]*)(?:[-*+•]|\d{1,3}[.)]|\[\d{1,3}\])[ \t]+")
_QUOTE = re.compile(r"^[ \t]*>[ \t]?")
_RULE = re.compile(r"^[ \t]*(?:[-*_][ \t]*){3,}$")
_TABLE_RULE = re.compile(r"^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_CELL_END = re.compile(r"(?<!\\)\|")
_END = re.compile(r"[.!?…]+[\"'”’)\]*_`]*(?=\s|$)")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|approx|no|nr|ca|cf|resp|incl|a\.m|p\.m|u\.s|st|mr|ms|dr|inc|ltd)|\b[A-Z])\.$",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"[\w-]+[.@\\_-]\w")
"""A sentence may begin with the name of an account or a host, in small letters."""
_NEXT_SENTENCE = re.compile(r"[.!?](?=[ \t]+[*_]{0,2}[A-Z0-9])")
_WRAPPED = 60
"""A line of at least so many characters without an end may go on in the next line."""


_PLAIN_BEGINNING = re.compile(r"\s*(?:[*_]{1,3}|[`“\"(])?[A-Za-z0-9]")


def is_plain_prose(line: str) -> bool:
    """True for a line that is of a paragraph and can be no part of a list, a table or a quotation."""
    return (
        _PLAIN_BEGINNING.match(line) is not None
        and "|" not in line
        and not any(layout.match(line) for layout in (_ITEM, _HEADING, _QUOTE, _FENCE, _RULE, _TABLE_RULE))
    )


def title_of_section(line: str) -> bool:
    """True for a heading; a line with a bar may be the head of a table."""
    return _HEADING.match(line) is not None and "|" not in line


def opened_fence(line: str) -> str:
    """The marks of the code block that begins with `line`; empty if none does."""
    found = _FENCE.match(line)
    return found[1] if found else ""


def ends_a_sentence(text: str) -> bool:
    """True if a sentence ends where `text`, the beginning of a line, does, and a capital letter follows."""
    last = text[-1:]
    if last not in (".", "!", "?") or (last == "." and _ABBREVIATION.search(text)):
        return False
    return re.search(r"[`\"“]", _PROTECTED.sub("", text)) is None


def pieces_of(text: str) -> list[Piece]:
    """The pieces of `text` in order. What lies between them is layout and blank space."""
    return list(_Cutter(text).cut())


class _Cutter:
    def __init__(self, text: str) -> None:
        self.text = text
        self.lines: list[tuple[int, int]] = []
        start = 0
        for line in text.split("\n"):
            self.lines.append((start, start + len(line)))
            start += len(line) + 1
        self.block = 0
        self.group = 0

    def line(self, place: int) -> str:
        start, end = self.lines[place]
        return self.text[start:end]

    def cut(self) -> Iterator[Piece]:
        place = 0
        while place < len(self.lines):
            line = self.line(place)
            if fence := _FENCE.match(line):
                last = self._fence_end(place, fence[1])
                yield self._piece(self.lines[place][0], self.lines[last][1], Layout.CODE)
                self.block += 1
                place = last + 1
            elif not line.strip() or _RULE.match(line):
                self.block += 1
                place += 1
            elif self._begins_table(place):
                place = yield from self._table(place)
            elif heading := _HEADING.match(line):
                self.block += 1
                start, end = self.lines[place]
                yield self._piece(start + heading.end(), end, Layout.HEADING, depth=len(heading[1]))
                self.block += 1
                place += 1
            else:
                place = yield from self._prose(place)

    def _begins_table(self, place: int) -> bool:
        """True for the head of a table. A sentence that has ended on the line was read before any bar came."""
        line = self.line(place)
        if "|" not in line or place + 1 >= len(self.lines) or not self._is_rule(place + 1):
            return False
        first = line.partition("|")[0]
        return not any(ends_a_sentence(first[: end.start() + 1]) for end in _NEXT_SENTENCE.finditer(first))

    def _is_rule(self, place: int) -> bool:
        line = self.line(place)
        return "-" in line and bool(_TABLE_RULE.match(line))

    def _fence_end(self, place: int, fence: str) -> int:
        for later in range(place + 1, len(self.lines)):
            if self.line(later).strip().startswith(fence):
                return later
        return len(self.lines) - 1

    def _table(self, place: int) -> Generator[Piece, None, int]:
        self.block += 1
        titles = [self.text[start:end].strip(" *`_") for start, end in self._cells(place)]
        for column, (start, end) in enumerate(self._cells(place)):
            yield self._piece(start, end, Layout.HEADER_CELL, column=column)
        place += 2
        while place < len(self.lines) and "|" in self.line(place):
            self.group += 1
            cells = self._cells(place)
            label = self.text[cells[0][0] : cells[0][1]].strip(" *`_") if cells else ""
            for column, (start, end) in enumerate(cells):
                header = titles[column] if column < len(titles) else ""
                piece = self._piece(start, end, Layout.CELL, column=column, header=header)
                yield replace(piece, row_label=label if column else "")
            place += 1
        self.block += 1
        return place

    def _cells(self, place: int) -> list[tuple[int, int]]:
        start, end = self.lines[place]
        borders = [start + match.start() for match in _CELL_END.finditer(self.text[start:end])]
        edges = [start - 1, *borders, end]
        cells = [(left + 1, right) for left, right in pairwise(edges)]
        if self.line(place).lstrip().startswith("|"):
            cells = cells[1:]
        if self.line(place).rstrip().endswith("|") and len(cells) > 1:
            cells = cells[:-1]
        return [self._stripped(left, right) for left, right in cells]

    def _stripped(self, start: int, end: int) -> tuple[int, int]:
        part = self.text[start:end]
        return start + len(part) - len(part.lstrip()), end - (len(part) - len(part.rstrip())) if part.strip() else start

    def _prose(self, place: int) -> Generator[Piece, None, int]:
        """One list item or paragraph with the lines that go on in it."""
        start = self.lines[place][0]
        line = self.line(place)
        layout, depth = Layout.SENTENCE, 0
        if quote := _QUOTE.match(line):
            start += quote.end()
            line = line[quote.end() :]
        if item := _ITEM.match(line):
            layout, depth = Layout.ITEM, len(item[1].expandtabs(4))
            start += item.end()
            self.group += 1
        end = self.lines[place][1]
        place += 1
        while place < len(self.lines) and self._goes_on(place):
            end = self.lines[place][1]
            place += 1
        if layout is Layout.SENTENCE:
            self.group += 1
        for left, right in self._sentences(start, end):
            yield self._piece(left, right, layout, depth=depth)
        return place

    def _goes_on(self, place: int) -> bool:
        line, before = self.line(place), self.line(place - 1)
        if not line.strip() or _ITEM.match(line) or _HEADING.match(line) or _FENCE.match(line) or _QUOTE.match(line):
            return False
        if _RULE.match(line) or _END.search(before[-4:]) or before.rstrip().endswith((":", "|", "  ")):
            return False
        if self._begins_table(place):
            return False
        return line.lstrip()[0].islower() or len(before) >= _WRAPPED

    def _sentences(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        part = self.text[start:end]
        closed = _protected(part)
        begin = 0
        for match in _END.finditer(part):
            if any(left < match.start() < right for left, right in closed):
                continue
            following = part[match.end() :].lstrip()
            if match[0].startswith(".") and (
                _ABBREVIATION.search(part[begin : match.start() + 1])
                or (following[:1].islower() and not _IDENTIFIER.match(following))
            ):
                continue
            left, right = self._stripped(start + begin, start + match.end())
            if right > left:
                yield left, right
            begin = match.end()
        left, right = self._stripped(start + begin, end)
        if right > left:
            yield left, right

    def _piece(
        self, start: int, end: int, layout: Layout, *, depth: int = 0, column: int = 0, header: str = ""
    ) -> Piece:
        return Piece(
            self.text[start:end], start, end, layout, self.block, depth, self.group, header=header, column=column
        )


_PROTECTED = re.compile(r"`[^`\n]+`|“[^”\n]{1,400}”|\"[^\"\n]{1,400}\"")


def _protected(part: str) -> list[tuple[int, int]]:
    """Code spans and quotations, in which a full stop ends nothing."""
    return [match.span() for match in _PROTECTED.finditer(part)]
