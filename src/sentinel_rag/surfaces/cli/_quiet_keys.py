"""Keys that are pressed while the terminal draws: they wait for the next prompt instead of showing amid its lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


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
