"""The bound of a rate holds in every span, whatever the moments of the calls, and costs the same for any number."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel_rag.gateway.admission import ENTRIES, MAX_METERS, RateLimiter
from sentinel_rag.gateway.policy.model import Rate


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@settings(max_examples=100, deadline=None)
@given(
    calls=st.integers(1, 300),
    seconds=st.floats(1, 100),
    gaps=st.lists(st.floats(0, 1).map(lambda part: part**6), min_size=1, max_size=400),
)
def test_no_span_holds_more_calls_than_the_rate(calls: int, seconds: float, gaps: list[float]) -> None:
    clock = Clock()
    rate = Rate(calls, seconds)
    limiter = RateLimiter(clock)
    passed: list[float] = []
    for gap in gaps:
        clock.now += gap * seconds
        wait = limiter.take("k", rate)
        if wait is None:
            passed.append(clock.now)
        else:
            assert 0 < wait <= seconds + 1e-6
    for first, last in zip(passed, passed[calls:], strict=False):
        assert last - first >= seconds * (1 - 1e-9)


@given(calls=st.integers(1, 1_000), seconds=st.floats(1, 3_600), gap=st.floats(0, 0.01))
@settings(max_examples=100, deadline=None)
def test_whoever_waits_as_told_is_let_through(calls: int, seconds: float, gap: float) -> None:
    clock = Clock()
    rate = Rate(calls, seconds)
    limiter = RateLimiter(clock)
    for _ in range(calls):
        assert limiter.take("k", rate) is None or gap * calls > 1
        clock.now += gap * seconds / calls
    wait = limiter.take("k", rate)
    if wait is not None:
        clock.now += wait + 1e-6
        assert limiter.take("k", rate) is None


def test_calls_far_apart_get_their_room_back_exactly() -> None:
    clock = Clock()
    limiter = RateLimiter(clock)
    rate = Rate(3, 60.0)
    for moment in (0.0, 20.0, 40.0):
        clock.now = 1_000 + moment
        assert limiter.take("k", rate) is None
    assert limiter.take("k", rate) == 20.0
    clock.now = 1_060.0
    assert limiter.take("k", rate) is None
    assert limiter.take("k", rate) == 20.0


def test_a_refused_call_counts_nowhere() -> None:
    clock = Clock()
    limiter = RateLimiter(clock)
    key_rate, tool_rate = Rate(3, 10.0), Rate(1, 60.0)
    assert limiter.take("k", key_rate, "web_search", tool_rate) is None
    assert limiter.take("k", key_rate, "web_search", tool_rate) == 60.0
    assert limiter.take("k", key_rate, "file_read", None) is None
    assert limiter.take("k", key_rate, "file_read", None) is None
    assert limiter.take("k", key_rate, "file_read", None) == 10.0


def test_each_key_and_each_tool_of_a_key_has_its_own_meter() -> None:
    limiter = RateLimiter(Clock())
    once = Rate(1, 60.0)
    assert limiter.take("a", None, "web_search", once) is None
    assert limiter.take("a", None, "web_search", once) is not None
    assert limiter.take("b", None, "web_search", once) is None
    assert limiter.take("a", None, "web_fetch", once) is None


def test_a_key_without_a_rate_has_the_default_and_its_own_wins() -> None:
    limiter = RateLimiter(Clock(), default=Rate(1, 60.0))
    assert limiter.take("a", None) is None
    assert limiter.take("a", None) is not None
    assert limiter.take("b", Rate(2, 60.0)) is None
    assert limiter.take("b", Rate(2, 60.0)) is None
    assert limiter.take("b", Rate(2, 60.0)) is not None
    unlimited = RateLimiter(Clock())
    assert all(unlimited.take("a", None) is None for _ in range(1_000))
    assert len(unlimited) == 0


def test_a_lower_rate_after_a_reload_counts_what_was_before_it() -> None:
    clock = Clock()
    limiter = RateLimiter(clock)
    for _ in range(10):
        assert limiter.take("k", Rate(10, 10.0)) is None
        clock.now += 1
    assert limiter.take("k", Rate(2, 10.0)) == 8.0
    clock.now += 8.5
    assert limiter.take("k", Rate(2, 10.0)) is None
    assert limiter.take("k", Rate(2, 10.0)) is not None


def test_a_longer_span_after_a_reload_keeps_the_bound_and_the_size() -> None:
    clock = Clock()
    limiter = RateLimiter(clock)
    for seconds in (1.0, 10.0, 100.0, 1_000.0):
        for _ in range(200):
            limiter.take("k", Rate(1_000_000, seconds))
            clock.now += seconds / ENTRIES
    meter = limiter._meters["k", ""]
    assert len(meter._entries) <= ENTRIES + 1


def test_memory_is_bounded_in_calls_and_in_keys() -> None:
    clock = Clock()
    limiter = RateLimiter(clock)
    rate = Rate(1_000_000, 60.0)
    for _ in range(50_000):
        assert limiter.take("busy", rate) is None
        clock.now += 0.0013
    assert len(limiter._meters["busy", ""]._entries) <= ENTRIES + 1
    for number in range(MAX_METERS + 500):
        limiter.take(f"key-{number}", rate)
    assert len(limiter) == MAX_METERS


@pytest.mark.parametrize("calls", [1, 2, 64, 65, 1_000])
def test_a_steady_caller_gets_nearly_the_whole_rate(calls: int) -> None:
    clock = Clock()
    limiter = RateLimiter(clock)
    rate = Rate(calls, 60.0)
    moments: list[float] = []
    while clock.now < 1_000 + 60 * 20:
        wait = limiter.take("k", rate)
        if wait is None:
            moments.append(clock.now)
        else:
            clock.now += wait + 1e-9
    assert len(moments) >= calls * 20 * (1 - 2 / ENTRIES)
    assert all(later >= earlier for earlier, later in pairwise(moments))
