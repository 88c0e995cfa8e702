"""What telemetry's own code takes for a call of the gateway, part by part, by the clock of the thread that runs it.

Nothing is sent and nothing waits, and the best of many short rounds counts: so a busy machine changes little, and the
parts say where a whole measurement's figure comes from.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from starlette.requests import Request

from sentinel_rag.audit import CallIntended, CallOutcome, OutcomeStatus
from sentinel_rag.contracts.labels import BOTTOM
from sentinel_rag.gateway.store.state import new_audit_id
from sentinel_rag.gateway.telemetry import RecordSpans, request_span, tell_status
from sentinel_rag.gateway.telemetry.counts import RecordCounts
from sentinel_rag.telemetry import set_tracer, traceparent
from sentinel_rag.telemetry.metrics import Registry
from sentinel_rag.telemetry.tracer import MAX_BATCH, AllowedSpans, Counts, SdkTracer

ROUNDS = 100
ROUTE = "/v1/proxy-execute"
HEADERS = [(b"host", b"127.0.0.1:8080"), (b"x-api-key", b"k" * 40), (b"content-type", b"application/json")]


class _Route:
    path = ROUTE


class _Ended(SpanProcessor):
    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


class _Encoded(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        encode_spans(spans).SerializePartialToString()
        return SpanExportResult.SUCCESS


def parts() -> dict[str, float]:
    """Microseconds a call: what the call itself pays for its span, what the sending thread does, and the counts."""
    ended = _Ended()
    records = [_records() for _ in range(MAX_BATCH)]
    telling, counting = RecordSpans(), RecordCounts(Registry(), servers=["sentinel"])
    exporter = AllowedSpans(_Encoded(), Counts())
    requests: list[Request] = []

    def prepare() -> None:
        ended.spans.clear()
        requests[:] = [_request() for _ in range(MAX_BATCH)]

    def in_the_call() -> None:
        for request, (intended, outcome) in zip(requests, records, strict=True):
            with request_span(request) as span:
                telling.written(intended, 1e-5)
                traceparent()
                telling.written(outcome, 1e-5)
                tell_status(span, ROUTE, 200)

    def in_the_sender() -> None:
        exporter.export(ended.spans)

    def counts() -> None:
        for intended, outcome in records:
            counting.written(intended, 1e-5)
            counting.written(outcome, 1e-5)

    set_tracer(SdkTracer(ended))
    best = {"in_the_call_us": 1e9, "in_the_sender_us": 1e9, "record_counts_us": 1e9}
    for _ in range(ROUNDS):
        prepare()
        for name, part in zip(best, (in_the_call, in_the_sender, counts), strict=True):
            best[name] = min(best[name], _microseconds(part))
    set_tracer(None)
    return {name: round(micro, 2) for name, micro in best.items()}


def _microseconds(part: Callable[[], None]) -> float:
    began = time.thread_time()
    part()
    return (time.thread_time() - began) / MAX_BATCH * 1e6


def _request() -> Request:
    where = {"scheme": "http", "server": ("127.0.0.1", 8080), "root_path": "", "query_string": b""}
    return Request({"type": "http", "method": "POST", "path": ROUTE, "headers": HEADERS, "route": _Route, **where})


def _records() -> tuple[CallIntended, CallOutcome]:
    audit_id = new_audit_id()
    intended = CallIntended(
        audit_id=audit_id,
        key_id="bench",
        session_id="bench",
        tool="query_incidents",
        requested_tool="query_incidents",
        server="sentinel",
        effect="read",
        arguments={},
        arguments_sha256="0" * 64,
        rule_id="query_incidents_any",
        label=BOTTOM,
        context_before=BOTTOM,
        context_after=BOTTOM,
        policy_sha256="0" * 64,
    )
    outcome = CallOutcome(
        audit_id=audit_id,
        status=OutcomeStatus.SUCCESS,
        duration_ms=1.2,
        result_sha256="0" * 64,
        result_bytes=412,
        rows=20,
    )
    return intended, outcome
