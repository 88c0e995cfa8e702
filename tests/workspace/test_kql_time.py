"""Times and spans: what they do not hold here, and the parts of one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sentinel_rag.workspace.cells import Cell
from sentinel_rag.workspace.kql.errors import KqlError

pytestmark = pytest.mark.requirement("DATA-4")

Evaluate = Callable[[str], tuple[str, Cell]]


@pytest.mark.parametrize(
    "expression",
    [
        "datetime_part('nanosecond', datetime(2020-01-01 00:00:00.1234567))",
        "datetime_diff('nanosecond', datetime(2020-01-01 00:00:00.1234567), datetime(2020-01-01))",
    ],
)
def test_digits_that_a_time_here_does_not_have_are_refused(evaluated: Evaluate, expression: str) -> None:
    with pytest.raises(KqlError) as refusal:
        evaluated(expression)
    assert "nanosecond" in str(refusal.value)


def test_the_parts_of_a_time_are_ints_and_ticks_print_as_zero(evaluated: Evaluate) -> None:
    assert evaluated("datetime_part('microsecond', datetime(2020-01-01 00:00:00.123456))") == ("int", 123456)
    assert evaluated("hourofday(datetime(2020-01-01 13:00)) * 1000000000") == ("long", 13_000_000_000)
    formatted = "format_datetime(datetime(2020-01-01 00:00:05.5), 'HH:mm:ss.fffffff [FFFFFFF]')"
    assert evaluated(formatted) == ("string", "00:00:05.5000000 [5000000]")
    assert evaluated("abs(-90m)") == ("timespan", "01:30:00")
