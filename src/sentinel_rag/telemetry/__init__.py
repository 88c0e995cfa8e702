"""What a zone tells its operator: one JSON object a line, with secrets scrubbed. Metrics and spans join here later."""

from sentinel_rag.telemetry.logs import configure_logging, scrub

__all__ = ["configure_logging", "scrub"]
