"""Field reports about incidents and alerts, each as its whole kind, on real rows where these show it.

Every test asks as a person does (the offline analyst over the real tools) or as a model does (the tools themselves).
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from asking import Conversation, shown
from estate_rows import alert, guid, incident

from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.query_results import TimeWindow, parse_time

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def raw_alerts(shared_data: Path) -> list[Mapping[str, str]]:
    """The real alert rows as the file holds them."""
    text = (shared_data / "secrl" / "extracted_alerts.csv").read_text(encoding="utf-8-sig")
    lines: Iterator[list[str]] = csv.reader(text.splitlines(keepends=True), delimiter="❖")
    header = next(lines)
    return [dict(zip(header, line, strict=True)) for line in lines]


# A1, A2: dedupe


def versions(number: int, count: int) -> list[dict[str, Any]]:
    """`count` rows of one incident, High in all but the newest."""
    return [
        incident(
            number,
            f"2024-08-01T{place:02d}:00:{number % 60:02d}Z",
            CreatedTime="2024-08-01T00:00:00Z",
            Severity="Low" if place == count - 1 else "High",
            Status="Closed" if place == count - 1 and number % 2 else "New",
        )
        for place in range(count)
    ]


@pytest.mark.requirement("TOOL-6")
async def test_many_versions_of_an_incident_are_one_incident_with_its_newest_values(serving: Any) -> None:
    """Field reports A1 and A2: 20 incidents of up to 20 rows each are 20, in the tool, the summary and the answer."""
    served = serving(SecurityIncident=[row for number in range(1, 21) for row in versions(number, number)])
    for status, count in (("New", 10), ("Closed", 10)):
        result = await served.ask("query_incidents", status=status)
        assert (result.coverage.rows_total, result.summary["by_status"]) == (count, {status: count})
    summary = (await served.ask("get_threat_summary")).summary["incidents"]
    assert (summary["total"], summary["by_severity"]) == (20, {"Low": 20})
    told = Conversation(served)
    assert (await told.ask("How many high severity incidents are there?")).outcome is Outcome.NO_DATA
    assert "20 incidents" in (await told.ask("How many incidents are there?")).text


# A4: every way to name an incident


@pytest.mark.parametrize(
    ("question", "number"),
    [
        ("What is incident 55 about?", 55),
        ("What is #55 about?", 55),
        ("What is Defender incident 384 about?", 55),
        ("What is incident 384 about?", 55),
        ("tell me about https://security.microsoft.com/incidents/384?tid=a59fc703-72db-43e0-8a21-0494303b7220", 55),
    ],
)
async def test_every_way_to_name_a_real_incident_leads_to_it(real: Any, question: str, number: int) -> None:
    """Field report A4."""
    answer = await Conversation(real).ask(question)
    assert answer.outcome is Outcome.ANSWERED
    assert f"Incident {number}:" in answer.text


async def test_a_guid_and_both_portal_addresses_lead_to_the_incident(real: Any) -> None:
    """Field report A4: what a playbook hands over (IncidentName) is no number and still the incident."""
    row = (await real.ask("get_incident_detail", incident="55")).rows[0]
    for reference in (row["incident_name"], row["incident_name"].upper(), row["url"], row["defender_url"]):
        answer = await Conversation(real).ask(f"What is incident {reference} about?")
        assert "Incident 55:" in answer.text, reference
        assert (await real.ask("get_incident_detail", incident=reference)).rows[0]["number"] == 55


async def test_a_number_with_two_meanings_is_one_of_sentinel_and_the_other_is_told(serving: Any) -> None:
    """Field report A4: for 67 of 408 measured incidents the Defender id is another one's Sentinel number."""
    served = serving(
        SecurityIncident=[
            incident(55, "2024-08-01T08:00:00Z", Title="By its Sentinel number"),
            incident(99, "2024-08-01T09:00:00Z", Title="By its Defender id", ProviderIncidentId="55"),
        ]
    )
    told = Conversation(served)
    answer = await told.ask("What is incident 55 about?")
    assert "By its Sentinel number" in answer.text
    assert "the Defender id of Sentinel incident 99" in answer.text
    assert "By its Defender id" in (await told.ask("What is incident 99 about?")).text


# A6: alert to incident


