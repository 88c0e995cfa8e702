"""When the request that the running code answers began: set by whoever counts requests, for what is timed in one."""

from __future__ import annotations

from contextvars import ContextVar

_began: ContextVar[float | None] = ContextVar("sentinel_rag_request_began", default=None)


def set_request_began(moment: float) -> None:
    """`moment` of `time.perf_counter`, for this task and those that it starts."""
    _began.set(moment)


def request_began() -> float | None:
    """The moment; None outside of a request that is counted."""
    return _began.get()
