"""What a zone tells its operator: logs as JSON lines, spans of one trace over all zones, and counts for Prometheus.

Everything but the logs is off until a zone's configuration turns it on, and costs nothing until then.

What may be said of a process: log lines with scrubbing, and session ids as a hash that another cannot follow.

Spans: what is told of one step of a call, and which of them the code that runs now belongs to.

`start_span` is all that the zones call. While no tracer was set it gives `NO_SPAN`, which does nothing, and neither
OpenTelemetry nor a further module of telemetry is loaded. What leaves the process is decided by `tracer`, whatever a
span was told.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from enum import Enum
from hashlib import blake2b
from hmac import compare_digest
from types import TracebackType
from typing import Protocol, Self

Value = str | int | float | bool | tuple[str, ...]


class SpanKind(Enum):
    """What a span is to its parent; the names of OpenTelemetry."""

    INTERNAL = "INTERNAL"
    SERVER = "SERVER"
    CLIENT = "CLIENT"


class Span:
    """One step under way, of which nothing is told. Use it in `with`, which makes it the current one."""

    name = ""

    @property
    def recording(self) -> bool:
        """Whether what it is told goes anywhere."""
        return False

    @property
    def traceparent(self) -> str | None:
        """Its place in a trace, as the header of W3C and the field of MCP's `_meta` say it."""
        return None

    def set(self, name: str, value: Value | None) -> None:
        """Tell an attribute; None tells nothing."""

    def update(self, attributes: Mapping[str, Value]) -> None:
        """Tell several attributes."""

    def rename(self, name: str) -> None:
        """Call it otherwise than it was begun."""

    def fail(self, error_type: str) -> None:
        """The step did not do what it was for; `error_type` is a code, never a message."""

    def end(self) -> None:
        """The step is over. A second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()


NO_SPAN = Span()


class Tracer(Protocol):
    """What makes spans; `SdkTracer` does."""

    def start(self, name: str, kind: SpanKind) -> Span: ...

    def current(self) -> Span: ...

    def traceparent(self) -> str | None: ...

    def continuing(self, text: object) -> AbstractContextManager[object]: ...


_tracer: Tracer | None = None


def set_tracer(tracer: Tracer | None) -> None:
    """What makes spans in this process from now on; None: nothing does. Called once, at the start of a zone."""
    global _tracer
    _tracer = tracer


def tracing() -> bool:
    """Whether this process makes spans."""
    return _tracer is not None


def start_span(name: str, kind: SpanKind = SpanKind.INTERNAL) -> Span:
    """A span below the current place; end it by leaving its `with`, or by `end`."""
    return NO_SPAN if _tracer is None else _tracer.start(name, kind)


def current_span() -> Span:
    """The span that the running code belongs to; `NO_SPAN` outside of any."""
    return NO_SPAN if _tracer is None else _tracer.current()


def traceparent() -> str | None:
    """What to send along with a request, as header or in MCP's `_meta`; None where there is nothing to tell."""
    return None if _tracer is None else _tracer.traceparent()


def continuing(text: object) -> AbstractContextManager[object]:
    """Below it spans belong to the trace that `text`, a traceparent from outside, names. Anything else than a valid
    one changes nothing: outside of a trace the next span begins its own."""
    return nullcontext() if _tracer is None else _tracer.continuing(text)


# A log line may name rules, tools, ids and sizes; it never holds rows, arguments or credentials. The scrubber is the
# net below that rule: it knows the shapes of our keys, bearer tokens and Azure's, wherever they turn up in a message.
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
        place = current_span().traceparent
        if place is not None:
            _, line["trace_id"], line["span_id"], _ = place.split("-")
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return scrub(json.dumps(line, ensure_ascii=False))


def configure_logging(zone: str, level: str) -> None:
    """Send this process's logs to standard error as JSON lines; libraries speak up from WARNING on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(zone))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("sentinel_rag").setLevel(level)


# Who calls may name a session as they like, so the name of one is a place to write in. An id that was made here carries
# a mark over its random half, keyed for the zones of one run: it is told as it is. Every other text is told as a keyed
# hash, which keeps two sessions apart and says nothing that its author chose.
HASHED = "hashed-"
_RANDOM_BYTES, _MARK_BYTES, _HASH_BYTES = 16, 8, 8
_LENGTH = 2 * (_RANDOM_BYTES + _MARK_BYTES)

_key = secrets.token_bytes(32)


def set_session_key(key: bytes) -> None:
    """The key of this process from now on, 16 to 64 bytes: the zones of one run share it. Until then it is one that
    nobody else has."""
    global _key
    _key = key


def new_session_id() -> str:
    """An id that nobody can guess, 48 hex digits: 16 random bytes and their mark."""
    random = secrets.token_bytes(_RANDOM_BYTES)
    return (random + _digest(b"made", random, _MARK_BYTES)).hex()


def told_session_id(session_id: str) -> str:
    """`session_id` if it was made here with this process's key, else `hashed-` and 16 hex digits."""
    if len(session_id) == _LENGTH:
        try:
            whole = bytes.fromhex(session_id)
        except ValueError:
            whole = b""
        random, mark = whole[:_RANDOM_BYTES], whole[_RANDOM_BYTES:]
        # The spelling is compared too: upper case would be 24 letters of a caller's choice.
        if whole.hex() == session_id and compare_digest(mark, _digest(b"made", random, _MARK_BYTES)):
            return session_id
    return HASHED + _digest(b"named", session_id.encode("utf-8", "surrogatepass"), _HASH_BYTES).hex()


def _digest(purpose: bytes, content: bytes, size: int) -> bytes:
    return blake2b(content, digest_size=size, key=_key, person=purpose).digest()
