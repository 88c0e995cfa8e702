"""What a zone tells its operator: logs as JSON lines, spans of one trace over all zones, and counts for Prometheus.

Everything but the logs is off until a zone's configuration turns it on, and costs nothing until then.
"""

from sentinel_rag.telemetry.logs import configure_logging as configure_logging
from sentinel_rag.telemetry.logs import scrub as scrub
from sentinel_rag.telemetry.spans import NO_SPAN as NO_SPAN
from sentinel_rag.telemetry.spans import Span as Span
from sentinel_rag.telemetry.spans import SpanKind as SpanKind
from sentinel_rag.telemetry.spans import continuing as continuing
from sentinel_rag.telemetry.spans import current_span as current_span
from sentinel_rag.telemetry.spans import start_span as start_span
from sentinel_rag.telemetry.spans import traceparent as traceparent
from sentinel_rag.telemetry.spans import tracing as tracing
