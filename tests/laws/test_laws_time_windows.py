"""Laws of the time grammar: it reads back every window that can be written, and no text breaks it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import example, given
from hypothesis import strategies as st

from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.language.times import spans
from sentinel_rag.language.times.kinds import Now
from sentinel_rag.language.times.reader import read_time

ZONES = st.sampled_from(
    ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/Sao_Paulo"]
).map(ZoneInfo)
MOMENTS = st.datetimes(datetime(2001, 1, 1), datetime(2038, 1, 1), timezones=st.just(UTC)).map(
    lambda moment: moment.replace(microsecond=0)
)
NOW = Now(datetime(2024, 7, 23, 12, tzinfo=UTC), UTC)


@given(st.text(max_size=200) | st.from_regex(r"[ 0-9a-z:/.+-]{0,60}", fullmatch=True), MOMENTS, ZONES)
@example("0h", NOW.moment, ZoneInfo("UTC"))
@example("last 0 days", NOW.moment, ZoneInfo("UTC"))
def test_any_text_is_read_without_an_error_and_keeps_its_length(text: str, moment: datetime, zone: ZoneInfo) -> None:
    reading = read_time(text, Now(moment, zone))
    assert len(reading.rest) == len(text)
    if reading.window is not None and reading.window.start and reading.window.end:
        assert reading.window.start < reading.window.end


@given(MOMENTS, st.timedeltas(timedelta(seconds=1), timedelta(days=400)), ZONES)
def test_a_range_of_iso_times_is_exactly_that_range(start: datetime, width: timedelta, zone: ZoneInfo) -> None:
    end = (start + width).replace(microsecond=0)
    text = f"alerts between {format_time(start)} and {format_time(end)}"
    reading = read_time(text, Now(NOW.moment, zone))
    if end == start:
        return
    assert reading.window is not None
    assert (reading.window.start, reading.window.end) == (start, end)


@given(st.dates(date(2001, 1, 1), date(2037, 12, 31)), ZONES)
def test_a_named_date_is_its_whole_local_day(day: date, zone: ZoneInfo) -> None:
    expected = spans.days(day, day, zone)
    for text in (
        day.isoformat(),
        f"{day.day} {day:%B} {day.year}",
        f"{day:%B} {day.day}, {day.year}",
        f"{day:%d.%m.%Y}",
    ):
        reading = read_time(f"alerts on {text} please", Now(NOW.moment, zone))
        assert reading.window is not None, text
        assert (reading.window.start, reading.window.end) == (expected.start, expected.end), text


@given(st.dates(date(2001, 1, 1), date(2037, 12, 31)), ZONES)
def test_days_meet_without_gap_or_overlap(day: date, zone: ZoneInfo) -> None:
    today, tomorrow = spans.days(day, day, zone), spans.days(day + timedelta(days=1), day + timedelta(days=1), zone)
    assert today.end == tomorrow.start
    assert timedelta(hours=22) <= today.end - today.start <= timedelta(hours=26)


@given(st.integers(1, 400), st.sampled_from(["hours", "days", "minutes", "weeks"]), MOMENTS)
def test_a_relative_window_ends_now_and_is_as_long_as_said(count: int, unit: str, moment: datetime) -> None:
    reading = read_time(f"show alerts of the last {count} {unit}", Now(moment, UTC))
    assert reading.window is not None
    assert reading.window.end == moment
    assert reading.window.start == moment - timedelta(**{unit: count})


@given(MOMENTS, ZONES)
def test_the_week_before_this_one_is_last_week(moment: datetime, zone: ZoneInfo) -> None:
    now = Now(moment, zone)
    this, last = read_time("this week", now).window, read_time("last week", now).window
    assert this is not None
    assert last is not None
    assert last.end == this.start
    assert this.start is not None
    assert this.start <= moment
