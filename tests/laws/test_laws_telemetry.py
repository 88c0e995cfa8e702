"""Whatever a span was told, only attributes of the list leave, within their bounds; and what leaves is OTLP."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.otlp_receiver import read_request

from sentinel_rag.telemetry.logs import looks_secret, told_session_id
from sentinel_rag.telemetry.otlp import (
    ALLOWED,
    MAX_SESSIONS,
    NAMES,
    OTHER_NAME,
    AttributeForm,
    SpanEncoder,
    key_value,
    rejected_spans,
    resource,
    varint,
)
from sentinel_rag.telemetry.spans import SharedAttributes, Span, SpanKind

pytestmark = pytest.mark.requirement("OBS-1")
KEY = "sr_agent_" + "aB3-" * 10

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


shared_attributes = st.dictionaries(
    st.sampled_from(
        sorted(name for name, form in ALLOWED.items() if form not in (AttributeForm.RECORD, AttributeForm.SESSION))
    ),
    told_values,
    max_size=4,
)


@settings(max_examples=50)
@given(st.dictionaries(told_names, told_values, max_size=6), st.lists(shared_attributes, max_size=2))
@example({"tool.name": "a"}, [{"tool.name": "b", "sentinel.reason": "c d"}, {"sentinel.partial": True}])
def test_what_spans_share_leaves_as_if_each_had_been_told_it(
    attributes: dict[str, object], groups: list[dict[str, object]]
) -> None:
    """Bytes that are kept are those that would be written, and of two values of a name the span's own is told."""
    alone, sharing, again = (Span("agent.invoke", SpanKind.CLIENT, 1, 2, 3, lambda _: None) for _ in range(3))
    alone.started_ns = sharing.started_ns = again.started_ns = 1
    own = dict(groups[0]) if groups else {}
    groups = [own, *({key: value for key, value in group.items() if key not in own} for group in groups[1:])]
    told = [SharedAttributes(group) for group in groups]  # type: ignore[arg-type]  # whatever it is told
    for span in (sharing, again):
        span.attributes.update(attributes)  # type: ignore[arg-type]
        for each in told:
            span.share(each)
    for group in groups:
        alone.attributes.update(group)  # type: ignore[arg-type]
    alone.attributes.update(attributes)  # type: ignore[arg-type]
    [wanted] = read_request(exported(alone))
    for span in (sharing, again):
        [read] = read_request(exported(span))
        assert (read.attributes, read.withheld) == (wanted.attributes, wanted.withheld)


def test_sessions_that_come_and_go_are_told_right_and_not_all_remembered() -> None:
    encoder = SpanEncoder(resource({}), "1")
    for number in [*range(3 * MAX_SESSIONS), 1, 2, 1]:
        span = Span("agent.invoke", SpanKind.CLIENT, 1, 2, 3, lambda _: None)
        span.set("session.id", f"s-{number}")
        span.set("gen_ai.conversation.id", f"s-{number}")
        span.ended_ns = span.started_ns
        [read] = read_request(encoder.request([encoder.span(span)]))
        told = told_session_id(f"s-{number}")
        assert read.attributes == {"session.id": told, "gen_ai.conversation.id": told}
    assert encoder.remembered <= MAX_SESSIONS


def exported(span: Span) -> bytes:
    span.ended_ns = span.started_ns + 1
    encoder = SpanEncoder(resource({"service.name": "law"}), "1")
    encoder.span(span)  # what it remembers of the first time changes nothing
    return encoder.request([encoder.span(span)])


@settings(max_examples=100)
@given(st.dictionaries(told_names, told_values, max_size=12), st.text(max_size=60), st.text(max_size=60))
@example({"tool.name": KEY, "session.id": KEY, "error.type": KEY}, f"tool.{KEY}", KEY)
@example({"tool.name": ["a"], "http.status_code": True, "sentinel.partial": 1}, "tool.x", "")
@example({"tool.name": "a b", "session.id": "ab" * 24, "sentinel.result.rows": -1}, "tool.a b", "a b")
@example({"gen_ai.tool.call.id": "x" * 65, "sentinel.audit.id": "ab" * 24}, "tool.x", "")
def test_only_what_is_allowed_leaves(attributes: dict[str, object], name: str, error: str) -> None:
    span = Span(name, SpanKind.CLIENT, 1, 2, 3, lambda _: None)
    span.attributes.update(attributes)  # type: ignore[arg-type]  # whatever it is told
    span.error = error
    [read] = read_request(exported(span))
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
    left_out = [key for key in attributes if key not in read.attributes]
    assert read.withheld >= len([key for key in left_out if key != "error.type"])
    assert read.failed is bool(error)


@settings(max_examples=40)
@given(st.integers(1, 2**128 - 1), st.integers(0, 2**64 - 1), st.integers(1, 2**64 - 1), st.sampled_from(SpanKind))
def test_ids_and_kinds_are_read_as_they_were(trace_id: int, parent_id: int, span_id: int, kind: SpanKind) -> None:
    span = Span("agent.invoke", kind, trace_id, parent_id, span_id, lambda _: None)
    [read] = read_request(exported(span))
    assert (read.trace_id, read.span_id) == (f"{trace_id:032x}", f"{span_id:016x}")
    assert read.parent_id == (f"{parent_id:016x}" if parent_id else "")
    assert read.kind == kind
    assert read.resource == {"service.name": "law"}


@settings(max_examples=40)
@given(st.text(max_size=30), st.one_of(st.text(max_size=300), st.integers(0, 2**63 - 1), st.booleans(), st.floats()))
def test_a_value_is_written_as_the_official_library_writes_it(name: str, value: str | int | float | bool) -> None:
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

    match value:
        case bool():
            told = AnyValue(bool_value=value)
        case int():
            told = AnyValue(int_value=value)
        case float():
            told = AnyValue(double_value=value)
        case _:
            told = AnyValue(string_value=value)
    assert key_value(name, value) == KeyValue(key=name, value=told).SerializeToString() or not name


@settings(max_examples=50)
@given(st.binary(max_size=60))
@example(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
@example(b"\x0a\x02\x08\x07")
def test_any_answer_of_a_collector_can_be_read(answer: bytes) -> None:
    assert rejected_spans(answer) >= 0


def test_the_spans_that_a_collector_rejects_are_counted() -> None:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    answer = ExportTraceServiceResponse()
    answer.partial_success.rejected_spans = 300
    answer.partial_success.error_message = "too old"
    assert rejected_spans(answer.SerializeToString()) == 300
    assert rejected_spans(ExportTraceServiceResponse().SerializeToString()) == 0
    assert varint(300) == b"\xac\x02"
