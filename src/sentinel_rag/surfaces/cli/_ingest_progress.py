"""How far an ingest is, on standard error: one line over and over on a terminal, a line now and then in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from sentinel_rag.surfaces.cli._safe_text import safe_cell

BAR = 24
EVERY_S = 10.0
"""Seconds between two lines where nobody watches a terminal."""


def progress_line(what: str, done: int, total: int | None, seconds: float, remaining_s: float | None) -> str:
    """`incidents of soc: [######------] 120 of 240, 12 a second, 10 s left`; as much of it as is known."""
    if total is None:
        return f"{safe_cell(what)}: looking for what is new or changed"
    share = 1.0 if total == 0 else min(1.0, done / total)
    filled = int(BAR * share)
    rate = f", {done / seconds:,.0f} a second" if done and seconds > 0 else ""
    left = "" if remaining_s is None else f", {_duration(remaining_s)} left"
    return f"{safe_cell(what)}: [{'#' * filled}{'-' * (BAR - filled)}] {done:,} of {total:,}{rate}{left}"


@contextmanager
def shown(
    *, quiet: bool, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[str], None]]:
    """A function that shows a line of progress, and leaves nothing of it on a terminal at the end. Nothing with
    `quiet`."""
    out = sys.stderr if stream is None else stream
    terminal = out.isatty()
    last = -EVERY_S

    def show(line: str) -> None:
        nonlocal last
        if quiet:
            return
        if terminal:
            print(f"\r\x1b[K{line}", end="", file=out, flush=True)
        else:
            now = clock()
            if now - last >= EVERY_S:
                last = now
                print(line, file=out, flush=True)

    try:
        yield show
    finally:
        if terminal and not quiet:
            print("\r\x1b[K", end="", file=out, flush=True)


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
