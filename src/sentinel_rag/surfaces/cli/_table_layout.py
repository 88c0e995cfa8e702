"""How a table fits a terminal: which columns stand side by side and how wide, and which go below their row.

Pure arithmetic over cell widths; `_tables` draws what is decided here. An id, a time or a name is never broken: only
prose folds, between its words, and what does not fit beside the rest is told on a line of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size  # noqa: TID253  # what a terminal gives each character; imported lazily, with rich

BETWEEN = 3
ONE_LINE_BETWEEN = 2
EMPTY = "-"
EDGES = 2
PROSE = 24
"""Cells that a column of sentences needs at least to be read."""
LEAST_CUT = 12
"""Cells that are left of a cut one at least."""
MOST_BELOW = 3
"""Columns told below a row; with more of them a list is easier to read."""

_STAY = frozenset({"severity", "status", "state", "alert", "title"})
_TIME_TAIL = re.compile(r"\d{4}-\d{2}-\d{2}( (?:00:00(?::00)? )?[A-Z]{2,5})")
"""Of a clock time only midnight, which means the day: any other in a heading would look like a mistake."""
_MOMENT = re.compile(r"\d{4}-(\d{2}-\d{2} \d{2}:\d{2})(?::\d{2})?( [A-Z]{2,5})?")
_CLOCK_TAIL = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}(?::\d{2})?( [A-Z]{2,5})")


@dataclass(frozen=True, slots=True)
class Layout:
    """`widths` of the columns (by number) that stand side by side, in order; `below` are told under each row."""

    widths: dict[int, int]
    below: tuple[int, ...] = ()


def layout(names: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Layout | None:
    """The layout in `width` cells, or None if only a list of `name: value` lines can hold it."""
    columns = [_Column(number, name, [row[number] for row in rows]) for number, name in enumerate(names)]
    if _needed(wide := {each.number: max(each.whole, cell_len(each.name)) for each in columns}) <= width:
        return Layout(wide)
    beside = list(columns)
    while (over := _needed({each.number: each.least for each in beside}) - width) > 0:
        movable = [each for each in beside if each.number > 1 and each.name.strip().lower() not in _STAY]
        if not movable:
            return None
        enough = [each for each in movable if each.least + BETWEEN >= over]
        gone = min(enough, key=lambda each: each.least) if enough else max(movable, key=lambda each: each.least)
        beside.remove(gone)
    below = tuple(each.number for each in columns if each not in beside)
    if len(below) > MOST_BELOW or (below and len(beside) < 2):
        return None
    return Layout(_shared_out(beside, width), below)


def shared_tail(cells: Sequence[str]) -> str:
    """What every time of a column ends in, such as ` UTC` or ` 00:00:00 UTC`: it can stand in the heading once."""
    for pattern in (_TIME_TAIL, _CLOCK_TAIL):
        found = {match[1] if (match := pattern.fullmatch(cell)) else "" for cell in cells}
        if len(found) == 1 and "" not in found:
            return found.pop()
    return ""


@dataclass(frozen=True, slots=True)
class OneLineEach:
    """A list of things with one line each: times to the minute, the longest column cut, the last columns left out."""

    names: Sequence[str]
    rows: Sequence[Sequence[str]]
    widths: dict[int, int]
    """Of the columns (by number) that stand side by side, in order."""
    cut: bool
    """Whether a cell is shorter than it was."""
    left_out: tuple[str, ...]
    """Names of columns that are not shown."""


def one_line_each(names: Sequence[str], rows: Sequence[Sequence[str]], width: int, sign: str) -> OneLineEach | None:
    """The rows with one line each in `width` cells, cut cells with `sign` at their end; None if that cannot be."""
    names, rows = _to_the_minute(names, rows)
    columns = [_Column(number, name, [row[number] for row in rows]) for number, name in enumerate(names)]
    longest = max(columns, key=lambda each: (each.whole, each.number))
    shown = list(columns)

    def room() -> int:
        rest = sum(each.most for each in shown if each is not longest)
        return width - EDGES - ONE_LINE_BETWEEN * (len(shown) - 1) - rest

    while room() < min(PROSE, longest.most):
        movable = [
            each for each in shown if each.number > 1 and each is not longest and each.name.strip().lower() not in _STAY
        ]
        if not movable:
            break
        shown.remove(movable[-1])
    if room() < min(LEAST_CUT, longest.most):
        return None
    least = min(longest.most, room())
    widths = {each.number: least if each is longest else each.most for each in shown}
    cut = longest.whole > least
    if cut:
        at = longest.number
        rows = [[*row[:at], _cut(row[at], least, sign), *row[at + 1 :]] for row in rows]
    left_out = tuple(each.name for each in columns if each not in shown)
    return OneLineEach(names, rows, widths, cut, left_out)


def _cut(cell: str, width: int, sign: str) -> str:
    if cell_len(cell) <= width:
        return cell
    kept = set_cell_size(cell, max(0, width - cell_len(sign)))
    return f"{kept.rstrip()}{sign}"


def _to_the_minute(names: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """Columns of moments of one year and zone as month, day, hour and minute; what they share is in the heading."""
    heads, told = list(names), [list(row) for row in rows]
    for number in range(len(heads)):
        found = [_MOMENT.fullmatch(row[number]) for row in told]
        shared = {(match.string[:4], match[2]) for match in found if match}
        if len(shared) != 1 or not all(match or row[number] == EMPTY for match, row in zip(found, told, strict=True)):
            continue
        _, zone = shared.pop()
        heads[number] += f" ({zone.strip()})" if zone else ""
        for match, row in zip(found, told, strict=True):
            row[number] = match[1] if match else row[number]
    return heads, told


class _Column:
    def __init__(self, number: int, name: str, cells: Sequence[str]) -> None:
        self.number, self.name = number, name
        self.whole = max(map(cell_len, cells), default=0)
        word = max((cell_len(word) for cell in cells for word in cell.split()), default=0)
        heading = max(map(cell_len, name.split()), default=0)
        self.prose = self.whole > PROSE and word < self.whole
        self.least = max(heading, min(self.whole, max(word, PROSE)) if self.prose else self.whole)
        self.most = max(self.whole, cell_len(name))


def _needed(widths: dict[int, int]) -> int:
    return sum(widths.values()) + BETWEEN * (len(widths) - 1) + EDGES


def _shared_out(columns: Sequence[_Column], width: int) -> dict[int, int]:
    """Each column its least, and what is left to those that want more, the most modest first."""
    widths = {each.number: each.least for each in columns}
    left = width - _needed(widths)
    wanting = sorted((each for each in columns if each.most > each.least), key=lambda each: each.most - each.least)
    for place, each in enumerate(wanting):
        more = min(each.most - each.least, left // (len(wanting) - place))
        widths[each.number] += more
        left -= more
    return widths
