"""How often a client may ask: ARM's token buckets and Sentinel's limits for five minutes.

The figures are the documented ones. Confined to the event loop, so it needs no lock; the clock is an argument so that
five minutes can be tested.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping

from sentinel_rag.workspace.serving.arm.answers import ArmError

WINDOW_S = 300.0
PER_WINDOW: Mapping[str, int] = {
    "GET incident alerts": 100,
    "GET incident entities": 100,
    "GET comments": 100,
    "GET bookmarks": 100,
    "GET incident bookmarks": 100,
    "GET relations": 100,
    "PUT incident": 75,
    "PUT comments": 75,
    "PUT bookmarks": 75,
    "PUT relations": 75,
}
"""Sentinel's limits by operation, in any five minutes. Other operations have ARM's buckets only."""

_READS = (250.0, 25.0)
_WRITES = (200.0, 10.0)


class RequestLimits:
    """Counts requests; `admit` refuses what is too much, in the service's words."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._taken: dict[str, deque[float]] = {operation: deque() for operation in PER_WINDOW}
        self._reads = _TokenBucket(*_READS, clock())
        self._writes = _TokenBucket(*_WRITES, clock())

    def admit(self, operation: str, *, writes: bool) -> dict[str, str]:
        """The rate headers of an admitted request. Raises ArmError 429 with Retry-After."""
        now = self._clock()
        bucket = self._writes if writes else self._reads
        remaining = bucket.take(now)
        if remaining is None:
            raise _throttled("The request rate of the subscription is over its limit.", bucket.wait_s)
        taken = self._taken.get(operation)
        if taken is not None:
            while taken and taken[0] <= now - WINDOW_S:
                taken.popleft()
            if len(taken) >= PER_WINDOW[operation]:
                allowed = f"{PER_WINDOW[operation]} requests in 5 minutes"
                raise _throttled(f"{operation} is limited to {allowed}.", taken[0] + WINDOW_S - now)
            taken.append(now)
        kind = "writes" if writes else "reads"
        return {f"x-ms-ratelimit-remaining-subscription-{kind}": str(remaining)}


class _TokenBucket:
    def __init__(self, size: float, refill_per_s: float, now: float) -> None:
        self._size = size
        self._refill = refill_per_s
        self._tokens = size
        self._at = now

    def take(self, now: float) -> int | None:
        """Whole tokens left after taking one; None if there is none."""
        self._tokens = min(self._size, self._tokens + (now - self._at) * self._refill)
        self._at = now
        if self._tokens < 1:
            return None
        self._tokens -= 1
        return int(self._tokens)

    @property
    def wait_s(self) -> float:
        """Seconds until there is a token."""
        return (1 - self._tokens) / self._refill


def _throttled(message: str, wait_s: float) -> ArmError:
    return ArmError(429, "TooManyRequests", message, headers={"retry-after": str(max(1, math.ceil(wait_s)))})
