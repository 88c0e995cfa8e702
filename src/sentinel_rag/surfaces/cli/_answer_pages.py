"""An answer in a window that is lower than it: its beginning and what stands below it, and the rest page by page.

Who asks at night reads the first lines and where they come from; a hundred rows would push both out of the window.
Nothing is left out where no window is: pipes and `ask` get the whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console  # noqa: TID253  # draws with rich, and is imported lazily
from rich.text import Text  # noqa: TID253  # as above

from sentinel_rag.contracts.evidence import Answer
from sentinel_rag.surfaces.cli._render import Display, Line, body_lines, closing_lines, detail_lines
from sentinel_rag.surfaces.cli._tables import TITLE

FEWEST_LINES = 8
"""Of an answer's body, however much stands below it."""
_AROUND = 4
"""Lines of a window that are no answer's: the question, the note of what is left, an empty one, the prompt."""
_TOO_FEW = 2
"""Lines that are not worth a page of their own; the question may leave the window for them."""


class AnswerPages:
    """The lines of an answer that were not shown yet: those that did not fit, then its details."""

    def __init__(self, rest: Sequence[Line] = (), details: Sequence[Line] = ()) -> None:
        self._rest = list(rest)
        self._details = list(details)

    @classmethod
    def begun(cls, target: Console, answer: Answer, how: Display) -> AnswerPages:
        """Print as much of the answer as the window holds, and what stands below it whole."""
        body = list(body_lines(target, answer, how))
        below = list(closing_lines(target, answer, how))
        details = list(detail_lines(target, answer, how))
        if how.whole:
            body, details = [*body, *details], []
        room = max(FEWEST_LINES, target.height - _AROUND - len(below))
        room = _before_a_heading(body, room)
        pages = cls(body[room:] if len(body) > room + _TOO_FEW else (), details)
        _print(target, body[: len(body) - len(pages._rest)])
        pages._tell_rest(target)
        _print(target, below)
        return pages

    def print_next(self, target: Console) -> None:
        """Print the next lines; a table that goes on has its columns named again."""
        if not self._rest:
            self._rest, self._details = self._details, []
        if not self._rest:
            target.print(Text("There is no more of the last answer."))
            return
        heading = [Line(each) for each in self._rest[0].heading]
        room = max(FEWEST_LINES, target.height - _AROUND - len(heading))
        room += _TOO_FEW if len(self._rest) <= room + _TOO_FEW else 0
        page, self._rest = self._rest[:room], self._rest[room:]
        _print(target, [*heading, *page])
        self._tell_rest(target)

    def _tell_rest(self, target: Console) -> None:
        left = len(self._rest)
        if left:
            target.print(Text(f"... {left} more line{'' if left == 1 else 's'}: /more", style="bold"))


def _before_a_heading(body: Sequence[Line], room: int) -> int:
    """How many lines are shown where `room` have place: no heading of a table without one of its rows."""
    heading = body[room].heading if room < len(body) else ()
    if not heading or body[room - 1].text is not heading[-1]:
        return room
    room -= len(heading)
    while room and (body[room - 1].text.style == TITLE or not body[room - 1].text.plain.strip()):
        room -= 1
    return room


def _print(target: Console, lines: Sequence[Line]) -> None:
    for line in lines:
        target.print(line.text, soft_wrap=True)
