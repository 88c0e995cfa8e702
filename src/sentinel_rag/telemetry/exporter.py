"""Sends spans to an OTLP collector over HTTP, by OpenTelemetry's batches and exporter, from a thread of their own.

Whoever ends a span only puts it into a bounded queue: a collector that is slow or away costs spans, which are counted,
and never a call its time. What was not sent when the process ends gets a short last try.
"""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import requests
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from opentelemetry.attributes import BoundedAttributes
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Status
from requests.adapters import HTTPAdapter

from sentinel_rag.telemetry.allowed import allowed_name, allowed_value

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
