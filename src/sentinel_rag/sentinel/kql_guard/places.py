"""From a parser's offsets to what an editor shows: lines and columns of characters, counted from 1."""

from __future__ import annotations

from bisect import bisect_right


class TextPlaces:
    """The lines of one text. Offsets are UTF-16 code units, as in Microsoft's parser; the answers are characters."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(index + 1 for index, character in enumerate(text) if character == "\n")]
        # Offsets of the second half of each character that UTF-16 writes as two units.
        self._second_halves: list[int] = []
        seen = 0
        for index, character in enumerate(text):
            if character > "\uffff":
                seen += 1
                self._second_halves.append(index + seen)
        self._characters = len(text)

    def character(self, offset: int) -> int:
        """The index in the text of the character at `offset`, at most its length."""
        return min(max(offset, 0) - bisect_right(self._second_halves, offset), self._characters)

    def locate(self, start: int, length: int) -> tuple[int, int, int]:
        """(line, column, length in characters)."""
        first, after = self.character(start), self.character(start + length)
        line = bisect_right(self._starts, first)
        return line, first - self._starts[line - 1] + 1, after - first
