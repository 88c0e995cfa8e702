"""Small charts of characters: a sparkline of a trend, bars beside its rows, bars of counts by severity.

They repeat numbers that stand in the answer, checked there; nothing is counted here. Without Unicode they are ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sentinel_rag.contracts.evidence import Evidence

SPARKS = "▁▂▃▄▅▆▇█"
ASCII_SPARKS = "_.-=+*%#"
BAR = 20
MOST_SPARKS = 60
SEVERITIES = ("High", "Medium", "Low", "Informational")

_DAY_OR_TIME = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}.*)?")
_COUNTED = re.compile(r"(.*/by_severity)/([^/]+)")


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
    return [int(each) for each in counts] if all(each.isascii() and each.isdigit() for each in counts) else []


def with_bars(names: Sequence[str], rows: Sequence[Sequence[str]], *, plain: bool) -> tuple[list[str], list[list[str]]]:
    """A trend with a column of bars behind its counts; another table as it is."""
    counts = trend_of(names, rows)
    if not any(counts):
        return list(names), [list(row) for row in rows]
    top = max(counts)
    bars = [bar(count, top, plain=plain) for count in counts]
    return [*names[:2], "", *names[2:]], [[*row[:2], drawn, *row[2:]] for row, drawn in zip(rows, bars, strict=True)]


def severity_counts(evidence: Sequence[Evidence]) -> dict[str, dict[str, int]]:
    """What an answer counts by severity: `alerts`, `incidents`, or empty for one kind alone -> severity -> number."""
    found: dict[str, dict[str, int]] = {}
    for piece in evidence:
        match = _COUNTED.fullmatch(piece.pointer)
        if match and match[2] in SEVERITIES and isinstance(piece.value, int):
            kind = match[1].removesuffix("/by_severity").rpartition("/")[2]
            found.setdefault("" if kind == "summary" else kind, {})[match[2]] = piece.value
    return {kind: counts for kind, counts in found.items() if len(counts) > 1 and any(counts.values())}


def _part(value: int, top: int, length: int) -> int:
    return max(1, round(value / top * length)) if value > 0 and top > 0 else 0
