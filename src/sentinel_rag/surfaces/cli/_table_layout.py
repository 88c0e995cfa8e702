"""How a table fits a terminal: which columns stand side by side and how wide, and which go below their row.

Pure arithmetic over cell widths; `_tables` draws what is decided here. An id, a time or a name is never broken: only
prose folds, between its words, and what does not fit beside the rest is told on a line of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len  # noqa: TID253  # what a terminal gives each character; imported lazily, with rich

BETWEEN = 3
EDGES = 2
PROSE = 24
"""Cells that a column of sentences needs at least to be read."""
MOST_BELOW = 3
"""Columns told below a row; with more of them a list is easier to read."""

_STAY = frozenset({"severity", "status", "state"})
_TIME_TAIL = re.compile(r"\d{4}-\d{2}-\d{2}( (?:\d{2}:\d{2}(?::\d{2})? )?[A-Z]{2,5})")
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
