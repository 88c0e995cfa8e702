"""How many calls run at tool servers at once: in all, and for one key, so that no key can take every place."""

from __future__ import annotations

from collections import Counter

from sentinel_rag.gateway.limits import Limits


class InFlight:
    """Belongs to one event loop, so a place is taken without waiting and without a lock."""

    def __init__(self, limits: Limits) -> None:
        self._in_all = limits.calls_in_flight
        self._per_key = limits.calls_in_flight_per_key
        self._calls = 0
        self._of_key: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._calls

    def refusal(self, key_id: str) -> str | None:
        """Why one more call of the key may not run now, in one sentence; None if it may."""
        if self._calls >= self._in_all:
            return "Too many calls are running; try again in a moment."
        if self._of_key[key_id] >= self._per_key:
            return "Too many calls of this key are running; try again in a moment."
        return None

    def enter(self, key_id: str) -> None:
        """Take a place for one call. Ask `refusal` first, without an await between."""
        self._calls += 1
        self._of_key[key_id] += 1

    def leave(self, key_id: str) -> None:
        """Give it back."""
        self._calls -= 1
        self._of_key[key_id] -= 1
        if not self._of_key[key_id]:
            del self._of_key[key_id]
