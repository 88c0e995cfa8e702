"""Answers kept for a while: one read for any number of callers that ask the same at the same time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio

K = TypeVar("K")
V = TypeVar("V")


class ReadCache(Generic[K, V]):
    """The last `most` answers, each for `lifetime_s` (None: as long as there is room). A failure is never kept."""

    def __init__(self, clock: Callable[[], float], *, lifetime_s: float | None = None, most: int = 256) -> None:
        self._clock = clock
        self._lifetime_s = lifetime_s
        self._most = most
        self._kept: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._reading = anyio.Lock()
        self._generation = 0

    async def get(self, key: K, read: Callable[[], Awaitable[V]]) -> V:
        """The kept answer for `key`, or that of `read`."""
        found = self._fresh(key)
        if found is not None:
            return found[1]
        async with self._reading:  # whoever waited here finds what the one before it has read
            found = self._fresh(key)
            if found is not None:
                return found[1]
            generation, asked_at = self._generation, self._clock()
            value = await read()
            if generation == self._generation:  # else it may be older than the write that cleared the cache
                self._kept[key] = (asked_at, value)
                while len(self._kept) > self._most:
                    self._kept.popitem(last=False)
            return value

    def clear(self) -> None:
        """Forget everything, answers that are being read included."""
        self._generation += 1
        self._kept.clear()

    def _fresh(self, key: K) -> tuple[float, V] | None:
        found = self._kept.get(key)
        if found is None or (self._lifetime_s is not None and self._clock() - found[0] >= self._lifetime_s):
            return None
        self._kept.move_to_end(key)
        return found
