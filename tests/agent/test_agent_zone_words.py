"""Time zones that people write behind or beside a time: read, applied, or asked back, and never dropped."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from sentinel_rag.language.frames import Frame, Reader
from sentinel_rag.language.times import Now, read_time_in_its_zone

NOW = datetime(2024, 7, 23, 12, tzinfo=UTC)


def read(question: str, zone: str = "UTC") -> Frame:
    return Reader(lambda text: read_time_in_its_zone(text, Now(NOW, ZoneInfo(zone)))).read(question)


def window(question: str, zone: str = "UTC") -> tuple[str | None, str | None]:
    frame = read(question, zone)
    assert frame.window
    assert not frame.unread
    return frame.window.get("start_time"), frame.window.get("end_time")


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
    problem = read(f"alerts since 2024-07-02 09:00 {zone}").time_problem
    assert zone in problem
    assert "UTC+05:30" in problem


def test_an_offset_that_is_none_is_asked_back() -> None:
    problem = read("alerts on 2024-07-02 (UTC+37)").time_problem
    assert "no offset" in problem
