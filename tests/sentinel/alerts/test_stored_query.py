"""The query that an alert holds: taken apart, with the window that the rule looked at, whoever wrote the row."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rag.contracts.query_results import TimeWindow, format_time
from sentinel_rag.sentinel.alerts.stored_query import (
    LONGEST_WINDOW,
    AlertQuery,
    stored_query,
    stored_span,
    stored_time,
    taken_apart,
)

START = datetime(2024, 7, 18, 12, 42, 18, tzinfo=UTC)


def stored(properties: Any, **over: Any) -> AlertQuery | None:
    text = properties if isinstance(properties, str) else json.dumps(properties)
    written = datetime(2024, 8, 1, 12, 47, tzinfo=UTC)
    times = {"StartTime": written - timedelta(minutes=10), "EndTime": written - timedelta(minutes=5)}
    return stored_query({"ExtendedProperties": text, "TimeGenerated": written, **times, **over})


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-07-18 12:42:18Z", START),
        ("2024-07-18T12:42:18Z", START),
        ("2024-07-18 12:42:18", START),
        ("2024-07-18 12:42:18 UTC", START),
        ("2024-07-18T12:42:18.0385825Z", START + timedelta(microseconds=38582)),
        ("2024-07-18T14:42:18+02:00", START),
        ("2024-07-18T12:42:18+00:00Z", START),
        ("7/18/2024 12:42:18 PM", START),
        ("07/18/2024 12:42:18", START),
        ("7/18/2024, 12:42:18.000 PM", START),
        ("18/07/2024 12:42:18", START),
        ("7/8/2024 1:02:03 AM", datetime(2024, 7, 8, 1, 2, 3, tzinfo=UTC)),
        ("7/8/2024 12:00:00 AM", datetime(2024, 7, 8, tzinfo=UTC)),
        ("", None),
        (None, None),
        ("yesterday", None),
        ("13/13/2024 1:00:00", None),
        ("7/18/2024 13:00:00 PM", None),
        ("0001-01-01T00:00:00+14:00", None),
        (17, None),
    ],
)
def test_times_of_every_writing(text: Any, moment: datetime | None) -> None:
    assert stored_time(text) == moment


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("14.00:00:00", timedelta(days=14)),
        ("05:00:00", timedelta(hours=5)),
        ("00:05:00", timedelta(minutes=5)),
        ("P14D", timedelta(days=14)),
        ("PT5H", timedelta(hours=5)),
        ("P1DT12H", timedelta(days=1, hours=12)),
        ("00:00:00", None),
        ("-01:00:00", None),
        ("P", None),
        ("long", None),
        (None, None),
        ("P99999999999D", None),
    ],
)
def test_spans_of_every_writing(text: Any, span: timedelta | None) -> None:
    assert stored_span(text) == span


def test_the_window_that_the_alert_tells_is_taken() -> None:
    """Field report G4."""
    found = stored(
        {
            "Query": "SigninLogs | take 5",
            "Query Start Time UTC": "7/18/2024 12:42:18 PM",
            "Query End Time UTC": "2024-08-01T12:42:19.0000000Z",
            "Search Query Results Overall Count": "21",
            "Analytic Rule Name": "A rule",
        }
    )
    assert found is not None
    assert found.window == TimeWindow(START, datetime(2024, 8, 1, 12, 42, 19, tzinfo=UTC))
    assert (found.event_count, found.rule_name, found.candidates) == (21, "A rule", ("SigninLogs | take 5",))
    assert found.query_now == found.window.end


@pytest.mark.parametrize(
    ("properties", "start", "end", "words"),
    [
        ({"Query End Time UTC": "2024-08-01 12:00:00", "Query Period": "05:00:00"}, "07", "12", "end and the period"),
        ({"Query Start Time UTC": "2024-08-01 07:00:00", "QueryPeriod": "PT5H"}, "07", "12", "start and the period"),
    ],
)
def test_a_missing_end_follows_from_the_period(properties: Any, start: str, end: str, words: str) -> None:
    found = stored({"Query": "T", **properties})
    assert found is not None
    assert found.window.to_dict() == {"start": f"2024-08-01T{start}:00:00Z", "end": f"2024-08-01T{end}:00:00Z"}
    assert words in found.told_by


@pytest.mark.parametrize(
    ("properties", "margin"),
    [
        ({}, timedelta(hours=1)),
        ({"Query Period": "1.00:00:00"}, timedelta(days=1)),
        ({"Query Start Time UTC": "2024-08-02", "Query End Time UTC": "2024-08-01"}, timedelta(hours=1)),
        ({"Query Start Time UTC": "no time", "Query End Time UTC": "neither"}, timedelta(hours=1)),
    ],
)
def test_without_a_window_the_activity_with_a_stated_margin_is_taken(properties: Any, margin: timedelta) -> None:
    found = stored({"Query": "T", **properties})
    assert found is not None
    activity = datetime(2024, 8, 1, 12, 37, tzinfo=UTC), datetime(2024, 8, 1, 12, 42, tzinfo=UTC)
    assert found.window == TimeWindow(activity[0] - margin, activity[1] + margin)
    assert f"{margin / timedelta(hours=1):g} hour" in found.told_by


def test_an_alert_without_times_is_placed_by_its_record() -> None:
    found = stored({"Query": "T"}, StartTime=None, EndTime=None)
    assert found is not None
    assert found.window.to_dict() == {"start": "2024-08-01T11:47:00Z", "end": "2024-08-01T13:47:00Z"}


def test_a_window_of_years_is_cut_and_told() -> None:
    """Whoever writes the row chooses the window; a scan of everything is not theirs to start."""
    found = stored({"Query": "T", "Query Start Time UTC": "2001-01-01", "Query End Time UTC": "2024-08-01"})
    assert found is not None
    assert found.window.end == datetime(2024, 8, 1, tzinfo=UTC)
    assert found.window.start == datetime(2024, 8, 1, tzinfo=UTC) - LONGEST_WINDOW
    assert "only its last 31 days" in found.told_by


@pytest.mark.parametrize(
    ("text", "moment", "body"),
    [
        ("SigninLogs", None, "SigninLogs"),
        (
            "// why\r\nset query_now = datetime(2024-08-01T12:42:18.0385825Z);\r\nSquid\r\n| where a == 1;\r\n",
            "2024-08-01T12:42:18.038582Z",
            "Squid\r\n| where a == 1",
        ),
        ("SET query_now=datetime('2024-08-01') ;\nT", "2024-08-01T00:00:00Z", "T"),
        ("set query_now = datetime(never);\nT", None, "set query_now = datetime(never);\nT"),
        ("set truncationmaxrecords=5;\nT", None, "set truncationmaxrecords=5;\nT"),
        (
            "set query_now = datetime(2024-08-01);\nset notruncation;\nT",
            "2024-08-01T00:00:00Z",
            "set notruncation;\nT",
        ),
        ("T // set query_now = datetime(2024-08-01);", None, "T // set query_now = datetime(2024-08-01);"),
        ("T | summarize count() by x | render timechart with (title='x')", None, "T | summarize count() by x"),
        ("T | where a == 'x | render y'", None, "T | where a == 'x | render y'"),
        ('T | where a == "x | render y"; ', None, 'T | where a == "x | render y"'),
        ('T | render piechart with (title="a;b");', None, "T"),
        ("T | render piechart with (title='a|b')", None, "T"),
        ("T | take 1 // | render x", None, "T | take 1 // | render x"),
        ("T | where Text == '| render x' | take 1", None, "T | where Text == '| render x' | take 1"),
    ],
)
def test_only_the_setting_of_the_clock_is_taken_off(text: str, moment: str | None, body: str) -> None:
    found, rest = taken_apart(text)
    assert (None if found is None else format_time(found), rest) == (moment, body)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('T | where a == \\"x\\"\\r\\n| take 1', 'T | where a == "x"\r\n| take 1'),
        ("T | where a == &quot;x&quot; and b &gt; 1", 'T | where a == "x" and b > 1'),
        (r"T | where a == \"C:\\Windows\"", r'T | where a == "C:\Windows"'),
    ],
)
def test_a_query_that_was_written_into_a_string_twice_has_its_first_form_among_the_candidates(
    text: str, wanted: str
) -> None:
    found = stored({"Query": text})
    assert found is not None
    assert found.text == text
    assert found.candidates[0] == text
    assert wanted in found.candidates


def test_a_query_with_backslashes_of_its_own_stays_first_as_it_is() -> None:
    found = stored({"Query": 'T | where Path has @"C:\\Temp" and x matches regex "\\\\d+"'})
    assert found is not None
    assert found.candidates[0] == 'T | where Path has @"C:\\Temp" and x matches regex "\\\\d+"'


@pytest.mark.parametrize(
    "properties", ["", "{", "[]", "null", "{}", '{"Query": ""}', '{"Query": null}', '{"Query":" "}']
)
def test_a_row_without_a_query_has_none(properties: str) -> None:
    assert stored(properties) is None


def test_the_query_of_the_rule_is_kept_beside_that_of_the_alert() -> None:
    both = stored({"Query": "let e = datatable(a:string)['x']; e", "OriginalQuery": "T | where a == 'x'"})
    assert both is not None
    assert (both.text, both.rule_query) == ("let e = datatable(a:string)['x']; e", "T | where a == 'x'")
    alone = stored({"OriginalQuery": "T | where a == 'x'"})
    assert alone is not None
    assert (alone.text, alone.rule_query) == ("T | where a == 'x'", "")


def test_the_one_real_alert_of_a_rule(shared_data: Path) -> None:
    """Field report G4: the query of the real row, with its comment, its clock, its window and its count."""
    text = (shared_data / "secrl" / "extracted_alerts.csv").read_text(encoding="utf-8-sig")
    lines = csv.reader(text.splitlines(keepends=True), delimiter="❖")
    header = next(lines)
    rows = [dict(zip(header, line, strict=True)) for line in lines]
    found = [
        stored(row["ExtendedProperties"], TimeGenerated=stored_time(row["TimeGenerated"]))
        for row in rows
        if '"Query"' in row["ExtendedProperties"]
    ]
    assert len(found) == 1
    query = found[0]
    assert query is not None
    assert query.window.to_dict() == {"start": "2024-07-18T12:42:18Z", "end": "2024-08-01T12:42:19Z"}
    assert format_time(query.query_now) == "2024-08-01T12:42:18.038582Z"
    assert query.event_count == 21
    assert query.candidates[0].startswith("SquidProxy\r\n| where TimeGenerated > ago(1h)")
    assert query.candidates[0].endswith("TrafficLightProtocolLevel")
    assert sum(stored(row["ExtendedProperties"]) is None for row in rows) == 188


@given(
    st.dictionaries(
        st.sampled_from(
            ["Query", "OriginalQuery", "Query Start Time UTC", "Query End Time UTC", "Query Period", "Event Count"]
        ),
        st.one_of(st.text(max_size=60), st.integers(), st.none(), st.lists(st.integers(), max_size=2), st.floats()),
    )
)
def test_no_row_breaks_it_and_every_window_is_bounded(properties: dict[str, Any]) -> None:
    found = stored(properties)
    if found is not None:
        assert found.candidates
        assert found.window.start is not None
        assert found.window.end is not None
        assert timedelta(0) < found.window.end - found.window.start <= LONGEST_WINDOW * 3
