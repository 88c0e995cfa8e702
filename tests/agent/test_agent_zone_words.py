"""Time zones that people write behind or beside a time: read, applied, or asked back, and never dropped."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from sentinel_rag.agent.offline.reading import read_question
from sentinel_rag.language.times.kinds import Now

NOW = datetime(2024, 7, 23, 12, tzinfo=UTC)


def window(question: str, zone: str = "UTC") -> tuple[str | None, str | None]:
    reading = read_question(question, Now(NOW, ZoneInfo(zone)))
    assert reading.window is not None
    assert not reading.unknown_words
    arguments = reading.window.arguments()
    return arguments.get("start_time"), arguments.get("end_time")


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("alerts yesterday between 9am and 11am utc", "2024-07-22T09:00:00Z", "2024-07-22T11:00:00Z"),
        ("alerts 09:00-11:00 yesterday utc", "2024-07-22T09:00:00Z", "2024-07-22T11:00:00Z"),
        ("alerts from 9 to 11 yesterday (UTC+2)", "2024-07-22T07:00:00Z", "2024-07-22T09:00:00Z"),
        ("alerts on 2 july CEST", "2024-07-01T22:00:00Z", "2024-07-02T22:00:00Z"),
        ("alerts on 2024-07-02 utc", "2024-07-02T00:00:00Z", "2024-07-03T00:00:00Z"),
        ("alerts at 2024-07-02 09:00 EST", "2024-07-02T14:00:00Z", "2024-07-02T14:01:00Z"),
        ("alerts on 2024-07-02 at 9 est", "2024-07-02T14:00:00Z", "2024-07-02T14:01:00Z"),
        ("alerts at 2024-07-02 09:00 utc+5:30", "2024-07-02T03:30:00Z", "2024-07-02T03:31:00Z"),
        ("alerts since 2024-07-02 09:00 +02:00", "2024-07-02T07:00:00Z", None),
        ("alerts since 2024-07-02T09:00:00-05:00", "2024-07-02T14:00:00Z", None),
    ],
)
def test_a_zone_that_is_said_is_the_zone_of_the_time(question: str, start: str, end: str | None) -> None:
    assert window(question) == (start, end)
    if "since" not in question:
        assert window(question, "Asia/Tokyo") == (start, end)


def test_local_time_is_the_sessions_time() -> None:
    assert window("alerts on july 2 in local time", "Asia/Tokyo")[0] == "2024-07-01T15:00:00Z"


@pytest.mark.parametrize("zone", ["IST", "CST", "BST"])
def test_an_abbreviation_of_several_zones_is_asked_back(zone: str) -> None:
    reading = read_question(f"alerts since 2024-07-02 09:00 {zone}", Now(NOW, UTC))
    assert reading.time_question is not None
    assert zone in reading.time_question.sentence
    assert "UTC+05:30" in reading.time_question.sentence


def test_an_offset_that_is_none_is_asked_back() -> None:
    reading = read_question("alerts on 2024-07-02 (UTC+37)", Now(NOW, UTC))
    assert reading.time_question is not None
    assert "no offset" in reading.time_question.sentence
