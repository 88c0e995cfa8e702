"""How many queries run and wait at once, and their end when the client is gone: the service's rules for one user.

Five run, two hundred wait, at most three minutes; what comes beyond is refused. The work is blocking and runs in a
thread; it is handed a `StopSignal`, which is given as soon as nobody waits for the answer any more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import anyio
from anyio import CapacityLimiter, to_thread

from sentinel_rag.workspace.kql.stopping import StopSignal

CONCURRENT_QUERIES = 5
LONGEST_QUEUE = 200
LONGEST_WAIT_S = 180.0

_T = TypeVar("_T")


class TooManyQueriesError(Exception):
    """There is no place for one more query; the text says why."""


class ClientGoneError(Exception):
    """The client closed its connection; its query was taken from the queue, or told to stop and has ended."""


@dataclass(slots=True)
class SlotCounts:
    """Queries inside now, and the number of those that found no place or lost their client."""

    running: int = 0
    waiting: int = 0
    refused: int = 0
    abandoned: int = 0


class QuerySlots:
    """Places for queries. For one event loop; `counts` is read and written there only."""

    def __init__(
        self,
        *,
        running: int = CONCURRENT_QUERIES,
        waiting: int = LONGEST_QUEUE,
        longest_wait_s: float = LONGEST_WAIT_S,
    ) -> None:
        self._most_running = running
        self._most_waiting = waiting
        self._longest_wait_s = longest_wait_s
        self._free = anyio.Semaphore(running)
        self._threads = CapacityLimiter(running)
        self.counts = SlotCounts()

    async def run(self, work: Callable[[StopSignal], _T], gone: Callable[[], Awaitable[object]]) -> _T:
        """`work` in a thread once there is a place for it; `gone` returns when the client has left.

        Raises TooManyQueriesError and ClientGoneError. What `work` raises comes out as it is.
        """
        counts = self.counts
        if counts.running + counts.waiting >= self._most_running + self._most_waiting:
            counts.refused += 1
            raise TooManyQueriesError(
                f"Too many queries at once: {self._most_running} run and {self._most_waiting} wait."
            )
        signal = StopSignal()
        left = False
        results: list[_T] = []
        failures: list[Exception] = []

        async def leave_with_client() -> None:
            nonlocal left
            try:
                await gone()
                left = True
            finally:
                signal.give()  # also when this call is cancelled: its thread would run on and be waited for
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(leave_with_client)
            try:
                results.append(await self._in_turn(work, signal))
            except Exception as error:  # carried past the task group, which would wrap it
                failures.append(error)
            group.cancel_scope.cancel()
        if left:
            counts.abandoned += 1
            raise ClientGoneError
        for failure in failures:
            raise failure
        return results[0]

    async def _in_turn(self, work: Callable[[StopSignal], _T], signal: StopSignal) -> _T:
        self.counts.waiting += 1
        try:
            with anyio.move_on_after(self._longest_wait_s) as wait:
                await self._free.acquire()
        finally:
            self.counts.waiting -= 1
        if wait.cancelled_caught:
            self.counts.refused += 1
            raise TooManyQueriesError(f"The query waited {self._longest_wait_s:g} seconds for its turn.")
        self.counts.running += 1
        try:
            return await to_thread.run_sync(work, signal, limiter=self._threads)
        finally:
            self.counts.running -= 1
            self._free.release()
