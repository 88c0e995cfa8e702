"""Whatever a span was told, only attributes of the list leave, within their bounds; and what leaves is OTLP."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Status, StatusCode
from tests.support.otlp_receiver import ReceivedSpan, read_request

from sentinel_rag.telemetry import SpanKind, looks_secret, told_session_id
from sentinel_rag.telemetry.tracer import ALLOWED, NAMES, OTHER_NAME, AllowedSpans, AttributeForm, Counts, SdkTracer

pytestmark = pytest.mark.requirement("OBS-1")
KEY = "sr_agent_" + "aB3-" * 10
CANARY = "canary-of-a-library"

told_names = st.one_of(st.sampled_from(sorted(ALLOWED)), st.text(max_size=40))
told_values = st.one_of(
    st.text(max_size=200),
    st.from_regex(r"[a-z_./-]{1,80}", fullmatch=True),
    st.integers(-(2**70), 2**70),
    st.booleans(),
    st.floats(),
    st.none(),
    st.binary(max_size=20),
    st.lists(st.text(max_size=5), max_size=10),
    st.lists(st.text(max_size=5), max_size=10).map(tuple),
    st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
)


class Wire(SpanExporter):
    """Writes spans as OpenTelemetry's exporter does, for nobody."""

    body = b""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.body = encode_spans(spans).SerializeToString()
        return SpanExportResult.SUCCESS


def exported(attributes: dict[str, object], name: str, error: str) -> ReceivedSpan:
    """The span as it leaves: with what is told of it, and what a library might add to it."""
    wire = Wire()
    tracer = SdkTracer(SimpleSpanProcessor(AllowedSpans(wire, Counts())), resource={"service.name": "law"})
    span = tracer.start(name, SpanKind.CLIENT)
    span.update(attributes)  # type: ignore[arg-type]  # whatever it is told
    if error:
        span.fail(error)
    span._span.add_event(CANARY, {CANARY: CANARY})
    span._span.record_exception(RuntimeError(CANARY))
    span._span.add_link(span._span.get_span_context(), {CANARY: CANARY})
    if error:
        span._span.set_status(Status(StatusCode.ERROR, CANARY))
    span.end()
    assert CANARY.encode() not in wire.body
    [read] = read_request(wire.body)
    return read


@settings(max_examples=100)
@given(st.dictionaries(told_names, told_values, max_size=12), st.text(max_size=60), st.text(max_size=60))
@example({"tool.name": KEY, "session.id": KEY, "error.type": KEY}, f"tool.{KEY}", KEY)
@example({"tool.name": ["a"], "http.status_code": True, "sentinel.partial": 1}, "tool.x", "")
@example({"tool.name": "a b", "session.id": "ab" * 24, "sentinel.result.rows": -1}, "tool.a b", "a b")
@example({"gen_ai.tool.call.id": "x" * 65, "sentinel.audit.id": "ab" * 24}, "tool.x", "")
def test_only_what_is_allowed_leaves(attributes: dict[str, object], name: str, error: str) -> None:
    read = exported(attributes, name, error)
    assert read.name == OTHER_NAME or NAMES.fullmatch(read.name)
    assert set(read.attributes) <= set(ALLOWED)
    for key, value in read.attributes.items():
        match ALLOWED[key]:
            case AttributeForm.COUNT:
                assert type(value) is int
                assert 0 <= value < 2**53
            case AttributeForm.FLAG:
                assert type(value) is bool
            case AttributeForm.CODES:
                assert len(value) <= 8
                assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]{0,63}", each) for each in value)
            case _ if key == "error.type" and value == "_OTHER":
                pass
            case form:
                assert form.value.fullmatch(value)
                assert len(value) <= 256
                assert not looks_secret(value)
        if ALLOWED[key] is AttributeForm.SESSION:  # whoever chose it, what stands there is not their text
            assert value == told_session_id(str(attributes[key])) != attributes[key]
    assert read.failed is bool(error)


def test_what_is_left_out_is_counted() -> None:
    read = exported({"tool.name": "a b", "user.name": "dana", "sentinel.reason": "sink_label"}, "tool.x", "")
    assert (dict(read.attributes), read.withheld) == ({"sentinel.reason": "sink_label"}, 2)
    assert (read.kind, read.resource) == (3, {"service.name": "law"})
