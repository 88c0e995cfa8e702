"""Our own count of Sentinel's limits for five minutes, so that a limit is met with a sentence and not with a refusal.

The limits are documented per subscription; going over them costs other tools of the same subscription their share. A
sliding window is never over the limit in any five minutes, whichever way the service counts.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from enum import StrEnum

from sentinel_rag.sentinel.error_bodies import throttled
from sentinel_rag.sentinel.failures import QueryFailedError

WINDOW_S = 300.0


class RestOperation(StrEnum):
    """What is counted; the value is how a person would name it."""

    LIST_INCIDENTS = "list incidents"
    GET_INCIDENT = "read incidents"
    PUT_INCIDENT = "update incidents"
    GET_ALERTS = "read alerts of incidents"
    GET_ENTITIES = "read entities of incidents"
    GET_COMMENTS = "read comments"
    PUT_COMMENT = "write comments"
    GET_BOOKMARKS = "read bookmarks"
    GET_RELATIONS = "read relations"


LIMITS: Mapping[RestOperation, int] = {
    RestOperation.GET_ALERTS: 100,
    RestOperation.GET_ENTITIES: 100,
    RestOperation.GET_COMMENTS: 100,
    RestOperation.GET_BOOKMARKS: 100,
    RestOperation.GET_RELATIONS: 100,
    RestOperation.PUT_INCIDENT: 75,
    RestOperation.PUT_COMMENT: 75,
}
"""Requests in five minutes and a subscription; an operation that is not here has no limit of its own."""


class RateBuckets:
    """Counts the requests of one subscription. `share` is the part of each limit that may be used here, where another
    process uses the rest."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, share: float = 1.0) -> None:
        self._clock = clock
        self._limits = {operation: max(1, int(limit * share)) for operation, limit in LIMITS.items()}
        self._taken: dict[RestOperation, deque[float]] = {operation: deque() for operation in LIMITS}

    def take(self, operation: RestOperation) -> None:
        """Count one request. Raises QueryFailedError THROTTLED, with the time to wait, at the limit."""
        taken = self._taken.get(operation)
        if taken is None:
            return
        now = self._clock()
        while taken and taken[0] <= now - WINDOW_S:
            taken.popleft()
        if len(taken) >= self._limits[operation]:
            limit = f"{self._limits[operation]} requests in 5 minutes"
            wait_s = max(1.0, taken[0] + WINDOW_S - now)
            raise QueryFailedError(throttled(f"Microsoft Sentinel's limit to {operation} is {limit}: used up.", wait_s))
        taken.append(now)
