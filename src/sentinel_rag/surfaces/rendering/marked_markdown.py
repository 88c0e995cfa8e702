"""Where the marks of an answer lie among the tokens of its Markdown.

A parser says of an inline token which lines it stands on, and no place in them. So its text is looked for in its lines,
piece by piece. What is not found (an image, a code span over two lines) stays as it is: a mark may be missing, a
character never.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from sentinel_rag.surfaces.rendering.marks import Marked, Note

if TYPE_CHECKING:
    from markdown_it.token import Token

SEEN = "seen"
"""Key of a token's `meta`: the text is a literal that stands so to what is cited."""
NOTE = "note"
"""Type of a token that is a note, and the key of its `meta` that holds it."""
IN_ROW, BELOW = "in_row", "below"
"""Keys of a note's `meta`: its reason does not fit there, or it stands there alone, below the table."""

_WRITTEN = ("text", "code_inline", "text_special")
_BREAKS = ("softbreak", "hardbreak")


@dataclass(frozen=True, slots=True)
class _Placed:
    """A block of text: where it begins, and of each child of an inline token its place, None if it is not known."""

    start: int
    places: Sequence[int | None] = ()


def with_marks(tokens: Sequence[Token], marked: Marked) -> list[Token]:
    """The tokens of `marked.text` with its literals as texts of their own and its notes in their places."""
    return list(_Setting(marked, _placed(tokens, marked.text)).tokens(tokens))


class _Setting:
    def __init__(self, marked: Marked, placed: dict[int, _Placed]) -> None:
        self._marked = marked
        self._placed = placed
        starts = [each.start for each in placed.values()]
        # Behind the last word of a block stands what comes before the next one begins.
        self._following = dict(zip(placed, (*starts[1:], len(marked.text)), strict=False))
        self._notes = list(marked.notes)
        self._told = 0
        self._of_rows: list[Note] = []

    def tokens(self, tokens: Sequence[Token]) -> Iterator[Token]:
        in_table = False
        for number, token in enumerate(tokens):
            in_table = in_table or token.type == "table_open"
            if token.type == "inline":
                yield token.copy(children=[*self._children(number, token, in_table)])
            else:
                yield token
            if number in self._placed and token.type != "inline":
                yield from _paragraph([_note(note) for note in self._due(self._following[number])])
            if token.type == "table_close":
                in_table = False
                yield from _paragraph([_note(note, BELOW) for note in self._of_rows])
                self._of_rows = []
        yield from _paragraph([_note(note) for note in self._due(len(self._marked.text))])

    def _children(self, number: int, token: Token, in_table: bool) -> Iterator[Token]:
        placed = self._placed[number]
        for child, place in zip(token.children or (), placed.places, strict=True):
            if place is None:
                yield child
                continue
            yield from self._due_here(place, in_table)
            if child.type in _BREAKS:
                yield child
                continue
            end = place + len(_written(child))
            if child.type == "text_special":
                [(_, seen), *_] = self._marked.pieces(place, end)
                yield child.copy(type="text", meta={SEEN: seen} if seen else {})
                continue
            while place < end:
                until = self._notes[self._told].at if self._told < len(self._notes) else end
                until = until if place < until < end else end
                for text, seen in self._marked.pieces(place, until):
                    yield child.copy(content=text, meta={SEEN: seen} if seen else {})
                place = until
                if place < end:
                    yield from self._due_here(place, in_table)
        yield from self._due_here(self._following[number], in_table)

    def _due_here(self, until: int, in_table: bool) -> Iterator[Token]:
        for note in self._due(until):
            yield _note(note, *(IN_ROW,) * in_table)
            if in_table and note.sign:
                self._of_rows.append(note)

    def _due(self, until: int) -> list[Note]:
        begun = self._told
        while self._told < len(self._notes) and self._notes[self._told].at <= until:
            self._told += 1
        return self._notes[begun : self._told]


def _placed(tokens: Sequence[Token], text: str) -> dict[int, _Placed]:
    """By its number, each token that shows text itself."""
    lines = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    placed: dict[int, _Placed] = {}
    at = 0
    for number, token in enumerate(tokens):
        if token.type not in ("inline", "fence", "code_block"):
            continue
        first, last = token.map or (0, len(lines) - 1)
        at = max(at, lines[min(first, len(lines) - 1)])
        limit = lines[min(last, len(lines) - 1)]
        if token.type == "inline":
            said = token.content.split("\n")
            at = max(at, text.find(said[0], at, limit))
            places = list(_places(token.children or (), said[1:], text, at, limit))
            placed[number] = _Placed(at, places)
            pairs = zip(token.children or (), places, strict=True)
            at = max((at, *(place + len(_written(child)) for child, place in pairs if place is not None)))
        else:
            placed[number] = _Placed(at)
            at = max(at, limit)
    return placed


def _places(children: Sequence[Token], lines: list[str], text: str, at: int, limit: int) -> Iterator[int | None]:
    for child in children:
        place = text.find(_written(child), at, limit) if child.type in _WRITTEN else -1
        if place >= 0:
            at = place + len(_written(child))
        elif child.type in _BREAKS and (place := text.find("\n", at, limit)) >= 0:
            at = max(place + 1, text.find(lines.pop(0), place, limit) if lines else 0)
        yield place if place >= 0 else None


def _written(child: Token) -> str:
    return child.markup if child.type == "text_special" else child.content


def _note(note: Note, *where: str) -> Token:
    from markdown_it.token import Token

    meta: dict[str, Any] = {NOTE: note, **dict.fromkeys(where, True)}
    return Token(NOTE, "", 0, meta=meta)


def _paragraph(notes: list[Token]) -> Iterator[Token]:
    """The notes as a paragraph, each on a line; nothing where there are none."""
    from markdown_it.token import Token

    if notes:
        lines = [token for note in notes for token in (Token("hardbreak", "br", 0), note)]
        yield Token("paragraph_open", "p", 1, block=True)
        yield Token("inline", "", 0, children=lines[1:], block=True)
        yield Token("paragraph_close", "p", -1, block=True)
