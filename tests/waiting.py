"""How long a test waits for what should happen.

A test waits for an event and ends when it comes. The bound only ends a run that hangs, so it is far longer than the
slowest machine needs; a test of a deadline of the product sets that deadline instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")
WAIT_S = 300


def until(true: Callable[[], Found]) -> Found:
    """What it returns, as soon as that is true: for what another thread or process does and tells nobody."""
    end = time.monotonic() + WAIT_S
    while not (found := true()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)
    return found
