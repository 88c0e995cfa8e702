"""An answer in units (sentences, items, headings, table rows, code) with the citations that stand in them.

`Markup` reads an answer as it comes. What it writes is the text without citations; every place is counted in that text.
Only a citation is taken out: `[1] [2]` or `[T1003]` stays. What is written never depends on how the text was cut into
deltas: a bracket is held back until it is known whether it is a citation.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from sentinel_rag.language.lexicon import abbreviations, fold, months

CellText = Callable[[str], str | None]
"""The text of a cell by its reference (`c1.3.severity`); None where there is none."""

_GAP = "[ \t\u00a0\u202f]?"
_REF = rf"c\d{{1,6}}(?:\.\d{{1,6}}(?:{_GAP}[-–]{_GAP}(?:c\d{{1,6}}\.)?\d{{1,6}})?)?(?:\.[A-Za-z_]\w{{0,60}})?"
_CITATION = re.compile(
    rf"(?P<two>[\[【(](?=[\[【(]))?[\[【(]{_GAP}(?P<refs>{_REF}(?:{_GAP}[,;]{_GAP}{_REF}){{0,40}}){_GAP}[\]】)](?(two)[\]】)])"
)
"""As many brackets are closed as were opened: the one of `(High [c1.3])` is the sentence's own."""
_POINTER = re.compile(r"\[([^\]\[\n]{1,200})\]\((c\d{1,6}\.\d{1,6}\.[A-Za-z_]\w{0,60})\)")
_HOLE = re.compile(r"\{(c\d{1,6}\.\d{1,6}\.[A-Za-z_]\w{0,60})\}")
_LONGEST_CITATION = 1_200
"""Characters after which an open bracket is none of a citation."""
_UNFINISHED_CITATION = re.compile(rf"[\[【(]{{1,2}}{_GAP}(?:c[\w \t\u00a0\u202f.,;–-]*[\]】)]?)?$")
_UNFINISHED_POINTER = re.compile(r"\[[^\]\[\n]{0,200}(?:\](?:\([\w.]*)?)?$")
_UNFINISHED_HOLE = re.compile(r"\{(?:c[\w.]*)?$")
_BRACKET = re.compile(r"[ \t]?[\[【(]|\{|\n")
_RANGE = re.compile(r"(c\d+)\.(\d+)\s?[-–]\s?(?:c\d+\.)?(\d+)")
MOST_OF_A_RANGE = 200

_END = re.compile(
    r"[.!?。！？](?P<tail>[*_\"”“»)\]』」]{0,8})(?:\s+|(?<=[。！？]))(?=(?P<next>[\"“„«¿¡*_\[(『「]*(?:`\S|#\d|[^\W_a-z])))"
)
_ITEM = re.compile(r"\s*(?:(?:(?:[-*+•]|\d{1,4}[.)]|>)\s+){1,4}(?:\[\d{1,3}\]\s+)?|\[\d{1,3}\]\s+)")
_QUOTED = re.compile(
    r"`[^`\n]{1,400}`|«[^«»\n]{1,600}»|“[^“”\n]{1,600}”|„[^„“”\n]{1,600}[“”]|(?<!\w)\"[^\"\n]{1,600}\"(?!\w)"
)
"""Code and quotations, in which no sentence ends."""
_HEADS = re.compile(r"#{1,6}(?:\s|$)")
"""`#104 and #112` at the start of a line are incidents."""
_HEADING = re.compile(r"[\s#]*(?:\d{1,3}[.)]\s+)?")
_RULE = re.compile(r"[|\s:-]+")
_COUNT_HEADS = frozenset({"#", "", "nr", "no", "n", "nº"})
_LETTER = re.compile(r"\w")
_LEADING_WORD = re.compile(r"[^\W\d_]+")
_DAY_AND_MONTH = re.compile(r"\d{1,2}\.\d{1,2}")
_LONGEST_SHORT_MONTH = 4
"""Characters of a month's short form, such as "Sept."."""


class UnitKind(StrEnum):
    """What a unit is; a `HEAD` is a table's first row."""

    PROSE = "prose"
    ITEM = "item"
    HEADING = "heading"
    ROW = "row"
    HEAD = "head"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Cited:
    """A citation: the place in the text that it was taken from, what it names, and its place as it was written."""

    at: int
    refs: tuple[str, ...]
    raw_at: int = 0


