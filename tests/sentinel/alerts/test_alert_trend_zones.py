"""get_alert_trend on the clock of a time zone: local midnights, days of 23 and 25 hours, and every alert in its day."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from estate_rows import alert
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rag.contracts.query_results import QueryErrorCode, format_time, parse_time
from sentinel_rag.sentinel.alerts.alert_trend import INTERVALS, bucket_edges, bucket_of, odd_days

ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "America/Havana",
    "America/Sao_Paulo",
    "Pacific/Apia",
    "Africa/Cairo",
)
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture(scope="module")
def estate(serving: Any) -> Any:
    """Alerts around the two nights on which the clocks of Berlin change, and one in a half-hour zone's midnight."""
    times = (
        "2024-03-30T22:59:59Z",  # 30 March 23:59:59 in Berlin
        "2024-03-30T23:00:00Z",  # 31 March 00:00
        "2024-03-31T21:59:59Z",  # 31 March 23:59:59, in summer time
        "2024-03-31T22:00:00Z",  # 1 April
        "2024-10-26T22:00:00Z",  # 27 October 00:00
        "2024-10-27T00:30:00Z",  # 02:30, the first time
        "2024-10-27T01:30:00Z",  # 02:30, the second time
        "2024-10-27T22:59:00Z",  # 27 October 23:59, in winter time
    )
    return serving(
        SecurityAlert=[alert(f"at {time}", time) for time in times], now=datetime(2024, 11, 2, 12, tzinfo=UTC)
    )


async def counts(estate: Any, **arguments: Any) -> list[tuple[str, int]]:
    result = await estate.ask("get_alert_trend", **arguments)
    assert sum(row["count"] for row in result.rows) == result.summary["total"]
    return [(row["time"], row["count"]) for row in result.rows]


SPRING = {"start_time": "2024-03-29T23:00:00Z", "end_time": "2024-04-01T22:00:00Z"}
AUTUMN = {"start_time": "2024-10-25T22:00:00Z", "end_time": "2024-10-28T23:00:00Z"}


@pytest.mark.anyio
async def test_a_day_begins_at_local_midnight_and_lasts_23_hours_when_the_clocks_go_forward(estate: Any) -> None:
    """Field report E4: days follow the session's zone, and a day of a clock change is as long as it is."""
    assert await counts(estate, **SPRING, interval="1d", timezone="Europe/Berlin") == [
        ("2024-03-29T23:00:00Z", 1),
        ("2024-03-30T23:00:00Z", 2),
        ("2024-03-31T22:00:00Z", 1),
    ]
    result = await estate.ask("get_alert_trend", **SPRING, interval="1d", timezone="Europe/Berlin")
    assert result.summary["timezone"] == "Europe/Berlin"
    assert "2024-03-31 has 23 hours in Europe/Berlin: the clocks change." in result.notes


@pytest.mark.anyio
async def test_a_day_lasts_25_hours_when_the_clocks_go_back_and_its_hours_are_25_buckets(estate: Any) -> None:
    """Field report E4."""
    assert await counts(estate, **AUTUMN, interval="1d", timezone="Europe/Berlin") == [
        ("2024-10-25T22:00:00Z", 0),
        ("2024-10-26T22:00:00Z", 4),
        ("2024-10-27T23:00:00Z", 0),
    ]
    day = {"start_time": "2024-10-26T22:00:00Z", "end_time": "2024-10-27T23:00:00Z"}
    hours = await counts(estate, **day, interval="1h", timezone="Europe/Berlin")
    assert len(hours) == 25
    assert [hour for hour in hours if hour[1]] == [
        ("2024-10-26T22:00:00Z", 1),
        ("2024-10-27T00:00:00Z", 1),
        ("2024-10-27T01:00:00Z", 1),
        ("2024-10-27T22:00:00Z", 1),
    ]
    quarters = await counts(estate, **day, interval="6h", timezone="Europe/Berlin")
    assert [time for time, _ in quarters] == [
        "2024-10-26T22:00:00Z",
        "2024-10-27T05:00:00Z",  # seven hours later: 06:00 in winter time
        "2024-10-27T11:00:00Z",
        "2024-10-27T17:00:00Z",
    ]


@pytest.mark.anyio
async def test_no_bucket_lies_in_the_future(estate: Any) -> None:
    """The clock stands at Saturday noon: the week of now has six days so far."""
    week = {"start_time": "2024-10-28T00:00:00Z", "end_time": "2024-11-04T00:00:00Z"}
    assert [time for time, _ in await counts(estate, **week, interval="1d")] == [
        f"2024-{day}T00:00:00Z" for day in ("10-28", "10-29", "10-30", "10-31", "11-01", "11-02")
    ]


@pytest.mark.anyio
async def test_a_zone_with_half_hours_has_its_own_midnight(estate: Any) -> None:
    india = await counts(estate, interval="1d", timezone="Asia/Kolkata")
    assert india[0] == ("2024-03-30T18:30:00Z", 2)
    assert all(time.endswith("T18:30:00Z") for time, _ in india)
    nepal = await counts(estate, **AUTUMN, interval="1h", timezone="Asia/Kathmandu")
    assert {time[14:16] for time, _ in nepal} == {"15"}


