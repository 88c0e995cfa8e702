"""Spans of the OpenTelemetry SDK. Loaded only where a zone makes spans.

The provider is ours alone and never OpenTelemetry's global one, and the place in a trace is kept beside its context: so
what a library instruments is not recorded, and what one reads off a request is nobody's parent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Self

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased, Sampler, TraceIdRatioBased

from sentinel_rag import __version__
from sentinel_rag.telemetry.spans import NO_SPAN, Span, SpanKind, Value

# A traceparent that comes from outside is data. Only its three fields are read, anything unusual about it makes it no
# traceparent at all, and neither `tracestate` nor `baggage` is read or passed on, since both can carry any text.
_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


def read_traceparent(text: object) -> trace.SpanContext | None:
    """The place that a traceparent names; None for anything that is not exactly one of version 00."""
    found = _TRACEPARENT.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    sampled = trace.TraceFlags(int(found[3], 16) & trace.TraceFlags.SAMPLED)
    place = trace.SpanContext(int(found[1], 16), int(found[2], 16), is_remote=True, trace_flags=sampled)
    return place if place.is_valid else None


def named_sampler(name: str, ratio: float) -> Sampler:
    """The sampler that OTEL_TRACES_SAMPLER calls `name`; `ratio` counts for the two that take one."""
    share = {"always_on": ALWAYS_ON, "always_off": ALWAYS_OFF, "traceidratio": TraceIdRatioBased(ratio)}
    own = share[name.removeprefix("parentbased_")]
    # A caller can ask for less and never for more: one that was recorded is held against this process's own share all
    # the same. So nobody who sends a traceparent switches recording on.
    unrecorded = ALWAYS_OFF if name.startswith("parentbased_") else own
    return ParentBased(own, remote_parent_sampled=own, remote_parent_not_sampled=unrecorded)


class TracedSpan(Span):
    """A span of the SDK, recorded or not."""

    def __init__(self, name: str, span: trace.Span) -> None:
        self.name = name
        self._span = span
        self._failed = False
        self._token: Token[TracedSpan | None] | None = None

    @property
    def recording(self) -> bool:
        """See `Span.recording`."""
        return self._span.is_recording()

    @property
    def traceparent(self) -> str:
        """See `Span.traceparent`."""
        place = self._span.get_span_context()
        return f"00-{place.trace_id:032x}-{place.span_id:016x}-{'01' if place.trace_flags.sampled else '00'}"

    @property
    def below(self) -> Context:
        """The context of spans that begin below it."""
        return trace.set_span_in_context(self._span, Context())

    def set(self, name: str, value: Value | None) -> None:
        """See `Span.set`."""
        if value is not None:
            self._span.set_attribute(name, value)

    def update(self, attributes: Mapping[str, Value]) -> None:
        """See `Span.update`."""
        self._span.set_attributes(attributes)

    def rename(self, name: str) -> None:
        """See `Span.rename`."""
        self.name = name
        self._span.update_name(name)

    def fail(self, error_type: str) -> None:
        """See `Span.fail`."""
        self._failed = True
        self._span.set_attribute("error.type", error_type)
        self._span.set_status(trace.StatusCode.ERROR)

    def end(self) -> None:
        """See `Span.end`."""
        if self._span.is_recording():
            self._span.end()

    def __enter__(self) -> Self:
        self._token = _place.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            _place.reset(self._token)
            self._token = None
        if kind is not None and not self._failed:
            self.fail(kind.__name__)
        self.end()


_place: ContextVar[TracedSpan | None] = ContextVar("sentinel_rag_place_in_trace", default=None)


class SdkTracer:
    """Makes spans and hands each that has ended to `processor`."""

    def __init__(
        self,
        processor: SpanProcessor,
        *,
        sampler: Sampler | None = None,
        resource: Mapping[str, str] | None = None,
        trusts_callers: bool = True,
    ) -> None:
        """`trusts_callers`: spans belong to the trace that a caller names, whose ids are the caller's choice."""
        provider = TracerProvider(
            sampler=sampler or named_sampler("parentbased_always_on", 1.0),
            resource=Resource(resource or {}),
            shutdown_on_exit=False,
        )
        provider.add_span_processor(processor)
        self._tracer = provider.get_tracer("sentinel_rag", __version__)
        self._trusts_callers = trusts_callers

    def start(self, name: str, kind: SpanKind) -> TracedSpan:
        """A span below the current place. Only a root decides; what is below an unrecorded span is not recorded."""
        place = _place.get()
        context = Context() if place is None else place.below
        return TracedSpan(name, self._tracer.start_span(name, context, trace.SpanKind[kind.name]))

    def current(self) -> Span:
        """The span that the running code belongs to, if it is one of this process that is recorded."""
        place = _place.get()
        return NO_SPAN if place is None or not place.recording else place

    def traceparent(self) -> str | None:
        """The current place, also one of another process or one that is not recorded."""
        place = _place.get()
        return None if place is None else place.traceparent

    def continuing(self, text: object) -> AbstractContextManager[object]:
        """The place that a traceparent of a trusted caller names, for the length of the block."""
        place = read_traceparent(text) if self._trusts_callers else None
        return nullcontext() if place is None else TracedSpan("", trace.NonRecordingSpan(place))
