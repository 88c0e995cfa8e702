"""Where a call stands in a trace, as W3C Trace Context writes it: `00-TRACE-SPAN-FLAGS`.

A traceparent that comes from outside is data. Only its three fields are read, anything unusual about it makes it no
traceparent at all, and neither `tracestate` nor `baggage` is read or passed on, since both can carry any text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_SAMPLED = 1


@dataclass(frozen=True, slots=True)
class TraceContext:
    """A place in a trace: the trace, the span that is the parent of what follows, and whether it was recorded there."""

    trace_id: int
    span_id: int
    sampled: bool

    @property
    def traceparent(self) -> str:
        """The header's value, or the field of MCP's `_meta`."""
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{'01' if self.sampled else '00'}"


def read_traceparent(text: object) -> TraceContext | None:
    """The place that a traceparent names; None for anything that is not exactly one of version 00."""
    found = _TRACEPARENT.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    trace_id, span_id = int(found[1], 16), int(found[2], 16)
    if trace_id == 0 or span_id == 0:
        return None
    return TraceContext(trace_id, span_id, bool(int(found[3], 16) & _SAMPLED))
