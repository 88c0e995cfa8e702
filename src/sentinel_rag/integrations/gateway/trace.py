"""The W3C trace context of the caller's current span, if OpenTelemetry is there and a span is open."""

from __future__ import annotations


def trace_headers() -> dict[str, str]:
    """`traceparent` and, where there is one, `tracestate`; empty without a span. No baggage leaves the process."""
    try:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
    except ImportError:
        return {}
    headers: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(headers)
    return headers