async def test_every_real_alert_of_an_incident_leads_to_it_and_its_page(real: Any) -> None:
    """Field report A6: the row of an alert has no incident; the incident's AlertIds lead there, to IncidentUrl."""
    alerts = await real.ask("query_alerts", incident="55", limit=100)
    assert len(alerts.rows) == 27
    for row in alerts.rows[::9]:
        detail = await real.ask("get_incident_detail", incident=str(row["alert_id"]))
        assert [found["number"] for found in detail.rows] == [55]
        assert detail.summary["matched_by"] == "alert_id"
        assert detail.rows[0]["url"].startswith("https://portal.azure.com/")
    answer = await Conversation(real).ask(f"Which incident does alert {alerts.rows[0]['alert_id']} belong to?")
    assert "belongs to incident 55" in answer.text
    assert detail.rows[0]["url"] in answer.text
    assert detail.rows[0]["defender_url"] in answer.text


# A7: the row of an alert is a snapshot


async def test_the_newest_row_of_an_alert_wins_and_the_answer_says_when_it_was_written(serving: Any) -> None:
    """Field report A7: what Defender shows may be newer than the row; the row's ProcessingEndTime is told."""
    served = serving(
        SecurityIncident=[incident(1, "2024-08-01T10:00:00Z", AlertIds=[guid("alert moving")])],
        SecurityAlert=[
            alert("moving", "2024-08-01T08:00:00Z", AlertSeverity="Low", ProcessingEndTime="2024-08-01T08:00:01Z"),
            alert("moving", "2024-08-01T09:30:00Z", AlertSeverity="High", ProcessingEndTime="2024-08-01T09:30:02Z"),
            alert("moving", "2024-08-01T09:00:00Z", AlertSeverity="Medium", ProcessingEndTime="2024-08-01T09:00:03Z"),
        ],
    )
    row = (await served.ask("query_alerts")).rows[0]
    assert (row["severity"], row["row_time"]) == ("High", "2024-08-01T09:30:02Z")
    answer = await Conversation(served).ask(f"details of alert {guid('alert moving')}")
    assert "Told as of 2024-08-01 09:30:02 UTC (ProcessingEndTime)" in answer.text
    assert "severity High" in answer.text


# D1: tokens


async def test_a_hundred_real_alerts_cost_far_less_than_their_rows_and_one_comes_in_full_on_demand(
    real: Any, raw_alerts: list[Mapping[str, str]]
) -> None:
    """Field report D1: 100 alerts were 135,000 characters; compact rows with resolved entities are not."""
    result = await real.ask("query_alerts", limit=100)
    text = json.dumps(result.to_dict()["rows"], ensure_ascii=False)
    raw = sum(len(value) for row in raw_alerts for value in row.values()) / len(raw_alerts) * 100
    assert len(result.rows) == 100
    assert len(text) < 95_000
    assert len(text) < raw / 6
    assert "$ref" not in text
    assert all(value not in (None, "", []) for row in result.rows for value in row.values())
    richest = max(result.rows, key=lambda row: row["entity_count"])
    full = (await real.ask("query_alerts", alert_id=richest["alert_id"])).rows[0]
    assert len(full["entities"]) == min(40, richest["entity_count"])
    assert {"description", "provider", "remediation_steps", "url"} <= full.keys()


# E1: absolute windows


@pytest.mark.parametrize(
    "question",
    [
        "Show alerts between 09:45 and 09:48 UTC on 2 July 2024",
        "alerts from 2024-07-02 09:45 to 09:48 UTC",
        "alerts from 2024-07-02 09:45 to 2024-07-02 09:48 UTC",
        "alerts on 2 July 2024 between 9:45 am and 9:48 am UTC",
        "alerts from 2024-07-02T09:45:00Z to 2024-07-02T09:48:00Z",
    ],
)
async def test_an_absolute_minute_is_asked_for_exactly(real: Any, question: str) -> None:
    """Field report E1."""
    told = Conversation(real, timezone="America/New_York")
    answer = await told.ask(question)
    tool, arguments = told.calls[-1]
    assert tool == "query_alerts"
    assert (arguments["start_time"], arguments["end_time"]) == ("2024-07-02T09:45:00Z", "2024-07-02T09:48:00Z")
    assert "9 alerts match" in answer.text
    assert "2024-07-02 09:45:00 UTC (05:45:00 EDT)" in answer.text


