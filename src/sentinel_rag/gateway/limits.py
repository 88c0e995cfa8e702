"""The bounds of one gateway, and how often one key may call, and one key one tool.

What passes a bound is refused with its own status, never cut. A meter of calls is exact about the bound and a little
strict about the moment at which room returns: calls that lie close together are remembered as one entry, so that a
meter has at most `ENTRIES` of them. Meters live in the memory of one process; two gateways count apart.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

from sentinel_rag.gateway.policy.model import Rate

DEFAULT_KEY_RATE = Rate(calls=30_000, seconds=60.0)
"""Far above what people and agents ask; it stops a loop that has gone wild, and only for its own key."""


@dataclass(frozen=True, slots=True)
class GatewayLimits:
    """What one request, one key and all keys together may use.

    `body_bytes`: a request body (413). `body_seconds`: how long it may take to arrive (408). `url_bytes`: path and
    query (414). `header_count`, `header_bytes`: all headers, names and values (431). `tool_seconds`: a call of a tool
    whose policy names no `timeout_s` (504). `calls_in_flight`, `calls_in_flight_per_key`: calls at tool servers at once
    (503). `key_rate`: requests of a key that has no rate of its own (429). `sessions_per_key`: sessions that one
    key has used within a day, and as many more for each person's key that opens them (429). `approval_wait_s`: how long
    a call of an MCP client is held for the decision of an approval.
    """

    body_bytes: int = 1_000_000
    body_seconds: float = 10.0
    url_bytes: int = 8_192
    header_count: int = 100
    header_bytes: int = 32_768
    tool_seconds: float = 60.0
    calls_in_flight: int = 64
    calls_in_flight_per_key: int = 48
    key_rate: Rate | None = DEFAULT_KEY_RATE
    sessions_per_key: int = 20_000
    approval_wait_s: float = 300.0


ENTRIES = 64
"""Entries of one meter. Room returns at most a 64th of the span later than it could."""

MAX_METERS = 10_000
"""Meters in memory; beyond them the one that was asked longest ago is forgotten. A key has one, and one more for each
tool with a rate, so a key alone cannot push out its own."""


class RateLimiter:
    """`seconds` is a clock that only goes forward; `default` is the rate of keys that have none of their own."""

    def __init__(self, seconds: Callable[[], float], *, default: Rate | None = None) -> None:
        self._seconds = seconds
        self._default = default
        self._meters: OrderedDict[tuple[str, str], _Meter] = OrderedDict()

    def __len__(self) -> int:
        """How many meters are in memory."""
        return len(self._meters)

    def take(
        self,
        key_id: str,
        key_rate: Rate | None,
        tool: str = "",
        tool_rate: Rate | None = None,
        *,
        tool_of: str | None = None,
    ) -> float | None:
        """None if the call may go on, and it is counted; else the seconds until it may, and nothing is counted. The
        rate of the tool is counted for `tool_of`, the key of the person whom the caller asks for, where there is one.
        """
        now = self._seconds()
        rates = [(key_id, "", key_rate or self._default), (tool_of or key_id, tool, tool_rate)]
        asked = [(self._meter(whose, name), rate) for whose, name, rate in rates if rate is not None]
        wait = max((meter.wait(rate, now) for meter, rate in asked), default=0.0)
        if wait > 0:
            return wait
        for meter, rate in asked:
            meter.count(rate, now)
        return None

    def wait(self, key_id: str, key_rate: Rate | None) -> float | None:
        """What `take` would answer for the key's own rate; nothing is counted."""
        rate = key_rate or self._default
        meter = self._meters.get((key_id, ""))
        wait = 0.0 if rate is None or meter is None else meter.wait(rate, self._seconds())
        return wait or None

    def _meter(self, key_id: str, tool: str) -> _Meter:
        place = (key_id, tool)
        meter = self._meters.get(place)
        if meter is None:
            meter = self._meters[place] = _Meter()
            if len(self._meters) > MAX_METERS:
                self._meters.popitem(last=False)
        else:
            self._meters.move_to_end(place)
        return meter


class _Meter:
    """The calls of the last span, oldest first: when each entry began, its last call, and how many."""

    __slots__ = ("_entries", "_total")

    def __init__(self) -> None:
        self._entries: deque[_Entry] = deque()
        self._total = 0

    def wait(self, rate: Rate, now: float) -> float:
        """Seconds until one more call keeps the rate; 0 if it does now."""
        while self._entries and self._entries[0].last + rate.seconds <= now:
            self._total -= self._entries.popleft().calls
        if self._total < rate.calls:
            return 0.0
        over = self._total - rate.calls
        for entry in self._entries:  # more than one step only where a reload has lowered the rate
            over -= entry.calls
            if over < 0:
                return entry.last + rate.seconds - now
        return rate.seconds

    def count(self, rate: Rate, now: float) -> None:
        self._total += 1
        if self._entries:
            newest = self._entries[-1]
            # The second test holds where a reload has made the span longer than the entries were cut for.
            if now - newest.first < rate.seconds / ENTRIES or len(self._entries) > ENTRIES:
                newest.last = now
                newest.calls += 1
                return
        self._entries.append(_Entry(now))


class _Entry:
    __slots__ = ("calls", "first", "last")

    def __init__(self, now: float) -> None:
        self.first = self.last = now
        self.calls = 1