@dataclass(frozen=True, slots=True)
class CellAt:
    """A text that stands for a cell: a filled hole, or what a pointer shows. `end` is behind it."""

    start: int
    end: int
    ref: str
    filled: bool


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence, item, heading, table row or line of code: `text` is the answer's text from `start` to `end`.

    `raw` is its place in the answer as it was written, its citations included; `line` that of its whole line.
    """

    kind: UnitKind
    start: int
    end: int
    text: str
    block: int
    cited: tuple[Cited, ...] = ()
    cells: tuple[CellAt, ...] = ()
    raw: tuple[int, int] = (0, 0)
    line: tuple[int, int] = (0, 0)

    @property
    def refs(self) -> tuple[str, ...]:
        """What it cites, each once."""
        return tuple(dict.fromkeys(ref for citation in self.cited for ref in citation.refs))


@dataclass(slots=True)
class _Line:
    """A line of the written text as it grows. `raw` are places in the text with their places as written, `blank` tells
    that there is only white space so far."""

    start: int
    raw_start: int = 0
    raw_end: int = 0
    raw: list[tuple[int, int]] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    cited: list[Cited] = field(default_factory=list)
    cells: list[CellAt] = field(default_factory=list)
    blank: bool = True

    def put(self, text: str, at: int, raw_at: int) -> None:
        self.parts.append(text)
        self.raw.append((at, raw_at))
        self.blank = self.blank and not text.strip()

    def raw_place(self, at: int) -> int:
        """Where the character of a place was written; behind the line's last one its end."""
        if not self.raw or at >= self.raw[-1][0] + len(self.parts[-1]):
            return self.raw_end
        place, raw_at = self.raw[bisect_right(self.raw, (at, self.raw_end)) - 1]
        return raw_at + at - place

    @property
    def text(self) -> str:
        return "".join(self.parts).rstrip("\n")

    @property
    def ended(self) -> bool:
        """Whether what was written last ends in one full stop, which may stand inside a quotation."""
        last = "".join(self.parts[-2:])[-3:].rstrip('"”“»')
        return last.endswith(".") and not last.endswith("..")


_Put = Callable[[str, int], None]


