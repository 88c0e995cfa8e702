"""Structured logs of a zone on standard error, and the scrubber that every line passes.

A log line may name rules, tools, ids and sizes; it never holds rows, arguments or credentials. The scrubber is the net
below that rule: it knows the shapes of our keys, bearer tokens and Azure's, wherever they turn up in a message.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime

from sentinel_rag.telemetry.spans import Span, current_span

_SECRETS = re.compile(
    r"sr_[A-Za-z0-9-]+_[A-Za-z0-9_-]{20,}"  # our own keys
    r"|(?i:bearer)\s+[A-Za-z0-9._~+/=-]{8,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?"  # JSON web tokens
    r"|(?i:client_secret|x-api-key|api[-_]key|password|x-identity-header)[\"']?\s*[:=]\s*[\"']?[^\s\"',;]{4,}"
)


def scrub(text: str) -> str:
    """`text` with everything that looks like a credential replaced by `[secret]`."""
    return _SECRETS.sub("[secret]", text)


def looks_secret(text: str) -> bool:
    """Whether something in `text` looks like a credential."""
    return _SECRETS.search(text) is not None


class JsonFormatter(logging.Formatter):
    """One line of JSON for each record: time, zone, level, logger, message, the trace and span that it belongs to where
    there is one, and the traceback if there is one."""

    def __init__(self, zone: str) -> None:
        super().__init__()
        self._zone = zone

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "zone": self._zone,
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        span = current_span()
        if isinstance(span, Span):
            line |= {"trace_id": f"{span.trace_id:032x}", "span_id": f"{span.span_id:016x}"}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return scrub(json.dumps(line, ensure_ascii=False))


def configure_logging(zone: str, level: str) -> None:
    """Send this process's logs to standard error as JSON lines; libraries speak up from WARNING on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(zone))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("sentinel_rag").setLevel(level)
