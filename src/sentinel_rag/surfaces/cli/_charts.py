"""Small charts of characters: a sparkline of a trend, bars beside counts, marks on a line of time.

They repeat numbers that stand in the answer, checked there; nothing is counted here. Without Unicode they are ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from sentinel_rag.contracts.evidence import Picture, Table

SPARKS = "▁▂▃▄▅▆▇█"
ASCII_SPARKS = "_.-=+*%#"
BAR = 20
MOST_SPARKS = 60

_DAY_OR_TIME = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}.*)?")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}")


def sparkline(values: Sequence[int], *, plain: bool, most: int = MOST_SPARKS) -> str:
    """One character a value, from 0 to the highest; with more than `most` values, one for the peak of some each."""
    step = -(-len(values) // most)
    peaks = [max(values[start : start + step]) for start in range(0, len(values), step)] if step else []
    sparks, top = ASCII_SPARKS if plain else SPARKS, max(peaks, default=0)
    return "".join(sparks[_part(value, top, len(sparks) - 1)] for value in peaks)


def bar(value: int, top: int, *, plain: bool, length: int = BAR) -> str:
    """A bar of at most `length` characters, at least one for what is not 0."""
    return ("#" if plain else "█") * _part(value, top, length)


def trend_of(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """The numbers of a trend: the second column, where the first holds days or times; empty for another table."""
    if len(names) < 2 or len(rows) < 2 or not all(_DAY_OR_TIME.fullmatch(row[0]) for row in rows):
        return []
    counts = [row[1] for row in rows]
    return [int(each) for each in counts] if all(map(_is_count, counts)) else []


def with_picture(
    table: Table, names: list[str], rows: list[list[str]], *, plain: bool
) -> tuple[list[str], list[list[str]]]:
    """The cells of a table with a column that draws them, behind the one that it draws; as they are where nothing is
    to be drawn."""
    if table.picture is Picture.TIMES:
        return _with_times(names, rows, plain=plain)
    if trend_of(names, rows):
        at = 1
    elif table.picture in (Picture.RANKING, Picture.SHARE):
        at = next((at for at in range(len(names)) if at and rows and all(_is_count(row[at]) for row in rows)), 0)
    else:
        at = 0
    counts = [int(row[at]) for row in rows] if at else []
    if not any(counts):
        return names, rows
    whole = max(counts) if table.picture is not Picture.SHARE else sum(counts)
    drawn = [bar(count, whole, plain=plain) for count in counts]
    if table.picture is Picture.SHARE:
        drawn = [f"{each:{BAR}} {round(100 * count / whole):3} %" for each, count in zip(drawn, counts, strict=True)]
    return _inserted(names, rows, at + 1, drawn)


def _with_times(names: list[str], rows: list[list[str]], *, plain: bool) -> tuple[list[str], list[list[str]]]:
    """Each row with a mark at its place between the first moment and the last."""
    at = next((at for at in range(len(names)) if rows and all(_MOMENT.match(row[at]) for row in rows)), None)
    if at is None or len(rows) < 2:
        return names, rows
    moments = [datetime.fromisoformat(row[at][:19]) for row in rows]
    first, length = min(moments), (max(moments) - min(moments)).total_seconds() or 1.0
    places = [round((each - first).total_seconds() / length * (BAR - 1)) for each in moments]
    line, mark = (".", "o") if plain else ("·", "●")
    return _inserted(names, rows, at + 1, [line * place + mark + line * (BAR - 1 - place) for place in places])


def _inserted(
    names: list[str], rows: list[list[str]], at: int, drawn: Sequence[str]
) -> tuple[list[str], list[list[str]]]:
    told = [[*row[:at], each, *row[at:]] for row, each in zip(rows, drawn, strict=True)]
    return [*names[:at], "", *names[at:]], told


def _is_count(cell: str) -> bool:
    return cell.isascii() and cell.isdigit()


def _part(value: int, top: int, length: int) -> int:
    return max(1, round(value / top * length)) if value > 0 and top > 0 else 0
