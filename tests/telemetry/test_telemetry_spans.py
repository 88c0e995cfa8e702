"""Spans: what is sampled, whose they are, and the context that they carry on."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.sampling import Sampler
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context
from tests.support.spans import ended_spans

from sentinel_rag.telemetry import (
    NO_SPAN,
    JsonFormatter,
    SpanKind,
    continuing,
    current_span,
    start_span,
    traceparent,
    tracing,
)
from sentinel_rag.telemetry.tracer import TracedSpan, named_sampler, read_traceparent

pytestmark = pytest.mark.requirement("OBS-1")
OUTSIDE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-"


@pytest.fixture
def ended() -> Iterator[list[ReadableSpan]]:
    """The spans that have ended; every trace is recorded."""
    with ended_spans() as found:
        yield found


def trace_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.trace_id)


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def test_without_a_tracer_there_is_nothing() -> None:
    assert not tracing()
    with continuing(OUTSIDE + "01"), start_span("agent.invoke") as span:
        span.set("session.id", "s")
        assert span is NO_SPAN
        assert traceparent() is None
        assert not current_span().recording


def test_spans_nest(ended: list[ReadableSpan]) -> None:
    with start_span("agent.invoke") as root:
        with start_span("tool.query_alerts", SpanKind.CLIENT) as child:
            assert current_span() is child
        assert current_span() is root
        with start_span("llm.invoke"):
            pass
    assert [span.name for span in ended] == ["tool.query_alerts", "llm.invoke", "agent.invoke"]
    below, beside, above = ended
    assert above.context is not None
    assert trace_of(below) == trace_of(beside) == trace_of(above)
    assert parent_of(below) == parent_of(beside) == above.context.span_id
    assert parent_of(above) is None
    assert len({span.context.span_id for span in ended if span.context}) == 3
    assert not current_span().recording


def test_a_trace_goes_on_from_outside_and_ends_with_the_block(ended: list[ReadableSpan]) -> None:
    with continuing(OUTSIDE + "01"):
        assert traceparent() == OUTSIDE + "01"
        with start_span("agent.invoke"):
            pass
    with start_span("agent.invoke"):
        pass
    first, second = ended
    assert f"{trace_of(first):032x}-{parent_of(first):016x}" in OUTSIDE
    assert parent_of(second) is None
    assert trace_of(second) != trace_of(first)


def test_what_is_no_traceparent_begins_a_trace(ended: list[ReadableSpan]) -> None:
    with continuing("00-hello"), start_span("agent.invoke"):
        pass
    assert parent_of(ended[0]) is None


def test_below_an_unrecorded_parent_nothing_is_recorded_and_the_next_zone_is_told(ended: list[ReadableSpan]) -> None:
    with continuing(OUTSIDE + "00"), start_span("agent.invoke") as span:
        assert not span.recording
        told = traceparent()
        with start_span("tool.query_alerts") as below:
            assert not below.recording
            assert (traceparent() or "")[-3:] == "-00"
    assert told is not None
    assert told[:36] == OUTSIDE[:36]
    assert told.endswith("-00")
    assert ended == []


def test_an_error_is_told_by_its_kind_alone(ended: list[ReadableSpan]) -> None:
    with pytest.raises(RuntimeError), start_span("agent.invoke"):
        raise RuntimeError("the password is hunter2")
    assert ended[0].attributes == {"error.type": "RuntimeError"}
    assert "hunter2" not in ended[0].to_json()


def test_a_code_that_was_told_stays(ended: list[ReadableSpan]) -> None:
    with pytest.raises(RuntimeError), start_span("agent.invoke") as span:
        span.fail("rule_denies")
        raise RuntimeError
    assert ended[0].attributes == {"error.type": "rule_denies"}


def test_a_span_ends_once(ended: list[ReadableSpan]) -> None:
    with start_span("llm.invoke") as span:
        span.end()
    assert len(ended) == 1


@pytest.mark.anyio
async def test_tasks_that_run_at_once_keep_their_traces_apart(ended: list[ReadableSpan]) -> None:
    begun = [anyio.Event() for _ in range(3)]

    async def question(place: int) -> None:
        with start_span("agent.invoke") as span:
            span.set("sentinel.tool.calls", place)
            begun[place].set()
            for each in begun:  # all are under way at one moment
                await each.wait()
            with start_span("tool.query_alerts") as child:
                child.set("sentinel.tool.calls", place)

    async with anyio.create_task_group() as group:
        for place in range(3):
            group.start_soon(question, place)
    assert len(ended) == 6
    assert len({trace_of(span) for span in ended}) == 3
    told = {(trace_of(span), (span.attributes or {})["sentinel.tool.calls"]) for span in ended}
    assert len(told) == 3


@pytest.mark.requirement("OBS-2")
def test_a_log_line_names_the_span_it_belongs_to(ended: list[ReadableSpan]) -> None:
    record = logging.LogRecord("sentinel_rag.x", logging.INFO, "", 0, "it ran", (), None)
    with start_span("agent.invoke") as span:
        line = json.loads(JsonFormatter("agent").format(record))
    assert span.traceparent == f"00-{line['trace_id']}-{line['span_id']}-01"
    assert "trace_id" not in json.loads(JsonFormatter("agent").format(record))


def takes(sampler: Sampler, trace_id: int, parent: SpanContext | None = None) -> bool:
    context = None if parent is None else set_span_in_context(NonRecordingSpan(parent))
    return sampler.should_sample(context, trace_id, "agent.invoke").decision.is_sampled()


@pytest.mark.parametrize("ratio", [0.0, 0.1, 0.5, 1.0])
def test_a_share_of_the_traces_is_recorded(ratio: float) -> None:
    sampler = named_sampler("traceidratio", ratio)
    step = (1 << 64) // 1_000
    taken = sum(takes(sampler, place * step) for place in range(1_000))
    assert abs(taken - 1_000 * ratio) <= 1


def test_a_smaller_share_is_part_of_a_larger_one() -> None:
    large, small = named_sampler("traceidratio", 0.5), named_sampler("traceidratio", 0.1)
    traces = [place * 0x9E3779B97F4A7C15 % (1 << 128) for place in range(1, 2_000)]
    assert all(takes(large, trace) for trace in traces if takes(small, trace))


@pytest.mark.parametrize(
    ("name", "own", "below_recorded", "below_unrecorded"),
    [
        ("always_on", True, True, True),
        ("always_off", False, False, False),
        ("traceidratio", False, False, False),
        ("parentbased_always_on", True, True, False),
        ("parentbased_always_off", False, False, False),
        ("parentbased_traceidratio", False, False, False),
    ],
)
def test_the_samplers_by_name(name: str, own: bool, below_recorded: bool, below_unrecorded: bool) -> None:
    """A caller that was recorded switches nothing on: here it says so of a trace beyond the share of 0."""
    sampler, trace_id = named_sampler(name, 0.0), 1
    assert takes(sampler, trace_id) is own
    assert takes(sampler, trace_id, read_traceparent(OUTSIDE + "01")) is below_recorded
    assert takes(sampler, trace_id, read_traceparent(OUTSIDE + "00")) is below_unrecorded


TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@given(st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1), st.booleans())
def test_what_is_written_is_read(trace_id: int, span_id: int, sampled: bool) -> None:
    flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
    place = SpanContext(trace_id, span_id, is_remote=True, trace_flags=flags)
    assert read_traceparent(TracedSpan("", NonRecordingSpan(place)).traceparent) == place


@pytest.mark.parametrize(
    "text",
    [
        None,
        7,
        ["00"],
        "",
        f"00-{TRACE}-{SPAN}",
        f"01-{TRACE}-{SPAN}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-01\n",
        f" 00-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE[:-1]}\u0663-{SPAN}-01",
    ],
)
def test_anything_else_is_no_traceparent(text: object) -> None:
    assert read_traceparent(text) is None


@pytest.mark.parametrize(("flags", "sampled"), [("00", False), ("01", True), ("02", False), ("03", True), ("ff", True)])
def test_of_the_flags_one_bit_counts(flags: str, sampled: bool) -> None:
    found = read_traceparent(f"00-{TRACE}-{SPAN}-{flags}")
    assert found is not None
    assert found.trace_flags.sampled is sampled
