"""Spans of the OpenTelemetry SDK. Loaded only where a zone makes spans.

The provider is ours alone and never OpenTelemetry's global one, and the place in a trace is kept beside its context: so
what a library instruments is not recorded, and what one reads off a request is nobody's parent.

Sends spans to an OTLP collector over HTTP, by OpenTelemetry's batches and exporter, from a thread of their own.

Whoever ends a span only puts it into a bounded queue: a collector that is slow or away costs spans, which are counted,
and never a call its time. What was not sent when the process ends gets a short last try.

The names, attributes and values of spans that may leave a process.
"""

from __future__ import annotations

import logging
import re
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from enum import Enum
from types import TracebackType
from typing import Any, Final, Self

import requests
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from opentelemetry import trace
from opentelemetry.attributes import BoundedAttributes
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased, Sampler, TraceIdRatioBased
from opentelemetry.trace import Status
from requests.adapters import HTTPAdapter

from sentinel_rag import __version__
from sentinel_rag.telemetry import NO_SPAN, Span, SpanKind, Value, looks_secret, told_session_id

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


# What may leave a process in a span: these attributes, each within its bounds, and nothing else. It is the net below
# the rule that spans tell names, ids, sizes, statuses, label levels and reason codes only. A value of another type, a
# longer one, one with other characters or one that looks like a credential is left out whole: a part of it could still
# tell something. What a caller or a model may choose is one of a closed set, made by the gateway, or told as a hash.
class AttributeForm(Enum):
    """What values of an attribute look like."""

    CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
    NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/+-]{0,127}")
    RECORD = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
    """An id of a record or an approval, which the gateway makes."""

    SESSION = re.compile(r"[0-9a-f]{48}|hashed-[0-9a-f]{16}")
    """What `told_session_id` makes of the id of a session, whoever chose it."""

    DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
    ROUTE = re.compile(r"(?:/[a-z0-9_.-]{0,40}|/\{[a-z_]{1,20}\}){1,6}")
    COUNT = 1 << 53
    FLAG = None
    CODES = 8
    """So many codes at most."""


ALLOWED: Mapping[str, AttributeForm] = {
    # The names that the blind courier's document gives.
    "tool.name": AttributeForm.NAME,
    "session.id": AttributeForm.SESSION,
    "http.status_code": AttributeForm.COUNT,
    # OpenTelemetry's general and HTTP conventions.
    "error.type": AttributeForm.CODE,
    "http.request.method": AttributeForm.CODE,
    "http.response.status_code": AttributeForm.COUNT,
    "http.route": AttributeForm.ROUTE,
    "server.address": AttributeForm.NAME,
    # Its conventions for generative AI.
    "gen_ai.agent.name": AttributeForm.NAME,
    "gen_ai.conversation.id": AttributeForm.SESSION,
    "gen_ai.operation.name": AttributeForm.CODE,
    "gen_ai.provider.name": AttributeForm.CODE,
    "gen_ai.request.max_tokens": AttributeForm.COUNT,
    "gen_ai.request.model": AttributeForm.NAME,
    "gen_ai.response.finish_reasons": AttributeForm.CODES,
    "gen_ai.tool.call.id": AttributeForm.RECORD,
    "gen_ai.tool.name": AttributeForm.NAME,
    "gen_ai.tool.type": AttributeForm.CODE,
    "gen_ai.usage.input_tokens": AttributeForm.COUNT,
    "gen_ai.usage.output_tokens": AttributeForm.COUNT,
    # For MCP.
    "mcp.method.name": AttributeForm.NAME,
    "mcp.protocol.version": AttributeForm.DATE,
    # For databases.
    "db.namespace": AttributeForm.NAME,
    "db.operation.name": AttributeForm.CODE,
    "db.response.returned_rows": AttributeForm.COUNT,
    "db.system.name": AttributeForm.CODE,
    # Our own.
    "sentinel.approval.id": AttributeForm.RECORD,
    "sentinel.audit.id": AttributeForm.RECORD,
    "sentinel.context.integrity": AttributeForm.CODE,
    "sentinel.context.sensitivity": AttributeForm.CODE,
    "sentinel.label.integrity": AttributeForm.CODE,
    "sentinel.label.sensitivity": AttributeForm.CODE,
    "sentinel.outcome": AttributeForm.CODE,
    "sentinel.partial": AttributeForm.FLAG,
    "sentinel.reason": AttributeForm.CODE,
    "sentinel.result.bytes": AttributeForm.COUNT,
    "sentinel.result.rows": AttributeForm.COUNT,
    "sentinel.rule.id": AttributeForm.NAME,
    "sentinel.server": AttributeForm.NAME,
    "sentinel.tool.calls": AttributeForm.COUNT,
    "sentinel.upstream.ms": AttributeForm.COUNT,
}
"""Every attribute that a span may carry."""

