"""How many refusals of one kind are recorded one by one.

Whoever can reach the port can be refused as often as they like. Beyond the budget refusals are counted, and the next
record carries the count, so that a flood can neither fill the disk nor go unseen.
"""

from __future__ import annotations

from collections.abc import Callable

BURST = 1_000.0
PER_SECOND = 20.0


class RecordBudget:
    """A token bucket over `seconds`, a clock that only goes forward."""

    def __init__(self, seconds: Callable[[], float], *, burst: float = BURST, per_second: float = PER_SECOND) -> None:
        self._seconds = seconds
        self._burst = burst
        self._per_second = per_second
        self._left = burst
        self._at = seconds()
        self._uncounted = 0

    def take(self) -> int | None:
        """None if this refusal is over the budget; else how many were since the last one that was not."""
        now = self._seconds()
        self._left = min(self._burst, self._left + (now - self._at) * self._per_second)
        self._at = now
        if self._left < 1:
            self._uncounted += 1
            return None
        self._left -= 1
        missed, self._uncounted = self._uncounted, 0
        return missed