class Markup:
    """Reads an answer in deltas of any size."""

    def __init__(self, cell_text: CellText) -> None:
        self._cell_text = cell_text
        self._held = ""
        self._read_before = 0
        self._written = 0
        self._line = _Line(0)
        self._blocks = _Blocks()

    @property
    def block(self) -> int:
        """The number of the block that the next line belongs to, if it opens no other."""
        return self._blocks.number

    def add(self, delta: str) -> tuple[str, list[Unit]]:
        """What can be written now, and the units that have ended."""
        self._held += delta
        return self._read(whole=False)

    def end(self) -> tuple[str, list[Unit]]:
        """What is left."""
        written, units = self._read(whole=True)
        self._line.raw_end = self._read_before
        units.extend(self._blocks.line(self._line))
        self._line = _Line(self._written, self._read_before)
        return written, units

    def _read(self, *, whole: bool) -> tuple[str, list[Unit]]:
        out: list[str] = []
        units: list[Unit] = []
        held, at = self._held, 0

        def put(text: str, place: int) -> None:
            if text:
                out.append(text)
                self._line.put(text, self._written, self._read_before + place)
                self._written += len(text)

        while at < len(held):
            opening = _BRACKET.search(held, at)
            if opening is None:
                stop = len(held) - (not whole and held[-1] in " \t")
                put(held[at:stop], at)
                at = stop
                break
            put(held[at : opening.start()], at)
            at = opening.start()
            if held[at] == "\n":
                self._line.raw_end = self._read_before + at
                put("\n", at)
                units.extend(self._blocks.line(self._line))
                at += 1
                self._line = _Line(self._written, self._read_before + at)
                continue
            bracket = opening.end() - 1
            taken = self._citation(held, at, bracket, whole, put)
            if taken is None:
                break
            at = taken
        self._held = held[at:]
        self._read_before += at
        return "".join(out), units

    def _citation(self, held: str, at: int, bracket: int, whole: bool, put: _Put) -> int | None:
        """The place behind a citation, or behind a bracket that is none; None where more text must come first."""
        if held[bracket] == "{":
            return self._hole(held, bracket, whole, put)
        window = held[bracket : bracket + _LONGEST_CITATION]
        pointer = _POINTER.match(window)
        if pointer is not None:
            put(held[at:bracket], at)
            self._line.cells.append(CellAt(self._written, self._written + len(pointer[1]), pointer[2], filled=False))
            put(pointer[1], bracket + 1)
            return bracket + pointer.end()
        citation = _CITATION.match(window)
        open_ended = not whole and len(window) < _LONGEST_CITATION
        if open_ended and _UNFINISHED_POINTER.match(window):
            return None
        if citation is not None:
            end = bracket + citation.end()
            if open_ended and end >= len(held):
                return None
            # `**a [c1.2]** b`: stars that close need no blank before them, those that open a word do.
            behind = held[end:].lstrip("*_")[:1]
            if open_ended and not behind and held[end] in "*_":
                return None
            opens = self._line.blank
            spaced = held[at] in " \t" and end < len(held) and (held[end] in '`"“„«' or behind.isalnum())
            if spaced:
                put(held[at], end)
            self._line.cited.append(
                Cited(self._written - spaced, expanded_refs(citation["refs"]), self._read_before + bracket)
            )
            doubled = held[end : end + 1] == "." and self._line.ended  # `27 Nov. [c1.3].`
            return end + (doubled or (opens and held[end : end + 1] in (" ", "\t")))
        if open_ended and _UNFINISHED_CITATION.match(window):
            return None
        put(held[at : bracket + 1], at)
        return bracket + 1

    def _hole(self, held: str, bracket: int, whole: bool, put: _Put) -> int | None:
        window = held[bracket : bracket + 100]
        hole = _HOLE.match(window)
        if hole is None:
            if not whole and len(window) < 100 and _UNFINISHED_HOLE.match(window):
                return None
            put("{", bracket)
            return bracket + 1
        value = self._cell_text(hole[1])
        shown = hole[0] if value is None else value
        self._line.cells.append(CellAt(self._written, self._written + len(shown), hole[1], filled=True))
        put(shown, bracket)
        return bracket + hole.end()


def is_citation(text: str) -> bool:
    """Whether `text` is one citation and nothing else: `[c1.3, c2]`."""
    return _CITATION.fullmatch(text) is not None


def expanded_refs(found: str) -> tuple[str, ...]:
    """`c1.3-5, c2` as `c1.3`, `c1.4`, `c1.5`, `c2`."""
    refs: list[str] = []
    for part in re.split(r"\s?[,;]\s?", found):
        span = _RANGE.fullmatch(part)
        if span is None:
            refs.append(part)
            continue
        first, last = int(span[2]), int(span[3])
        refs.extend(f"{span[1]}.{number}" for number in range(first, min(last, first + MOST_OF_A_RANGE) + 1))
    return tuple(refs)


