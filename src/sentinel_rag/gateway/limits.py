"""The bounds of one gateway. What passes one is refused with its own status, never cut."""

from __future__ import annotations

from dataclasses import dataclass

from sentinel_rag.gateway.policy.model import Rate

DEFAULT_KEY_RATE = Rate(calls=30_000, seconds=60.0)
"""Far above what people and agents ask; it stops a loop that has gone wild, and only for its own key."""


@dataclass(frozen=True, slots=True)
class Limits:
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