@pytest.mark.anyio
async def test_a_week_begins_on_the_local_monday(estate: Any) -> None:
    weeks = await counts(estate, **SPRING, interval="7d", timezone="Europe/Berlin")
    assert weeks == [("2024-03-24T23:00:00Z", 3), ("2024-03-31T22:00:00Z", 1)]


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["CEST+2", "Mars/Olympus", "../../etc/passwd", "/etc/passwd", "Europe", "\x00"])
async def test_what_is_no_zone_is_refused_with_an_example(estate: Any, name: str) -> None:
    error = await estate.refusal("get_alert_trend", timezone=name)
    assert (error.code, error.field) == (QueryErrorCode.INVALID_ARGUMENT, "timezone")
    assert "Europe/Berlin" in error.next_step


@pytest.mark.anyio
@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/Los_Angeles"])
@pytest.mark.parametrize(
    "window",
    [
        {"start_time": "0001-01-01T00:00:00Z", "end_time": "0001-01-02T00:00:00Z"},
        {"start_time": "9999-12-31T00:00:00Z", "end_time": "9999-12-31T20:00:00Z"},
    ],
)
async def test_the_ends_of_the_calendar_are_refused_in_words(estate: Any, zone: str, window: dict[str, str]) -> None:
    outcome = await estate.call("get_alert_trend", **window, interval="1d", timezone=zone)
    body = outcome.to_dict()
    assert body["kind"] == "result" or body["code"] == "invalid_argument", body


@pytest.mark.anyio
@pytest.mark.parametrize("tool", ["query_alerts", "query_incidents", "get_alert_trend", "get_threat_summary"])
async def test_a_window_in_the_future_is_empty_and_no_error(estate: Any, tool: str) -> None:
    result = await estate.ask(tool, start_time="2190-01-01T00:00:00Z", end_time="2190-01-02T00:00:00Z")
    assert all(not row.get("count") for row in result.rows)


@pytest.mark.anyio
async def test_the_real_days_of_july_in_new_york(real: Any) -> None:
    """Field report E4: on real rows, each local day counts exactly the alerts whose first row fell on it there."""
    zone = ZoneInfo("America/New_York")
    listed: Counter[date] = Counter()
    window = {"start_time": "2024-07-01T04:00:00Z", "end_time": "2024-08-01T04:00:00Z"}
    for order in ("newest", "oldest"):
        page = await real.ask("query_alerts", **window, order=order, limit=100)
        assert page.coverage.rows_total is not None
        assert page.coverage.rows_total <= 200
        seen = {row["alert_id"]: parse_time(str(row["time"])).astimezone(zone).date() for row in page.rows}
        listed |= Counter(seen.values())
    trend = await real.ask("get_alert_trend", **window, interval="1d", timezone="America/New_York")
    counted = {parse_time(str(row["time"])).astimezone(zone).date(): row["count"] for row in trend.rows if row["count"]}
    assert sum(counted.values()) == trend.summary["total"] == page.coverage.rows_total
    assert len(trend.rows) == 31
    assert set(listed) <= set(counted)
    assert all(count <= counted[day] for day, count in listed.items())


moments = st.datetimes(datetime(1990, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC))


@given(
    start=moments,
    hours=st.integers(1, 24 * 40),
    interval=st.sampled_from(list(INTERVALS)),
    zone=st.sampled_from(ZONES).map(ZoneInfo),
    part=st.floats(0, 1, exclude_max=True),
)
def test_buckets_cover_the_window_without_gap_or_overlap(
    start: datetime, hours: int, interval: str, zone: ZoneInfo, part: float
) -> None:
    end = start + timedelta(hours=hours)
    edges = bucket_edges(start, end, interval, zone)
    assert edges[0] <= start < edges[1]
    assert edges[-2] < end <= edges[-1]
    assert all(left < right for left, right in pairwise(edges))
    moment = start + (end - start) * part
    place = bucket_of(moment, edges)
    assert edges[place] <= moment < edges[place + 1]
    if interval == "1d":
        local, next_local = moment.astimezone(zone).date(), edges[place + 1].astimezone(zone).date()
        assert edges[place].astimezone(zone).date() == local
        assert next_local > local
        lengths = dict(odd_days(edges, zone))
        assert lengths.get(local, 24.0) == (edges[place + 1] - edges[place]) / timedelta(hours=1)
    if interval == "7d":
        assert edges[place].astimezone(zone).weekday() == 0
    assert format_time(edges[0]).endswith("Z")


def test_a_day_that_a_place_skipped_has_no_bucket() -> None:
    """Samoa went from 29 to 31 December 2011."""
    zone = ZoneInfo("Pacific/Apia")
    edges = bucket_edges(datetime(2011, 12, 29, 12, tzinfo=UTC), datetime(2012, 1, 1, tzinfo=UTC), "1d", zone)
    assert [edge.astimezone(zone).day for edge in edges] == [29, 31, 1, 2]