class _Blocks:
    """Cuts lines into units; remembers what a later line needs: the block, an open fence, a table's columns."""

    def __init__(self) -> None:
        self.number = 0
        self._fence = ""
        self._table_line = 0
        self._heads: list[str] = []
        self._counter = 0

    def line(self, line: _Line) -> list[Unit]:
        text = line.text
        bare = text.strip()
        if self._fence:
            if bare.startswith(self._fence):
                self._fence = ""
                return []
            return self._units(line, text, UnitKind.CODE, [self._span(text)]) if bare else []
        if bare.startswith(("```", "~~~")):
            self._fence = bare[:3]
            return []
        if not bare and line.cited:
            return self._units(line, text, UnitKind.PROSE, [(0, 0)])
        if not bare:
            self.number += 1
            self._table_line = 0
            return []
        if bare.startswith("|"):
            return self._row(line, text)
        self._table_line = 0
        if _HEADS.match(bare):
            self.number += 1
            start = _HEADING.match(text).end()  # type: ignore[union-attr]
            return self._units(line, text, UnitKind.HEADING, [(start, len(text.rstrip()))])
        item = _ITEM.match(text)
        self.number += item is not None
        kind = UnitKind.ITEM if item else UnitKind.PROSE
        return self._units(line, text, kind, sentence_spans(text, item.end() if item else self._span(text)[0]))

    @staticmethod
    def _span(text: str) -> tuple[int, int]:
        return len(text) - len(text.lstrip()), len(text.rstrip())

    def _row(self, line: _Line, text: str) -> list[Unit]:
        start, end = self._span(text)
        bare = text[start:end]
        if _RULE.fullmatch(bare) and self._table_line:
            return []
        self._table_line += 1
        inner = start + 1
        stop = end - (bare.endswith("|") and len(bare) > 1)
        cells = text[inner:stop].split("|")
        if self._table_line == 1:
            self._heads = [fold(cell).strip("*. \u200b") for cell in cells]
            return self._units(line, text, UnitKind.HEAD, [(inner, stop)])
        counted = len(cells) > 1 and (self._heads[0] in _COUNT_HEADS or cells[0].strip("* \t").startswith("["))
        first = cells[0].strip("* \t")
        number = first.strip("[]. ")
        if counted and number.isdigit():
            bracketed = first.startswith("[")
            if bracketed or int(number) in (self._table_line - 1, self._counter + 1):
                self._counter = int(number)
                inner += len(cells[0]) + 1
        return self._units(line, text, UnitKind.ROW, [(inner, stop)])

    def _units(self, line: _Line, text: str, kind: UnitKind, spans: list[tuple[int, int]]) -> list[Unit]:
        """Units of the spans of a line; each citation belongs to the sentence that it stands in or behind."""
        trimmed = [_trimmed(text, span) for span in spans or [(0, 0)]]
        starts = [start for start, _ in trimmed]
        cited: list[list[Cited]] = [[] for _ in trimmed]
        cells: list[list[CellAt]] = [[] for _ in trimmed]
        for citation in line.cited:
            cited[max(0, bisect_left(starts, citation.at - line.start) - 1)].append(citation)
        for cell in line.cells:
            cells[max(0, bisect_right(starts, cell.start - line.start) - 1)].append(cell)
        return [
            Unit(
                kind,
                line.start + start,
                line.start + end,
                text[start:end],
                self.number,
                tuple(cited[place]),
                tuple(cells[place]),
                (min(first, *(each.raw_at for each in cited[place])) if cited[place] else first, last),
                (line.raw_start, line.raw_end),
            )
            for place, (start, end) in enumerate(trimmed)
            for first, last in [(line.raw_place(line.start + start), line.raw_place(line.start + end))]
            if cited[place] or _LETTER.search(text, start, end)
        ]


def _trimmed(text: str, span: tuple[int, int]) -> tuple[int, int]:
    start, end = span
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def sentence_spans(text: str, start: int = 0) -> list[tuple[int, int]]:
    """The sentences of a line from `start` on."""
    spans: list[tuple[int, int]] = []
    quoted = [match.span() for match in _QUOTED.finditer(text, start)]
    for match in _END.finditer(text, start):
        if text[match.start()] == "." and _goes_on(text, start, match):
            continue
        around = bisect_left(quoted, (match.start(), 0)) - 1
        if around >= 0 and match.end("tail") < quoted[around][1]:
            continue
        spans.append((start, match.end("tail")))
        start = match.end()
    spans.append((start, len(text)))
    return [span for span in spans if text[span[0] : span[1]].strip()]


def _goes_on(text: str, start: int, match: re.Match[str]) -> bool:
    """A full stop that ends no sentence: of an abbreviation, of an ordinal (`am 27. November`), of a short month
    (`27. Nov. 18:20`) or of its number (`24.11. 18:20`), of an item's number."""
    before = text[max(start, match.start() - 24) : match.start()]
    word = before.split()[-1] if before.split() else ""
    word_alone = fold(word).strip('("“„«*')
    if word_alone in abbreviations() or (len(word_alone) == 1 and word_alone.islower() and word.islower()):
        return True
    following = _LEADING_WORD.match(text, match.end())
    if word_alone.isdigit() and len(word_alone) <= 2:
        return match.start() - start <= 2 or (following is not None and fold(following[0]) in months())
    short_month = word_alone in months() and len(word_alone) <= _LONGEST_SHORT_MONTH
    if short_month or _DAY_AND_MONTH.fullmatch(word_alone):
        after = text[match.end() : match.end() + 1]
        return after.isdigit() or after.islower()
    return False
