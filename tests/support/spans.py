"""Tracing switched on for a block: spans kept in a list as they end, or sent to a receiver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from sentinel_rag.telemetry import set_tracer
from sentinel_rag.telemetry.tracer import Collector, SdkTracer, SpanBatches, named_sampler


class Ended(SpanProcessor):
    """Keeps each span that ends."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


@contextmanager
def ended_spans() -> Iterator[list[ReadableSpan]]:
    """The spans that have ended, before anything is left out; every trace is recorded."""
    kept = Ended()
    set_tracer(SdkTracer(kept))
    try:
        yield kept.spans
    finally:
        set_tracer(None)


@contextmanager
def sent_spans(url: str, *, ratio: float = 1.0, trusts_callers: bool = True) -> Iterator[SpanBatches]:
    """Spans go to the collector at `url`, as the product sends them."""
    batches = SpanBatches(Collector(url), wait_s=0.05)
    sampler = named_sampler("parentbased_traceidratio", ratio)
    set_tracer(SdkTracer(batches, sampler=sampler, trusts_callers=trusts_callers))
    try:
        yield batches
    finally:
        set_tracer(None)
        batches.close()
