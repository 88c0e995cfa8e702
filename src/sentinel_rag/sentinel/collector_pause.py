"""The garbage collector left out while a large answer is decoded: it would walk the rows so far again and again.

Nothing that a decoder makes is garbage before it is done, and it is done in a fraction of a second. Several may decode
at once; the last one to leave lets the collector in again.
"""

from __future__ import annotations

import gc
import threading
from types import TracebackType


class CollectorPause:
    """A context manager for any thread, shared by all who pause."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._was_on = False

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._was_on = gc.isenabled()
                gc.disable()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._was_on:
                gc.enable()


collector_pause = CollectorPause()
