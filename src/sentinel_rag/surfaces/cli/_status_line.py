"""The line beside the spinner while a question is worked on: what happens, and for how long the question has run.

The time runs on between two progress lines, so that a wait for a slow model is not taken for a program that hangs. It
is drawn by rich, which asks for the line anew at each of its frames.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.text import Text  # noqa: TID253  # this module draws with rich, and is imported lazily

from sentinel_rag.contracts.evidence import Progress
from sentinel_rag.surfaces.cli._safe_text import safe_cell


class StatusLine:
    """A renderable whose words are the last progress line's. `clock` counts seconds from anywhere, never backwards."""

    def __init__(self, first: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # One tuple, replaced whole: rich draws in a thread of its own.
        self._last = (first, 0.0, clock())

    def show(self, progress: Progress) -> None:
        """A new line came. Its own time counts, as the agent measured it, and never goes back."""
        now = self._clock()
        self._last = (progress.text, max(progress.elapsed_s, self._elapsed(now)), now)

    def __rich__(self) -> Text:
        return Text(f"{safe_cell(self._last[0])} {self._elapsed(self._clock()):.1f} s")

    def _elapsed(self, now: float) -> float:
        _, elapsed_s, since = self._last
        return elapsed_s + (now - since)