@pytest.mark.parametrize(
    ("question", "minutes"),
    [("+-10 minutes around alert [2]", 10), ("10 min before and after [2]", 10), ("±30 seconds around alert 2", 0.5)],
)
async def test_a_window_around_a_listed_alert_has_exact_bounds(real: Any, question: str, minutes: float) -> None:
    """Field report E1: '+-10 min around alert [2]'."""
    told = Conversation(real)
    await told.ask("Show the newest 5 alerts")
    second = (await real.ask("query_alerts", limit=5)).rows[1]
    await told.ask(question)
    tool, arguments = told.calls[-1]
    assert tool == "query_alerts"
    middle = parse_time(str(second["time"]))
    start, end = parse_time(arguments["start_time"]), parse_time(arguments["end_time"])
    assert (middle - start).total_seconds() == (end - middle).total_seconds() == minutes * 60


# E4: today and yesterday


@pytest.mark.parametrize(
    ("now", "question", "start", "end", "hours"),
    [
        ("2024-08-02T23:30:00Z", "alerts today", "2024-08-02T22:00:00Z", "2024-08-03T22:00:00Z", 24),
        ("2024-08-02T23:30:00Z", "alerts yesterday", "2024-08-01T22:00:00Z", "2024-08-02T22:00:00Z", 24),
        ("2024-04-01T10:00:00Z", "alerts yesterday", "2024-03-30T23:00:00Z", "2024-03-31T22:00:00Z", 23),
        ("2024-10-28T10:00:00Z", "alerts yesterday", "2024-10-26T22:00:00Z", "2024-10-27T23:00:00Z", 25),
        ("2024-10-27T12:00:00Z", "incidents today", "2024-10-26T22:00:00Z", "2024-10-27T23:00:00Z", 25),
    ],
)
async def test_today_and_yesterday_are_days_of_the_session_and_say_so(
    real: Any, now: str, question: str, start: str, end: str, hours: int
) -> None:
    """Field report E4: no zone of somebody else hides hours, and a day of a clock change has 23 or 25 of them."""
    told = Conversation(real, now=parse_time(now), timezone="Europe/Berlin")
    answer = await told.ask(question)
    _, arguments = told.calls[0]
    assert (arguments["start_time"], arguments["end_time"]) == (start, end)
    assert (parse_time(end) - parse_time(start)).total_seconds() == hours * 3600
    assert re.search(r"Window: from .* UTC \(.* CES?T\) to before .* UTC \(.* CES?T\)\.", answer.text)


async def test_a_trend_says_in_which_zone_its_days_begin(real: Any) -> None:
    """Field report E4: buckets of a day are days of the session."""
    told = Conversation(real, timezone="Asia/Kolkata")
    answer = await told.ask("Alerts per day in July 2024")
    assert told.calls[-1][1]["timezone"] == "Asia/Kolkata"
    assert "A day begins at midnight of the time zone Asia/Kolkata." in answer.text
    starts = [row[0] for row in answer.tables[-1].rows]
    assert all("(" in start and "00:00:00 IST" in start for start in starts)


# E5: which time, and late rows


@pytest.mark.parametrize(
    ("question", "column"),
    [
        ("incidents in July 2024", "CreatedTime"),
        ("incidents closed in July 2024", "ClosedTime"),
        ("incidents updated in July 2024", "LastModifiedTime"),
        ("alerts in July 2024", "TimeGenerated"),
        ("alerts between 09:45 and 09:48 UTC on 2 July 2024", "StartTime"),
        ("top accounts in July 2024", "TimeGenerated"),
    ],
)
async def test_an_answer_names_the_time_column_it_used(real: Any, question: str, column: str) -> None:
    """Field report E5."""
    told = Conversation(real)
    answer = await told.ask(question)
    assert any(f" by {column}" in line for line in answer.footnote), answer.footnote


async def test_alerts_that_were_recorded_late_are_flagged(serving: Any) -> None:
    """Field report E5: TimeGenerated is when the row came; the activity may lie before the window."""
    served = serving(
        SecurityAlert=[
            alert("late", "2024-08-02T10:00:00Z", StartTime="2024-07-30T10:00:00Z", EndTime="2024-07-30T11:00:00Z"),
            alert("in time", "2024-08-02T11:00:00Z"),
        ]
    )
    result = await served.ask("query_alerts", time_window="last_24h")
    late = [note for note in result.notes if "hours late" in note]
    assert late == [
        "1 of the alerts shown was recorded (TimeGenerated) in the window, after activity that ended before it "
        "(EndTime): up to 71.0 hours late."
    ]
    answer = await Conversation(served).ask("alerts of the last 24 hours")
    assert "71.0 hours late" in answer.text
    assert not any("hours late" in note for note in (await served.ask("query_alerts")).notes)


