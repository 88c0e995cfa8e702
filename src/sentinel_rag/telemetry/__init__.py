"""What a zone tells its operator: logs as JSON lines, spans of one trace over all zones, and counts for Prometheus.

Everything but the logs is off until a zone's configuration turns it on, and costs nothing until then.
"""

from sentinel_rag.telemetry.logs import configure_logging, scrub
from sentinel_rag.telemetry.spans import (
    NO_SPAN,
    Span,
    SpanKind,
    continuing,
    current_span,
    start_span,
    traceparent,
    tracing,
)

__all__ = [
    "NO_SPAN",
    "Span",
    "SpanKind",
    "configure_logging",
    "continuing",
    "current_span",
    "scrub",
    "start_span",
    "traceparent",
    "tracing",
]
