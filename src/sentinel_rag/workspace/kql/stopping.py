"""Stopping a query that runs: at its deadline, or because nobody waits for the answer any more.

`StopSignal` is what a caller holds; `watched` stands around everything that a cursor does for one query. DuckDB forgets
an interrupt that arrives between two statements, so a watch that has begun to stop repeats it until the query has left.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING

from sentinel_rag.workspace.kql.errors import KqlMemoryError

if TYPE_CHECKING:
    import duckdb

_REPEATED_EVERY_S = 0.02


class StopReason(Enum):
    """Why a query was stopped."""

    DEADLINE = "deadline"
    CANCELLED = "cancelled"


class StopSignal:
    """Asks one query to stop, from any thread, before or while it runs. Asking twice, or too late, does nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._given = False
        self._listener: Callable[[], None] | None = None

    @property
    def given(self) -> bool:
        return self._given

    def give(self) -> None:
        with self._lock:
            self._given = True
            listener = self._listener
        if listener is not None:
            listener()

    @contextmanager
    def heard_by(self, listener: Callable[[], None]) -> Iterator[None]:
        """Call `listener`, once and at once if the signal was given already, for the length of the block."""
        with self._lock:
            given = self._given
            self._listener = listener
        if given:
            listener()
        try:
            yield
        finally:
            with self._lock:
                self._listener = None


class Watch:
    """What happened to the watched query; `reason` stays None for one that was left alone."""

    def __init__(self) -> None:
        self.reason: StopReason | None = None


@contextmanager
def watched(cursor: duckdb.DuckDBPyConnection, seconds: float, signal: StopSignal) -> Iterator[Watch]:
    """Interrupt whatever `cursor` does once `seconds` have passed or `signal` is given, until the block is left."""
    watch = Watch()
    wake = threading.Event()
    left = threading.Event()

    def wait_and_stop() -> None:
        woken = wake.wait(seconds)
        if left.is_set():
            return
        watch.reason = StopReason.CANCELLED if woken else StopReason.DEADLINE
        cursor.interrupt()
        while not left.wait(_REPEATED_EVERY_S):
            cursor.interrupt()

    thread = threading.Thread(target=wait_and_stop, name="query-watch", daemon=True)
    try:
        thread.start()
    except RuntimeError as error:  # there is no memory left for the thread's stack: nothing could stop the query
        raise KqlMemoryError from error
    try:
        with signal.heard_by(wake.set):
            yield watch
    finally:
        left.set()
        wake.set()
        thread.join()
