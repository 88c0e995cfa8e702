"""What analysts write about time, and the exact window that it means."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from sentinel_rag.language.times.kinds import Now
from sentinel_rag.language.times.reader import read_time

TUESDAY = Now(datetime(2024, 7, 23, 12, tzinfo=UTC), UTC)


def window(text: str, now: Now = TUESDAY) -> dict[str, str] | None:
    reading = read_time(text, now)
    assert reading.question is None, reading.question
    return None if reading.window is None else reading.window.arguments()


def absolute(start: str | None, end: str | None) -> dict[str, str]:
    return {name: f"{side}Z" for name, side in (("start_time", start), ("end_time", end)) if side is not None}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("last 24 hours", "last_24h"),
        ("in the past hour", "last_1h"),
        ("past 60 minutes", "last_1h"),
        ("last 3 days", "last_3d"),
        ("72h", "last_3d"),
        ("last_7d", "last_7d"),
        ("the past week", "last_7d"),
        ("last 7 days", "last_7d"),
        ("past two weeks", "last_14d"),
        ("over the last fortnight", "last_14d"),
        ("past 30 days", "last_30d"),
        ("past month", "last_30d"),
        ("PT1H", "last_1h"),
        ("P7D", "last_7d"),
        ("last PT24H", "last_24h"),
        ("in the last day", "last_24h"),
        ("past few days", "last_3d"),
    ],
)
def test_a_window_that_the_tools_know_is_asked_for_by_name(text: str, name: str) -> None:
    """Field report E3, in words of a question."""
    assert window(f"alerts {text}") == {"time_window": name}


@pytest.mark.requirement("CHAT-8")
@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("last 90 minutes", "2024-07-23T10:30:00", "2024-07-23T12:00:00"),
        ("last 4 hours", "2024-07-23T08:00:00", "2024-07-23T12:00:00"),
        ("today", "2024-07-23T00:00:00", "2024-07-24T00:00:00"),
        ("yesterday", "2024-07-22T00:00:00", "2024-07-23T00:00:00"),
        ("today after 8 am", "2024-07-23T08:00:00", "2024-07-24T00:00:00"),
        ("today from 8 am", "2024-07-23T08:00:00", "2024-07-24T00:00:00"),
        ("yesterday evening after 20:00", "2024-07-22T20:00:00", "2024-07-23T00:00:00"),
        ("yesterday before 10:00", "2024-07-22T00:00:00", "2024-07-22T10:00:00"),
        ("yesterday until 10:00", "2024-07-22T00:00:00", "2024-07-22T10:00:00"),
        ("this morning, 6 to 9", "2024-07-23T06:00:00", "2024-07-23T09:00:00"),
        ("the day before yesterday", "2024-07-21T00:00:00", "2024-07-22T00:00:00"),
        ("this week", "2024-07-22T00:00:00", "2024-07-29T00:00:00"),
        ("last week", "2024-07-15T00:00:00", "2024-07-22T00:00:00"),
        ("the week before last", "2024-07-08T00:00:00", "2024-07-15T00:00:00"),
        ("over the weekend", "2024-07-20T00:00:00", "2024-07-22T00:00:00"),
        ("this month", "2024-07-01T00:00:00", "2024-08-01T00:00:00"),
        ("last month", "2024-06-01T00:00:00", "2024-07-01T00:00:00"),
        ("since Monday", "2024-07-22T00:00:00", None),
        ("since 2 July", "2024-07-02T00:00:00", None),
        ("since 9am", "2024-07-23T09:00:00", None),
        ("since 14:00", "2024-07-22T14:00:00", None),
        ("after 10 July 2024", "2024-07-11T00:00:00", None),
        ("after 10 July 2024 14:00", "2024-07-10T14:00:00", None),
        ("before 1 July", None, "2024-07-01T00:00:00"),
        ("until 5 July", None, "2024-07-06T00:00:00"),
        ("on Tuesday", "2024-07-23T00:00:00", "2024-07-24T00:00:00"),
        ("last Tuesday", "2024-07-16T00:00:00", "2024-07-17T00:00:00"),
        ("on Friday", "2024-07-19T00:00:00", "2024-07-20T00:00:00"),
        ("between Monday and Wednesday", "2024-07-15T00:00:00", "2024-07-18T00:00:00"),
        ("on 2024-07-02", "2024-07-02T00:00:00", "2024-07-03T00:00:00"),
        ("on 2 July 2024", "2024-07-02T00:00:00", "2024-07-03T00:00:00"),
        ("on July 2nd, 2024", "2024-07-02T00:00:00", "2024-07-03T00:00:00"),
        ("on the 2nd of July", "2024-07-02T00:00:00", "2024-07-03T00:00:00"),
        ("on 25/04/2024", "2024-04-25T00:00:00", "2024-04-26T00:00:00"),
        ("on 04/25/2024", "2024-04-25T00:00:00", "2024-04-26T00:00:00"),
        ("on 05/05/2024", "2024-05-05T00:00:00", "2024-05-06T00:00:00"),
        ("on 17.07.2024", "2024-07-17T00:00:00", "2024-07-18T00:00:00"),
        ("in July 2024", "2024-07-01T00:00:00", "2024-08-01T00:00:00"),
        ("in December", "2023-12-01T00:00:00", "2024-01-01T00:00:00"),
        ("in may", "2024-05-01T00:00:00", "2024-06-01T00:00:00"),
        ("between 09:45 and 09:48 UTC on 2 July 2024", "2024-07-02T09:45:00", "2024-07-02T09:48:00"),
        ("on 2 July 2024 between 09:45 and 09:48", "2024-07-02T09:45:00", "2024-07-02T09:48:00"),
        ("2 July 2024 09:45 - 09:48", "2024-07-02T09:45:00", "2024-07-02T09:48:00"),
        ("from 2024-07-02T09:45Z to 2024-07-02T09:48:30Z", "2024-07-02T09:45:00", "2024-07-02T09:48:30"),
        ("between 2024-07-02T11:45+02:00 and 2024-07-02T11:48+0200", "2024-07-02T09:45:00", "2024-07-02T09:48:00"),
        ("between 1 July 2024 10:00 and 2 July 2024 11:00", "2024-07-01T10:00:00", "2024-07-02T11:00:00"),
        ("from 1 July to 5 July 2023", "2023-07-01T00:00:00", "2023-07-06T00:00:00"),
        ("between 1 and 5 July", "2024-07-01T00:00:00", "2024-07-06T00:00:00"),
        ("July 1-5, 2024", "2024-07-01T00:00:00", "2024-07-06T00:00:00"),
        ("around 2024-07-02T09:45:00Z", "2024-07-02T09:35:00", "2024-07-02T09:55:00"),
        ("+-5 minutes around 2 July 2024 09:45", "2024-07-02T09:40:00", "2024-07-02T09:50:00"),
        ("within 30 minutes of 09:45 on 2 July 2024", "2024-07-02T09:15:00", "2024-07-02T10:15:00"),
        ("yesterday at 2:30 pm", "2024-07-22T14:30:00", "2024-07-22T14:31:00"),
        ("3 days ago", "2024-07-20T00:00:00", "2024-07-21T00:00:00"),
        ("older than 3 days", None, "2024-07-20T12:00:00"),
        ("since more than one week", None, "2024-07-16T12:00:00"),
        ("from yesterday morning", "2024-07-22T00:00:00", "2024-07-22T12:00:00"),
        ("from last week", "2024-07-15T00:00:00", "2024-07-22T00:00:00"),
        ("from 9 to 11 yesterday", "2024-07-22T09:00:00", "2024-07-22T11:00:00"),
        ("on the 19th", "2024-07-19T00:00:00", "2024-07-20T00:00:00"),
        ("the 30th", "2024-06-30T00:00:00", "2024-07-01T00:00:00"),
        ("first week of July", "2024-07-01T00:00:00", "2024-07-08T00:00:00"),
        ("last week of June", "2024-06-24T00:00:00", "2024-07-01T00:00:00"),
        ("last night", "2024-07-22T18:00:00", "2024-07-23T06:00:00"),
        ("on 20 July in the morning", "2024-07-20T00:00:00", "2024-07-20T12:00:00"),
        ("the afternoon of the 20th", "2024-07-20T12:00:00", "2024-07-20T18:00:00"),
        ("during the night from 19 to 20 July", "2024-07-19T18:00:00", "2024-07-20T06:00:00"),
        ("between 0915 and 1030 yesterday", "2024-07-22T09:15:00", "2024-07-22T10:30:00"),
        ("up to and including 15 July", None, "2024-07-16T00:00:00"),
        ("past 3 mths", "2024-04-24T12:00:00", "2024-07-23T12:00:00"),
        ("week 28", "2024-07-08T00:00:00", "2024-07-15T00:00:00"),
        ("since 2023", "2023-01-01T00:00:00", None),
    ],
)
def test_every_other_window_has_exact_ends(text: str, start: str | None, end: str | None) -> None:
    assert window(f"alerts {text}") == absolute(start, end)


@pytest.mark.parametrize(
    "text",
    ["what may happen", "march against crime", "incident 12", "the last incident", "alerts of host fin-ws-014",
     "top 10", "I second that", "how are things now", "version 10.0.19045"],
)  # fmt: skip
def test_words_that_only_look_like_a_time_are_none(text: str) -> None:
    assert window(text) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("alerts on 03/04/2024", "one date in Europe and another in the United States"),
        ("alerts on 31 June 2024", "not a date of the calendar"),
        ("alerts on 2024-13-01", "not a date of the calendar"),
        ("alerts of P1H", "Write PT1H"),
        ("alerts of PT2D", "Write P2D"),
        ("between 5 July 2024 and 1 July 2024", "ends before it starts"),
    ],
)
def test_what_cannot_be_read_without_guessing_is_asked(text: str, says: str) -> None:
    """Field report E3: `P1H` in a question is asked back with what was meant."""
    question = read_time(text, TUESDAY).question
    assert question is not None
    assert says in question.sentence


def test_both_readings_of_a_slashed_date_are_offered() -> None:
    question = read_time("alerts on 03/04/2024", TUESDAY).question
    assert question is not None
    assert question.replacements == ("2024-04-03", "2024-03-04")


@pytest.mark.parametrize(
    ("moment", "hours"),
    [
        (datetime(2024, 3, 31, 12, tzinfo=UTC), 23),
        (datetime(2024, 10, 27, 12, tzinfo=UTC), 25),
        (datetime(2024, 7, 2, 12, tzinfo=UTC), 24),
    ],
)
def test_a_day_follows_the_sessions_zone_through_clock_changes(moment: datetime, hours: int) -> None:
    reading = read_time("today", Now(moment, ZoneInfo("Europe/Berlin")))
    assert reading.window is not None
    assert reading.window.start is not None
    assert reading.window.end is not None
    assert reading.window.end - reading.window.start == timedelta(hours=hours)
    assert reading.window.start.astimezone(ZoneInfo("Europe/Berlin")).hour == 0


def test_the_days_name_follows_the_sessions_zone() -> None:
    late = datetime(2024, 7, 23, 23, 30, tzinfo=UTC)
    assert window("today", Now(late, ZoneInfo("Europe/Berlin"))) == absolute(
        "2024-07-23T22:00:00", "2024-07-24T22:00:00"
    )
    assert window("today", Now(late, ZoneInfo("America/New_York"))) == absolute(
        "2024-07-23T04:00:00", "2024-07-24T04:00:00"
    )


def test_a_zone_that_is_said_wins_over_the_sessions() -> None:
    berlin = Now(datetime(2024, 7, 23, 12, tzinfo=UTC), ZoneInfo("Europe/Berlin"))
    assert window("between 09:45 and 09:48 UTC on 2 July 2024", berlin) == absolute(
        "2024-07-02T09:45:00", "2024-07-02T09:48:00"
    )
    assert window("between 09:45 and 09:48 on 2 July 2024", berlin) == absolute(
        "2024-07-02T07:45:00", "2024-07-02T07:48:00"
    )


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("from 2024-07-02 02:00 to 02:30 UTC", "2024-07-02T02:00:00Z", "2024-07-02T02:30:00Z"),
        ("from 2024-07-02 02:00 UTC to 02:30", "2024-07-02T02:00:00Z", "2024-07-02T02:30:00Z"),
        ("from 2024-07-02 23:00 to 2024-07-03 01:00 UTC", "2024-07-02T23:00:00Z", "2024-07-03T01:00:00Z"),
        ("from 2024-07-02 23:00 to 2024-07-03 01:00", "2024-07-03T03:00:00Z", "2024-07-03T05:00:00Z"),
        ("from 2024-07-02T23:00:00Z to 2024-07-03T01:00:00-04:00", "2024-07-02T23:00:00Z", "2024-07-03T05:00:00Z"),
    ],
)
def test_a_zone_that_is_said_once_is_that_of_both_ends(text: str, start: str, end: str) -> None:
    """Field report E1: what was written in UTC is not read on the session's clock."""
    reading = read_time(text, Now(datetime(2024, 7, 23, 12, tzinfo=UTC), ZoneInfo("America/New_York")))
    assert reading.window is not None
    assert reading.window.arguments() == {"start_time": start, "end_time": end}