# G1: references are no entities


@pytest.mark.requirement("TOOL-7")
async def test_elements_that_only_point_at_others_are_never_counted(
    real: Any, raw_alerts: list[Mapping[str, str]]
) -> None:
    """Field report G1: 1,538 of 2,501 real elements are bare references; a ranking counts distinct alerts."""
    elements = [element for row in raw_alerts for element in json.loads(row["Entities"] or "[]")]
    bare = [element for element in elements if set(element) == {"$ref"}]
    assert (len(elements), len(bare)) == (2501, 1538)
    addresses: Counter[str] = Counter()
    for row in raw_alerts:
        addresses.update(set(_addresses(json.loads(row["Entities"] or "[]"))))
    ranked = await real.ask("get_top_entities", kind="ip", limit=100)
    named = {row["name"]: row["alerts"] for row in ranked.rows if not row["name"].startswith("(unnamed")}
    assert named == dict(addresses)
    assert ranked.summary["alerts_considered"] == 189


def _addresses(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _addresses(item)
    elif isinstance(value, dict):
        if value.get("Type") == "ip" and value.get("Address"):
            yield value["Address"]
        for item in value.values():
            yield from _addresses(item)


# G2: custom details


@pytest.mark.requirement("TOOL-7")
async def test_custom_details_of_every_shape_are_told_and_none_is_an_error(serving: Any) -> None:
    """Field report G2: line breaks inside the JSON are taken, and what is no JSON comes as it stands."""
    shapes = {
        "crlf": '{"Custom Details": "{\\"Ticket\\":[\\"A\\r\\nB\\"]}"}',
        "raw crlf": '{"Custom Details": "{\\"Ticket\\":[\\"C\r\nD\\"]}"}',
        "broken": json.dumps({"Custom Details": '{"Ticket": ["E"'}),
        "object": json.dumps({"Custom Details": {"Ticket": ["F"], "Rows": 3}}),
        "none": json.dumps({"Custom Details": ""}),
        "properties broken": '{"Custom Details": ',
    }
    served = serving(
        SecurityIncident=[incident(1, "2024-08-01T08:00:00Z", AlertIds=[guid(f"alert {name}") for name in shapes])],
        SecurityAlert=[
            alert(name, f"2024-08-01T07:0{place}:00Z", ExtendedProperties=text)
            for place, (name, text) in enumerate(shapes.items())
        ],
    )
    rows = {row["name"]: row for row in (await served.ask("query_alerts", order="oldest")).rows}
    assert rows["crlf"]["custom_details"] == {"Ticket": ["A\r\nB"]}
    assert rows["raw crlf"]["custom_details"] == {"Ticket": ["C\r\nD"]}
    assert rows["broken"]["custom_details"] == '{"Ticket": ["E"'
    assert rows["object"]["custom_details"] == {"Ticket": ["F"], "Rows": 3}
    assert not any("custom_details" in rows[name] for name in ("none", "properties broken"))
    detail = (await served.ask("get_incident_detail", incident="1")).rows[0]
    assert detail["custom_details"] == {
        "Ticket": ["A B", "C D", "F"],
        "(not readable as JSON)": ['{"Ticket": ["E"'],
        "Rows": ["3"],
    }
    told = Conversation(served)
    answer = await told.ask("What are the custom details of incident 1?")
    assert answer.outcome is Outcome.ANSWERED
    assert {("Ticket", "F"), ("Rows", "3")} <= {tuple(row) for table in answer.tables for row in table.rows}
    one = await told.ask(f"details of alert {guid('alert broken')}")
    assert "no readable JSON" in one.text
    assert '{"Ticket": ["E"' in shown(one).replace("\\", "")


async def test_windows_of_these_tests_are_what_they_say(real: Any) -> None:
    """The real rows lie where the questions above look."""
    everything = await real.ask("query_alerts")
    assert everything.coverage.window == TimeWindow()
    assert everything.coverage.table_rows == 189