NAMES = re.compile(
    r"agent\.invoke|llm\.invoke|kql\.query|tool\.[A-Za-z0-9_.-]{1,64}|tools/call(?: [A-Za-z0-9_.-]{1,64})?"
    r"|(?:GET|POST) (?:/[a-z0-9_.{}-]{0,40}){1,6}"
)
"""Every form that a span's name may have."""

OTHER_NAME = "other"


def allowed_value(name: str, value: object) -> Value | None:
    """`value` if the attribute may be told with it, a hash of it for a session that its caller named, else None."""
    allowed = _ALLOWED_VALUES.get(name)
    return None if allowed is None else allowed(value)


def allowed_name(name: str) -> str:
    """`name` if a span may be called so."""
    return name if NAMES.fullmatch(name) and not looks_secret(name) else OTHER_NAME


def _text_of(form: AttributeForm) -> Callable[[object], str | None]:
    fits = form.value.fullmatch
    # No credential that is known by its form consists of the characters of such an id.
    harmless = form is AttributeForm.RECORD

    def allowed(value: object) -> str | None:
        if not isinstance(value, str) or fits(value) is None:
            return None
        return value if harmless or not looks_secret(value) else None

    return allowed


_code = _text_of(AttributeForm.CODE)
_TOO_MANY: int = AttributeForm.COUNT.value
_MOST_CODES: int = AttributeForm.CODES.value


def _flag(value: object) -> Value | None:
    return value if isinstance(value, bool) else None


def _count(value: object) -> Value | None:
    return value if type(value) is int and 0 <= value < _TOO_MANY else None


def _codes(value: object) -> Value | None:
    if not isinstance(value, tuple) or len(value) > _MOST_CODES:
        return None
    return value if all(_code(each) for each in value) else None


def _session(value: object) -> Value | None:
    return told_session_id(value) if isinstance(value, str) else None


def _error_type(value: object) -> Value:
    """Told whatever it is: what is no code by OpenTelemetry's word for it."""
    return _code(value) or "_OTHER"


_OTHER_THAN_TEXT = {
    AttributeForm.FLAG: _flag,
    AttributeForm.COUNT: _count,
    AttributeForm.CODES: _codes,
    AttributeForm.SESSION: _session,
}
_ALLOWED_VALUES: Mapping[str, Callable[[object], Value | None]] = {
    **{name: _OTHER_THAN_TEXT.get(form) or _text_of(form) for name, form in ALLOWED.items()},
    "error.type": _error_type,
}


PATH: Final = "/v1/traces"
MAX_QUEUED: Final = 4_096
MAX_BATCH: Final = 512
WAIT_S: Final = 5.0
"""How long a span waits for others, unless the exporter is told otherwise."""

LAST_TRY_S: Final = 2.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Collector:
    """Where spans go: the collector's base URL, to which the path of OTLP is added, headers of each request, seconds
    that a batch may take with all its tries, and a file of certificates to trust beside the system's."""

    endpoint: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = 10.0
    certificate: str | None = None

    @property
    def url(self) -> str:
        return self.endpoint.rstrip("/") + PATH

    def session(self) -> requests.Session:
        """Connections to it, by the certificates of this machine and without the environment's proxies and netrc."""
        session = requests.Session()
        session.trust_env = False
        session.mount("https://", _TrustedByMachine(self.certificate))
        return session

    def status(self, timeout_s: float) -> int:
        """What it answers an export without spans. Raises OSError."""
        headers = {"Content-Type": "application/x-protobuf", **self.headers}
        wait = min(self.timeout_s, timeout_s)
        try:
            with self.session() as session:
                return session.post(self.url, b"", headers=headers, timeout=wait, allow_redirects=False).status_code
        except requests.RequestException as fault:
            cause: BaseException = fault
            while cause.__context__ is not None:  # what the system said stands below three wrappings
                cause = cause.__context__
            raise OSError(str(cause)) from fault


