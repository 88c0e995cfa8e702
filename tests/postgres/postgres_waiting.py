"""Waiting for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def until(true: Callable[[], Any]) -> Any:
    """What it returns, as soon as that is true."""
    deadline = time.monotonic() + 60
    while not (found := true()):
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)
    return found
