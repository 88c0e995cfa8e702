"""A flood of failures costs a bounded number of records, and the count of the others is kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sentinel_rag.gateway.responses import RecordBudget


@given(st.lists(st.floats(0, 5), max_size=200))
def test_records_are_bounded_and_every_failure_is_counted_once(pauses: list[float]) -> None:
    now = 0.0
    budget = RecordBudget(lambda: now, burst=10, per_second=2)
    recorded = counted = 0
    for pause in pauses:
        now += pause
        missed = budget.take()
        if missed is not None:
            recorded += 1
            counted += missed
    assert recorded <= 10 + now * 2 + 1e-6
    now += 1
    last = budget.take()
    assert last is not None
    assert recorded + counted + last == len(pauses)


def test_after_the_burst_only_the_rate_is_left() -> None:
    now = 100.0
    budget = RecordBudget(lambda: now, burst=3, per_second=1)
    assert [budget.take() for _ in range(6)] == [0, 0, 0, None, None, None]
    now += 1
    assert [budget.take() for _ in range(2)] == [3, None]
