"""query_incidents: one incident is one row, whatever its log of versions looks like."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from estate_rows import guid, incident

from sentinel_rag.contracts.query_results import TimeWindow, note_code, parse_time

pytestmark = pytest.mark.anyio


def numbers(result: Any) -> list[Any]:
    return [row["number"] for row in result.rows]


@pytest.fixture(scope="module")
def versions(serving: Any) -> Any:
    """Six incidents in fourteen versions: lowered, reopened, retitled, closed, untouched, and one of long ago."""
    return serving(
        SecurityIncident=[
            # 1: raised High, lowered to Low, and closed.
            incident(1, "2024-07-30T08:00:00Z", Severity="High"),
            incident(1, "2024-07-30T09:00:00Z", Severity="Low", CreatedTime="2024-07-30T08:00:00Z"),
            incident(
                1,
                "2024-07-30T10:00:00Z",
                Severity="Low",
                Status="Closed",
                Classification="FalsePositive",
                CreatedTime="2024-07-30T08:00:00Z",
                ClosedTime="2024-07-30T10:00:00Z",
            ),
            # 2: closed and open again, with the closing time still set.
            incident(2, "2024-07-31T08:00:00Z", Severity="High"),
            incident(
                2,
                "2024-07-31T09:00:00Z",
                Severity="High",
                Status="Closed",
                CreatedTime="2024-07-31T08:00:00Z",
                ClosedTime="2024-07-31T09:00:00Z",
            ),
            incident(
                2,
                "2024-08-01T09:00:00Z",
                Severity="High",
                Status="Active",
                CreatedTime="2024-07-31T08:00:00Z",
                ClosedTime="2024-07-31T09:00:00Z",
                LastModifiedTime="2024-08-02T23:30:00Z",
            ),
            # 3: retitled by a merge, and assigned.
            incident(3, "2024-08-01T08:00:00Z", Title="Mail forwarding rule"),
            incident(
                3,
                "2024-08-01T08:30:00Z",
                Title="Multi-stage incident: O'Brien's \"rule\" \\ phishing",
                CreatedTime="2024-08-01T08:00:00Z",
                Owner={"assignedTo": "Ana Lima", "email": None, "userPrincipalName": "ana@contoso.example"},
                AlertIds=[guid("a"), guid("b"), guid("a").upper()],
            ),
            # 4: never touched; its counter is all that tells of alerts.
            incident(4, "2024-08-02T22:00:00Z", Severity="Informational", AdditionalData={"alertsCount": 7}),
            # 5: of June, changed yesterday.
            incident(5, "2024-06-01T08:00:00Z", Severity="High"),
            incident(5, "2024-08-02T12:00:00Z", Severity="High", CreatedTime="2024-06-01T08:00:00Z"),
            # 6: of June, never changed.
            incident(6, "2024-06-02T08:00:00Z"),
        ]
    )


@pytest.mark.requirement("TOOL-6")
async def test_each_incident_counts_once_with_the_values_of_its_newest_version(versions: Any) -> None:
    result = await versions.ask("query_incidents", order="newest")
    assert numbers(result) == [4, 3, 2, 1, 6, 5]
    assert result.coverage.rows_total == 6
    assert result.summary["by_severity"] == {"High": 2, "Medium": 2, "Low": 1, "Informational": 1}
    assert result.summary["by_status"] == {"New": 4, "Active": 1, "Closed": 1}
    first = result.rows[3]
    assert (first["severity"], first["status"], first["classification"]) == ("Low", "Closed", "FalsePositive")
    assert first["closed_time"] == "2024-07-30T10:00:00Z"


@pytest.mark.requirement("TOOL-6")
async def test_an_incident_tells_what_was_written_when_it_was_closed(serving: Any) -> None:
    said = "Known scanner of the office network."
    closed = incident(1, "2024-07-30T10:00:00Z", Status="Closed", Classification="FalsePositive")
    rows = [{**closed, "ClassificationComment": said}, incident(2, "2024-07-30T10:00:00Z")]
    rows = (await serving(SecurityIncident=rows).ask("query_incidents", order="oldest")).rows
    assert {row["number"]: row["classification_comment"] for row in rows} == {1: said, 2: None}


@pytest.mark.requirement("TOOL-6")
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"status": "New"}, [4, 3, 6, 5]),
        ({"status": "Open"}, [4, 3, 2, 6, 5]),
        ({"status": "Closed"}, [1]),
        ({"severity": "High"}, [2, 5]),
        ({"min_severity": "Medium"}, [3, 2, 6, 5]),
        ({"min_severity": "Informational"}, [4, 3, 2, 1, 6, 5]),
        ({"severity": "Low", "status": "Closed"}, [1]),
        ({"title_contains": "o'brien's"}, [3]),
        ({"title_contains": 'PHISHING "rule"'}, [3]),
        ({"title_contains": "\\"}, [3]),
        ({"title_contains": "forwarding"}, []),
        ({"owner": "lima"}, [3]),
        ({"owner": "ANA@contoso"}, [3]),
        ({"owner": "assignedTo"}, []),
        ({"owner": "Unassigned", "min_severity": "High"}, [2, 5]),
    ],
    ids=str,
)
async def test_filters_apply_to_the_newest_version_only(
    versions: Any, filters: dict[str, str], expected: list[int]
) -> None:
    result = await versions.ask("query_incidents", order="newest", **filters)
    assert numbers(result) == expected
    assert result.coverage.rows_total == len(expected)
    assert sum(result.summary["by_status"].values()) == len(expected)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("newest", [4, 3, 2, 1, 6, 5]),
        ("oldest", [5, 6, 1, 2, 3, 4]),
        ("severity", [2, 5, 3, 6, 1, 4]),
        ("updated", [2, 4, 5, 3, 1, 6]),
    ],
)
async def test_orders(versions: Any, order: str, expected: list[int]) -> None:
    assert numbers(await versions.ask("query_incidents", order=order)) == expected


async def test_without_an_order_the_most_severe_come_first_and_open_ones_before_closed(
    versions: Any, serving: Any
) -> None:
    assert numbers(await versions.ask("query_incidents")) == numbers(
        await versions.ask("query_incidents", order="severity")
    )
    rows = [
        {
            "IncidentNumber": number,
            "Severity": "High",
            "Status": status,
            "Title": "x",
            "TimeGenerated": f"2024-08-0{day}T08:00:00Z",
            "CreatedTime": f"2024-08-0{day}T08:00:00Z",
        }
        for number, status, day in ((1, "New", 1), (2, "Closed", 2), (3, "Active", 1))
    ]
    assert numbers(await serving(SecurityIncident=rows).ask("query_incidents")) == [3, 1, 2]


async def test_totals_count_all_that_match_and_rows_stop_at_the_limit(versions: Any) -> None:
    result = await versions.ask("query_incidents", order="newest", limit=2)
    assert numbers(result) == [4, 3]
    assert (result.coverage.rows_returned, result.coverage.rows_total) == (2, 6)
    assert result.summary["by_status"] == {"New": 4, "Active": 1, "Closed": 1}


async def test_a_window_is_by_creation_and_older_incidents_that_changed_are_told(versions: Any) -> None:
    result = await versions.ask("query_incidents", order="newest", time_window="last_3d")
    assert numbers(result) == [4, 3, 2]
    assert result.coverage.time_column == "CreatedTime"
    assert result.coverage.window == TimeWindow(parse_time("2024-07-31T00:00:00Z"), parse_time("2024-08-03T00:00:00Z"))
    assert result.summary["updated_in_window"] == 1
    assert any("1 more incident was created before the window" in note for note in result.notes)


async def test_a_window_of_the_past_shows_the_incident_as_it_is_now(versions: Any) -> None:
    result = await versions.ask(
        "query_incidents", start_time="2024-07-30T00:00:00Z", end_time="2024-07-31T00:00:00+00:00"
    )
    assert numbers(result) == [1]
    assert result.rows[0]["status"] == "Closed"


async def test_a_window_is_half_open(versions: Any) -> None:
    at_start = await versions.ask("query_incidents", start_time="2024-08-01T08:00:00Z", end_time="2024-08-01T08:00:01Z")
    at_end = await versions.ask("query_incidents", start_time="2024-08-01T07:00:00Z", end_time="2024-08-01T08:00:00Z")
    assert (numbers(at_start), numbers(at_end)) == ([3], [])


async def test_absolute_times_win_over_a_named_window_and_say_so(versions: Any) -> None:
    result = await versions.ask("query_incidents", time_window="last_1h", start_time="2024-08-02T00:00:00Z")
    assert numbers(result) == [4]
    assert any("time_window last_1h was not" in note for note in result.notes)


async def test_a_reopened_incident_is_open_and_told(versions: Any) -> None:
    result = await versions.ask("query_incidents", severity="High", time_window="last_7d")
    assert result.rows[0]["status"] == "Active"
    assert result.rows[0]["closed_time"] == "2024-07-31T09:00:00Z"
    told = [note for note in result.notes if note.startswith("Incident 2 carries a closing time")]
    assert [note_code(note) for note in told] == ["closed_and_open_again"]


async def test_alerts_are_counted_by_distinct_ids_and_by_the_counter_where_ids_are_missing(versions: Any) -> None:
    rows = {row["number"]: row for row in (await versions.ask("query_incidents", order="newest")).rows}
    assert rows[3]["alert_count"] == 2
    assert rows[4]["alert_count"] == 7
    assert rows[3]["owner"] == "Ana Lima"
    assert rows[4]["owner"] is None


async def test_an_empty_window_says_where_rows_are(versions: Any) -> None:
    result = await versions.ask("query_incidents", time_window="last_1h")
    assert result.rows == ()
    assert result.coverage.rows_total == 0
    assert result.coverage.table_rows == 12
    assert result.coverage.table_oldest == parse_time("2024-06-01T08:00:00Z")
    assert result.coverage.table_newest == parse_time("2024-08-02T22:00:00Z")
    assert "SecurityIncident" in result.coverage.query


async def test_a_workspace_without_incidents_is_no_error(serving: Any) -> None:
    result = await serving().ask("query_incidents")
    assert (result.rows, result.coverage.rows_total, result.coverage.table_rows) == ((), 0, 0)


@pytest.mark.requirement("TOOL-6")
async def test_a_long_log_collapses_to_the_truth_computed_row_by_row(serving: Any) -> None:
    severities = ("Informational", "Low", "Medium", "High")
    statuses = ("New", "Active", "Closed")
    rows = [
        incident(
            number,
            f"2024-07-{1 + version:02d}T{number % 24:02d}:00:00Z",
            CreatedTime=f"2024-07-01T{number % 24:02d}:00:00Z",
            Severity=severities[(number * 7 + version * 3) % 4],
            Status=statuses[(number + version * 5) % 3],
        )
        for number in range(1, 121)
        for version in range(1 + number % 9)
    ]
    newest = {row["IncidentNumber"]: row for row in sorted(rows, key=lambda row: row["TimeGenerated"])}
    result = await serving(SecurityIncident=rows).ask("query_incidents", limit=100)
    assert result.coverage.rows_total == len(newest) == 120
    assert result.coverage.rows_returned == 100
    assert result.summary["by_severity"] == Counter(row["Severity"] for row in newest.values())
    assert result.summary["by_status"] == Counter(row["Status"] for row in newest.values())
    assert all(row["severity"] == newest[row["number"]]["Severity"] for row in result.rows)


@pytest.mark.requirement("TOOL-6")
async def test_the_real_incidents(real: Any) -> None:
    result = await real.ask("query_incidents")
    assert result.coverage.rows_total == 8
    assert result.summary["by_severity"] == {"High": 6, "Medium": 1, "Informational": 1}
    assert result.summary["by_status"] == {"New": 3, "Active": 3, "Closed": 2}
    assert {row["number"]: row["alert_count"] for row in result.rows}[55] == 28


async def test_real_rows_of_2024_leave_the_last_day_of_2026_empty(real: Any) -> None:
    real_now, real.now = real.now, parse_time("2026-11-28T00:00:00Z")
    try:
        result = await real.ask("query_incidents", time_window="last_24h")
    finally:
        real.now = real_now
    assert result.rows == ()
    assert result.coverage.table_newest == parse_time("2024-08-01T12:40:38.576666Z")


NEWEST = {
    "created": "2024-08-02T22:00:00Z", "closed": "2024-07-31T09:00:00Z", "updated": "2024-08-02T23:30:00Z"
}  # fmt: skip


@pytest.mark.parametrize(
    ("time_field", "start", "end", "expected"),
    [
        ("created", "2024-07-30T00:00:00Z", "2024-07-31T00:00:00Z", [1]),
        ("closed", "2024-07-30T00:00:00Z", "2024-07-31T00:00:00Z", [1]),
        ("closed", "2024-07-30T10:00:00Z", "2024-07-30T10:00:01Z", [1]),
        ("closed", "2024-07-29T00:00:00Z", "2024-07-30T10:00:00Z", []),
        ("closed", "2024-07-31T00:00:00Z", "2024-08-01T00:00:00Z", []),  # 2 was closed then, and is open again
        ("updated", "2024-08-01T00:00:00Z", "2024-08-02T00:00:00Z", [3]),
        ("updated", "2024-08-02T00:00:00Z", "2024-08-03T00:00:00Z", [4, 2, 5]),
        ("created", "2024-08-02T00:00:00Z", "2024-08-03T00:00:00Z", [4]),
    ],
)
async def test_the_window_applies_to_the_time_that_was_asked_for(
    versions: Any, time_field: str, start: str, end: str, expected: list[int]
) -> None:
    result = await versions.ask(
        "query_incidents", order="newest", time_field=time_field, start_time=start, end_time=end
    )
    assert numbers(result) == expected
    assert result.coverage.rows_total == len(expected)
    columns = {"created": "CreatedTime", "closed": "ClosedTime", "updated": "LastModifiedTime"}
    assert result.coverage.time_column == columns[time_field]
    assert result.coverage.table_newest == parse_time(NEWEST[time_field]), "of the time that was asked for"


@pytest.fixture(scope="module")
def closings(serving: Any) -> Any:
    """1 was closed by Ines and commented by Karl; 2 by Karl, reopened, and closed again by Ines; 3 by a rule; 4 is open
    again; 5 Defender merged."""

    def version(number: int, hour: int, by: str, **over: Any) -> dict[str, Any]:
        told = {"Status": "Closed", "Classification": "FalsePositive", "ModifiedBy": by, **over}
        return incident(number, f"2024-08-01T{hour:02}:00:00Z", CreatedTime="2024-08-01T01:00:00Z", **told)

    nine, ten = "2024-08-01T09:00:00Z", "2024-08-01T10:00:00Z"
    return serving(
        SecurityIncident=[
            version(1, 9, "ines@contoso.example", ClosedTime=nine),
            version(1, 11, "karl@contoso.example", ClosedTime=nine),
            version(2, 9, "karl@contoso.example", ClosedTime=nine, Classification="TruePositive"),
            version(2, 9, "karl@contoso.example", Status="Active", ClosedTime=nine),
            version(2, 10, "ines@contoso.example", ClosedTime=ten, Classification="BenignPositive"),
            version(3, 9, "Automation rule - close noise", ClosedTime=nine),
            version(4, 9, "ines@contoso.example", ClosedTime=nine),
            version(4, 10, "karl@contoso.example", ClosedTime=nine, Status="Active"),
            version(5, 9, "Microsoft Defender XDR - alert correlation", Labels=[{"labelName": "Redirected"}]),
        ]
    )


@pytest.mark.requirement("TOOL-1")
@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"classification": "FalsePositive"}, [1, 3]),
        ({"classification": "BenignPositive"}, [2]),
        ({"classification": "TruePositive"}, []),
        ({"closed_by": "INES"}, [1, 2]),
        ({"closed_by": "automation rule"}, [3]),
        ({"closed_by": "karl"}, []),
        ({"closed_by": "ines", "classification": "FalsePositive"}, [1]),
        ({"closed_by": '" or 1 == 1 //'}, []),
    ],
    ids=str,
)
async def test_incidents_are_found_by_how_and_by_whom_they_were_closed(
    closings: Any, filters: dict[str, str], found: list[int]
) -> None:
    result = await closings.ask("query_incidents", **filters)
    assert sorted(numbers(result)) == found
    assert result.coverage.rows_total == len(found)
