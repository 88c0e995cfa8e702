"""The bounds of one Interceptor. What passes one is refused with its own status, never cut."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """`body_bytes`: a request body (413). `body_seconds`: how long it may take to arrive (408). `tool_seconds`: a call
    of a tool whose policy names no `timeout_s` (504). `calls_in_flight`: calls at tool servers at once (503)."""

    body_bytes: int = 1_000_000
    body_seconds: float = 10.0
    tool_seconds: float = 60.0
    calls_in_flight: int = 64