class _TrustedByMachine(HTTPAdapter):
    """Trusts the system's certificates, and those of one more file."""

    def __init__(self, certificate: str | None) -> None:
        self._context = ssl.create_default_context()
        if certificate is not None:
            self._context.load_verify_locations(certificate)
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options, ssl_context=self._context)


@dataclass(slots=True)
class Counts:
    """What became of spans so far."""

    taken: int = 0
    exported: int = 0
    dropped: int = 0
    """Pushed out of the queue by newer ones, because it was full."""

    failed: int = 0
    """The collector did not take them."""

    sending: int = 0

    @property
    def queued(self) -> int:
        return self.taken - self.exported - self.dropped - self.failed - self.sending


class AllowedSpans(SpanExporter):
    """Has `exporter` send of each span what may leave the process, and nothing else."""

    def __init__(self, exporter: SpanExporter, counts: Counts) -> None:
        self._exporter = exporter
        self._counts = counts
        self._healthy = True
        self.rejected = 0
        """How many spans of the batch the collector said it did not take, although it took the request."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """See `SpanExporter.export`."""
        counts = self._counts
        counts.sending, self.rejected = len(spans), 0
        result = SpanExportResult.FAILURE
        try:
            result = self._exporter.export([_allowed(span) for span in spans])
        finally:
            taken = len(spans) - min(self.rejected, len(spans)) if result is SpanExportResult.SUCCESS else 0
            counts.sending = 0
            counts.exported += taken
            counts.failed += len(spans) - taken
        healthy = result is SpanExportResult.SUCCESS
        if healthy is not self._healthy:  # once, until it is back
            self._healthy = healthy
            _log.warning("the collector takes spans again" if healthy else "the collector does not take spans")
        return result

    def shutdown(self) -> None:
        """See `SpanExporter.shutdown`."""
        self._exporter.shutdown()


def _allowed(span: ReadableSpan) -> ReadableSpan:
    """What of a span may be told, with how many attributes there were beside it. Events, links and a status's text are
    never told."""
    given = span.attributes or {}
    told = {name: value for name in given if (value := allowed_value(name, given[name])) is not None}
    attributes = BoundedAttributes(attributes=told)
    attributes.dropped = len(given) - len(told) + span.dropped_attributes
    return ReadableSpan(
        allowed_name(span.name),
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=attributes,
        kind=span.kind,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


class SpanBatches(BatchSpanProcessor):
    """Give it to a `Tracer`. `close` it at the end of the process."""

    def __init__(self, collector: Collector, *, max_queued: int = MAX_QUEUED, wait_s: float = WAIT_S) -> None:
        # What it logs would repeat each failure, and may hold texts of a collector. The counts and one line tell it.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self.counts = Counts()
        self._max_queued = max_queued
        session = collector.session()
        session.hooks["response"].append(self._answered)
        exporter = OTLPSpanExporter(
            collector.url,
            headers=collector.headers,
            timeout=collector.timeout_s,
            compression=Compression.NoCompression,
            session=session,
        )
        self._allowed = AllowedSpans(exporter, self.counts)
        batch = min(MAX_BATCH, max_queued)
        super().__init__(self._allowed, max_queued, wait_s * 1e3, batch)

    def on_end(self, span: ReadableSpan) -> None:
        """See `SpanProcessor.on_end`."""
        self.counts.taken += 1
        if self.counts.queued > self._max_queued:
            self.counts.dropped += 1
        super().on_end(span)

    def close(self) -> None:
        """Send what is left within `LAST_TRY_S`. Idempotent."""
        ending = threading.Thread(target=self.shutdown, daemon=True)
        ending.start()
        ending.join(LAST_TRY_S)

    def _answered(self, response: requests.Response, **_: object) -> None:
        """Note what the collector says of a batch beside its status."""
        content = response.content
        if 300 <= response.status_code < 400:
            raise requests.TooManyRedirects("a collector does not send elsewhere")  # the exporter takes it for success
        try:
            answer = ExportTraceServiceResponse.FromString(content)
        except DecodeError:  # such as a page of a proxy: its status counts
            return
        self._allowed.rejected = max(0, answer.partial_success.rejected_spans)
