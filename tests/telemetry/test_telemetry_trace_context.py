"""A traceparent from outside is exactly one of version 00, or none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rag.telemetry.trace_context import TraceContext, read_traceparent

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@given(st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1), st.booleans())
def test_what_is_written_is_read(trace_id: int, span_id: int, sampled: bool) -> None:
    place = TraceContext(trace_id, span_id, sampled)
    assert read_traceparent(place.traceparent) == place


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
    assert found.sampled is sampled
