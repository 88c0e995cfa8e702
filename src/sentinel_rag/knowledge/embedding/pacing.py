"""A pace for requests: so many tokens a minute, spread evenly, so that a first load does not run into the quota."""

from __future__ import annotations

_CHARACTERS_OF_A_TOKEN = 3.5
"""Of English and KQL; the service counts exactly, and says so with 429 where this was too hopeful."""


def estimated_tokens(texts: list[str]) -> int:
    """About how many tokens a request with these texts costs."""
    return max(1, round(sum(map(len, texts)) / _CHARACTERS_OF_A_TOKEN))


class Pace:
    """`tokens_per_minute` 0 sets no pace. A burst of one tenth of a minute's tokens goes at once."""

    def __init__(self, tokens_per_minute: int) -> None:
        self._rate = tokens_per_minute / 60.0
        self._burst_s = 6.0
        self._free_at = 0.0

    def wait(self, tokens: int, now: float) -> float:
        """Seconds to wait before a request of so many tokens, which counts as sent then. `now` in seconds of any clock
        that does not go back."""
        if self._rate <= 0:
            return 0.0
        self._free_at = max(self._free_at, now - self._burst_s)
        waiting = max(0.0, self._free_at - now)
        self._free_at += tokens / self._rate
        return waiting
