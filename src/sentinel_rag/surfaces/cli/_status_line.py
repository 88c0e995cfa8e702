"""What the terminal shows while a question is answered, and keys that are pressed meanwhile."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult  # noqa: TID253  # draws with rich, and is imported lazily
from rich.spinner import Spinner  # noqa: TID253  # as above
from rich.text import Text  # noqa: TID253  # as above

from sentinel_rag.contracts.evidence import Progress, ToolTrace, Written
from sentinel_rag.surfaces.cli._marked_text import text_lines
from sentinel_rag.surfaces.rendering.visible import safe_cell


@contextmanager
def quiet_keys() -> Iterator[None]:
    """No echo of standard input within the block, where it is a terminal; Ctrl-C goes on to interrupt."""
    if not _in_front():
        yield
        return
    import termios

    before = termios.tcgetattr(sys.stdin)
    silent = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
    termios.tcsetattr(sys.stdin, termios.TCSANOW, silent)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


def _in_front() -> bool:
    """Whether standard input is our terminal to change: a command in the background would be stopped for it."""
    try:
        return sys.stdin.isatty() and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        return False


MOST_CALLS = 6
FEWEST_LINES = 3
"""Of the text, however low the window is."""
STATES = {"running": ("..", ""), "ok": ("ok", "green"), "denied": ("no", "bold red"), "failed": ("!!", "bold red")}


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
        words = f"{safe_cell(self._last[0])} {self._elapsed(self._clock()):.1f} s"
        return Text(words, no_wrap=True, overflow="ellipsis")

    def _elapsed(self, now: float) -> float:
        _, elapsed_s, since = self._last
        return elapsed_s + (now - since)


@dataclass(frozen=True, slots=True)
class _Call:
    trace: ToolTrace
    since: float


class TurnDisplay:
    """The calls of a turn, the last ones whole, above its status line; with `shows_text` what is written so far too."""

    def __init__(self, first: str, *, shows_text: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shows_text = shows_text
        self._written = Written()
        self._drawn: tuple[object, list[Text]] = (None, [])
        self._line = StatusLine(first, clock=clock)
        self._spinner = Spinner("dots", self._line)
        self._plain_spinner = Spinner("line", self._line)
        self._calls: dict[str, _Call] = {}

    def show(self, progress: Progress) -> None:
        """A progress line came; a call that it tells of starts or ends with it, text is written or taken back."""
        self._line.show(progress)
        self._written.hear(progress)
        if progress.tool is not None:
            before = self._calls.get(progress.tool.call_id)
            since = self._clock() if before is None else before.since
            # Replaced whole, for the thread that draws.
            self._calls = {**self._calls, progress.tool.call_id: _Call(progress.tool, since)}

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        calls = list(self._calls.values())
        if len(calls) > MOST_CALLS:
            yield Text(f"  {len(calls) - MOST_CALLS} earlier calls", style="dim")
        for call in calls[-MOST_CALLS:]:
            yield self._told(call)
        if self._shows_text:
            yield from self._text(console, options, below=min(len(calls), MOST_CALLS + 1))
        yield self._plain_spinner if options.ascii_only else self._spinner

    def _text(self, console: Console, options: ConsoleOptions, *, below: int) -> RenderResult:
        """The last lines of the text that fit beside `below` lines of calls and the status line."""
        text, sentences = self._written.text, self._written.sentences
        drawn = (text, sentences, options.max_width)
        if drawn != self._drawn[0]:
            # A reason that came in between would push down what a person reads; it stands in the answer.
            lines = list(text_lines(console, text, sentences, reasons=False)) if text else []
            self._drawn = (drawn, lines)
        lines = self._drawn[1]
        room = max(FEWEST_LINES, console.height - below - 3)
        if len(lines) > room:
            yield Text(f"  ... {len(lines) - room} lines above", style="dim")
        yield from lines[-room:]

    def _told(self, call: _Call) -> Text:
        trace = call.trace
        mark, style = STATES.get(trace.status, ("..", ""))
        seconds = self._clock() - call.since if trace.status == "running" else trace.duration_ms / 1e3
        coverage = trace.coverage or {}
        rows = f"  {coverage['rows_returned']} of {coverage['rows_total']} rows" if "rows_total" in coverage else ""
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f"  {mark} ", style=style)
        line.append(f"{safe_cell(trace.name)}  {seconds:.1f} s{rows}")
        if trace.status in ("denied", "failed"):
            line.append(f"  {trace.status}")
        return line
