"""A query in a file: its text, and where each character of it stands in the file."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FoundQuery:
    """One query. `segments` are (index in the query, index in the file) of runs that stand alike in both, in order."""

    title: str
    kql: str
    segments: tuple[tuple[int, int], ...]

    def part(self, start: int, stop: int) -> FoundQuery:
        """The query that stands between two indexes of this one."""
        first = self.file_index(start)
        inside = ((index - start, place) for index, place in self.segments if start < index < stop)
        return FoundQuery(self.title, self.kql[start:stop], ((0, first), *inside))

    def file_index(self, index: int) -> int:
        """Where in the file the character at `index` of the query stands."""
        segment = self.segments[max(bisect_right(self.segments, (index, 1 << 62)) - 1, 0)]
        return segment[1] + index - segment[0]


@dataclass(frozen=True, slots=True)
class FilePlaces:
    """Lines and columns of one file, both from 1."""

    starts: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> FilePlaces:
        return cls((0, *(index + 1 for index, character in enumerate(text) if character == "\n")))

    def locate(self, query: FoundQuery, line: int, column: int) -> tuple[int, int]:
        """The place in the file of a place in the query."""
        lines = query.kql.split("\n")
        before = sum(len(each) + 1 for each in lines[: line - 1])
        index = query.file_index(before + column - 1)
        number = bisect_right(self.starts, index)
        return number, index - self.starts[number - 1] + 1


def matched_lines(value: str, text: str, start: int, stop: int) -> tuple[tuple[int, int], ...]:
    """Segments for a value whose lines stand in `text[start:stop]`, whatever indents, folds or quotes them there."""
    segments: list[tuple[int, int]] = []
    cursor, index = 0, start
    for line in text[start:stop].splitlines(keepends=True):
        written = line.strip().strip("\"'").strip()
        found = value.find(written, cursor) if written else -1
        if found >= 0:
            segments.append((found, index + line.index(written)))
            cursor = found + len(written)
        index += len(line)
    if not segments or segments[0][0] > 0:
        segments.insert(0, (0, start))
    return tuple(segments)
