"""Which traces are recorded: a share of all, decided by the trace's id, so that every zone decides alike.

A caller can ask for less and never for more: a parent that was not recorded ends it here too (unless the sampler
ignores parents), and one that was recorded is held against this process's own share all the same. So nobody who sends a
traceparent switches recording on.
"""

from __future__ import annotations

from dataclasses import dataclass

from sentinel_rag.telemetry.trace_context import TraceContext

_RANDOM_BITS = 56
_RANDOM = (1 << _RANDOM_BITS) - 1


@dataclass(frozen=True, slots=True)
class Sampler:
    """`ratio` of all traces, 0 to 1; `by_parent`: not where the parent was not recorded."""

    ratio: float = 1.0
    by_parent: bool = True

    @classmethod
    def named(cls, name: str, ratio: float) -> Sampler:
        """The sampler that OTEL_TRACES_SAMPLER calls `name`; `ratio` counts for the two that take one."""
        share = {"always_on": 1.0, "always_off": 0.0, "traceidratio": ratio}[name.removeprefix("parentbased_")]
        return cls(share, name.startswith("parentbased_"))

    def takes(self, trace_id: int, parent: TraceContext | None) -> bool:
        """Whether a trace is recorded. The 56 lowest bits of an id are the random ones."""
        if self.by_parent and parent is not None and not parent.sampled:
            return False
        if self.ratio >= 1.0:
            return True
        return (trace_id & _RANDOM) >= round((1.0 - self.ratio) * (1 << _RANDOM_BITS))
