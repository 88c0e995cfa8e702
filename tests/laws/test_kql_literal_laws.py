"""A value put into KQL comes out as the same value: proven by printing it through the embedded KQL engine."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from law_examples import examples
from sentinel_rag.sentinel.logs import kql_literals
from sentinel_rag.sentinel.logs.log_analytics import parse_datetime, parse_timespan
from sentinel_rag.workspace.workspace import Workspace

# The engine does not read \\u escapes, so line and paragraph separators are judged by the text below.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\u2028\u2029\x00"), max_size=60)
HOSTILE = st.sampled_from(
    ["'", '"', "\\", '\\"', '"; T | take 1 //', "' or 1==1", "\n| take 1", "{window}", '@"x"', 'h"x"', "```", "\\u0022"]
)
STRINGS = st.lists(TEXT | HOSTILE, max_size=5).map("".join)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    workspace = Workspace.open(tmp_path_factory.mktemp("laws"))

    def value(literal: str) -> Any:
        answer = workspace.query(f"print Value = {literal}, After = 1")
        assert [column.name for column in answer.columns] == ["Value", "After"]
        return answer.rows[0][0]

    yield value
    workspace.close()


law = settings(
    max_examples=examples(150, 100),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.requirement("TOOL-4")
@law
@given(text=STRINGS)
def test_a_string(printed: Any, text: str) -> None:
    assert printed(kql_literals.string_literal(text)) == text


@pytest.mark.requirement("TOOL-4")
@given(text=st.text(max_size=60))
def test_a_string_stays_inside_its_quotes(text: str) -> None:
    try:
        literal = kql_literals.string_literal(text)
    except ValueError:
        assert any("\ud800" <= character <= "\udfff" for character in text)
        return
    inside = literal[1:-1].replace("\\\\", "")
    assert literal[0] == literal[-1] == '"'
    assert '"' not in inside.replace('\\"', "")
    assert not any(character in literal for character in "\r\n\u2028\u2029")


@law
@given(number=st.integers(-(2**63) + 1, 2**63 - 1))
def test_a_long(printed: Any, number: int) -> None:
    assert printed(kql_literals.literal(number)) == number


@pytest.mark.parametrize("number", [-(2**63) - 1, 2**63])
def test_a_number_that_does_not_fit_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match="64-bit"):
        kql_literals.long_literal(number)


@law
@given(number=st.floats(allow_nan=False, allow_infinity=False))
def test_a_real(printed: Any, number: float) -> None:
    assert printed(kql_literals.literal(number)) == number


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_a_real_that_is_no_number(number: float) -> None:
    assert kql_literals.literal(number) in ("real(+inf)", "real(-inf)", "real(nan)")


@law
@given(moment=st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)))
def test_a_datetime(printed: Any, moment: datetime) -> None:
    assert parse_datetime(printed(kql_literals.literal(moment))) == moment


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="zone"):
        kql_literals.datetime_literal(datetime(2024, 7, 2))  # the naive time is the point


@law
@given(span=st.timedeltas(timedelta(days=-10_000), timedelta(days=10_000)))
def test_a_timespan(printed: Any, span: timedelta) -> None:
    assert parse_timespan(printed(kql_literals.literal(span))) == span


@pytest.mark.parametrize("value", [True, False])
def test_a_bool(printed: Any, value: bool) -> None:
    assert printed(kql_literals.literal(value)) is value


@law
@given(values=st.lists(STRINGS, max_size=4), probe=STRINGS)
def test_membership_in_a_list(printed: Any, values: list[str], probe: str) -> None:
    kql = f"{kql_literals.string_literal(probe)} in {kql_literals.list_literal(values)}"
    assert bool(printed(kql)) is (probe in values)
