"""get_alert_trend, get_top_entities and get_threat_summary: numbers that add up."""

from __future__ import annotations

from typing import Any

import pytest
from estate_rows import alert, guid, incident

from sentinel_rag.contracts.query_results import QueryErrorCode

pytestmark = pytest.mark.anyio


def account(name: str) -> list[dict[str, Any]]:
    return [{"$id": "1", "Type": "account", "Name": name, "UPNSuffix": "c.example"}]


@pytest.fixture(scope="module")
def estate(serving: Any) -> Any:
    """Five alerts in the last three days, one of the three days before, one of July; now is 2024-08-03 00:00."""
    return serving(
        SecurityAlert=[
            alert("a", "2024-08-02T23:10:00Z", AlertSeverity="High", Entities=account("ana"), Tactics="Execution"),
            alert(
                "b", "2024-08-02T23:50:00Z", AlertSeverity="Low", Entities=account("ana"), Tactics="Execution,Impact"
            ),
            alert("c", "2024-08-01T01:00:00Z", AlertName="b", Entities=account("bob"), Tactics="Unknown"),
            alert("d", "2024-07-31T00:00:00Z", AlertSeverity="Informational", Entities="[broken"),
            alert("e", "2024-07-31T05:00:00Z", AlertSeverity="High", Status="New", Entities=account("ana")),
            alert("e", "2024-08-02T05:00:00Z", AlertSeverity="High", Status="Resolved", Entities=account("ana")),
            alert("f", "2024-07-29T12:00:00Z", Entities=account("eve")),
            alert("g", "2024-07-02T12:00:00Z", Entities=account("eve")),
        ],
        SecurityIncident=[
            incident(1, "2024-08-02T23:00:00Z", AlertIds=[guid("alert a"), guid("alert e")], Severity="High"),
            incident(2, "2024-08-01T02:00:00Z", AlertIds=[guid("alert c")], Status="Closed"),
            incident(3, "2024-07-29T12:30:00Z", Severity="High"),
            incident(3, "2024-08-02T12:30:00Z", CreatedTime="2024-07-29T12:30:00Z", Severity="Low"),
        ],
    )


async def test_a_trend_fills_its_gaps_with_zero(estate: Any) -> None:
    result = await estate.ask("get_alert_trend", time_window="last_3d", interval="1d")
    assert [dict(row) for row in result.rows] == [
        {"time": "2024-07-31T00:00:00Z", "count": 2, "high": 1, "medium": 0, "low": 0, "informational": 1},
        {"time": "2024-08-01T00:00:00Z", "count": 1, "high": 0, "medium": 1, "low": 0, "informational": 0},
        {"time": "2024-08-02T00:00:00Z", "count": 2, "high": 1, "medium": 0, "low": 1, "informational": 0},
    ]
    assert result.summary == {
        "total": 5,
        "interval": "1d",
        "timezone": "UTC",
        "peak_time": "2024-07-31T00:00:00Z",
        "peak_count": 2,
        "by_severity": {"High": 2, "Medium": 1, "Low": 1, "Informational": 1},
    }


@pytest.mark.parametrize(
    ("arguments", "interval", "buckets"),
    [
        ({"time_window": "last_1h"}, "1h", 1),
        ({"time_window": "last_24h"}, "1h", 24),
        ({"time_window": "last_7d"}, "6h", 28),
        ({"time_window": "last_30d"}, "1d", 30),
        ({"start_time": "2024-01-01T00:00:00Z", "end_time": "2024-08-03T00:00:00Z"}, "7d", 31),
        ({"start_time": "2024-08-02T22:30:00Z", "end_time": "2024-08-02T23:30:00Z"}, "1h", 2),
        ({}, "1d", 32),
        ({"severity": "Low"}, "1h", 1),
    ],
    ids=str,
)
async def test_the_bucket_is_chosen_from_the_window(
    estate: Any, arguments: dict[str, str], interval: str, buckets: int
) -> None:
    result = await estate.ask("get_alert_trend", **arguments)
    assert (result.summary["interval"], len(result.rows)) == (interval, buckets)
    assert sum(row["count"] for row in result.rows) == result.summary["total"]


async def test_a_week_begins_on_monday(estate: Any) -> None:
    result = await estate.ask("get_alert_trend", interval="7d")
    assert [(row["time"], row["count"]) for row in result.rows] == [
        ("2024-07-01T00:00:00Z", 1),
        ("2024-07-08T00:00:00Z", 0),
        ("2024-07-15T00:00:00Z", 0),
        ("2024-07-22T00:00:00Z", 0),
        ("2024-07-29T00:00:00Z", 6),
    ]


async def test_too_many_buckets_are_refused_with_the_intervals_that_fit(estate: Any) -> None:
    error = await estate.refusal("get_alert_trend", start_time="2020-01-01T00:00:00Z", interval="6h")
    assert (error.code, error.field, error.allowed) == (QueryErrorCode.INVALID_ARGUMENT, "interval", ("7d",))


async def test_a_trend_of_nothing_is_empty_and_says_where_rows_are(serving: Any, estate: Any) -> None:
    nothing = await serving().ask("get_alert_trend")
    assert (nothing.rows, nothing.summary["total"], nothing.summary["peak_time"]) == ((), 0, None)
    outside = await estate.ask("get_alert_trend", start_time="2023-01-01T00:00:00Z", end_time="2023-01-02T00:00:00Z")
    assert [row["count"] for row in outside.rows] == [0] * 24
    assert outside.coverage.table_rows == 8


@pytest.mark.requirement("TOOL-7")
async def test_a_ranking_counts_distinct_alerts_in_the_window(estate: Any) -> None:
    result = await estate.ask("get_top_entities", kind="account", time_window="last_3d")
    assert [dict(row) for row in result.rows] == [
        {
            "kind": "account",
            "name": "ana@c.example",
            "alerts": 3,
            "high_alerts": 2,
            "first_seen": "2024-07-31T05:00:00Z",
            "last_seen": "2024-08-02T23:50:00Z",
            "incident_numbers": [1],
        },
        {
            "kind": "account",
            "name": "bob@c.example",
            "alerts": 1,
            "high_alerts": 0,
            "first_seen": "2024-08-01T01:00:00Z",
            "last_seen": "2024-08-01T01:00:00Z",
            "incident_numbers": [2],
        },
    ]
    assert result.summary == {
        "distinct_entities": 2,
        "alerts_considered": 5,
        "alerts_with_unreadable_entities": 1,
    }
    assert any("entities of 1 alert do not parse" in note for note in result.notes)


async def test_a_ranking_keeps_to_limit_and_severity(estate: Any) -> None:
    result = await estate.ask("get_top_entities", kind="account", min_severity="High", limit=1)
    assert [(row["name"], row["alerts"]) for row in result.rows] == [("ana@c.example", 2)]
    result = await estate.ask("get_top_entities", kind="account", limit=1)
    assert (result.coverage.rows_returned, result.coverage.rows_total) == (1, 3)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("Open", [("ana@c.example", 2)]),
        ("New", [("ana@c.example", 2)]),
        ("Closed", [("bob@c.example", 1)]),
        ("Active", []),
    ],
)
async def test_a_ranking_keeps_to_alerts_of_incidents_with_a_status(
    estate: Any, status: str, expected: list[tuple[str, int]]
) -> None:
    result = await estate.ask("get_top_entities", kind="account", status=status)
    assert [(row["name"], row["alerts"]) for row in result.rows] == expected
    assert result.coverage.rows_total == len(expected)


async def test_a_situation_report_compares_with_the_window_before(estate: Any) -> None:
    result = await estate.ask("get_threat_summary", time_window="last_3d")
    assert result.summary == {
        "incidents": {
            "total": 2,
            "open": 1,
            "by_severity": {"High": 1, "Medium": 1},
            "by_status": {"New": 1, "Closed": 1},
            "updated_in_window": 1,
        },
        "alerts": {"total": 5, "by_severity": {"High": 2, "Medium": 1, "Low": 1, "Informational": 1}},
        "previous": {"incidents": 1, "alerts": 1},
        "top_alert_names": [
            {"name": "b", "count": 2},
            {"name": "a", "count": 1},
            {"name": "d", "count": 1},
            {"name": "e", "count": 1},
        ],
        "top_accounts": [{"name": "ana@c.example", "alerts": 3}, {"name": "bob@c.example", "alerts": 1}],
        "top_hosts": [],
        "top_ips": [],
        "tactics": {"Execution": 2, "Impact": 1},
    }
    assert [row["number"] for row in result.rows] == [1]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("get_threat_summary", {}),
        ("get_top_entities", {"kind": "account"}),
        ("query_alerts", {}),
        ("query_incidents", {}),
        ("run_kql_query", {"template": "alert_count_by_name"}),
    ],
)
async def test_a_window_as_wide_as_the_calendar_is_read(estate: Any, tool: str, arguments: dict[str, str]) -> None:
    result = await estate.ask(tool, start_time="0001-01-02T00:00:00Z", end_time="9999-12-31T00:00:00Z", **arguments)
    assert result.coverage.rows_returned > 0
    assert result.summary.get("previous") is None


async def test_an_open_window_has_nothing_before_it(estate: Any) -> None:
    result = await estate.ask("get_threat_summary")
    assert result.summary["previous"] is None
    assert (result.summary["incidents"]["total"], result.summary["alerts"]["total"]) == (3, 7)


@pytest.mark.requirement("TOOL-6")
async def test_the_real_situation(real: Any) -> None:
    summary = (await real.ask("get_threat_summary")).summary
    assert summary["incidents"]["by_severity"] == {"High": 6, "Medium": 1, "Informational": 1}
    assert summary["alerts"] == {
        "total": 189,
        "by_severity": {"High": 85, "Medium": 78, "Low": 18, "Informational": 8},
    }


async def test_incidents_of_a_time_beyond_those_that_one_query_names_are_told(serving: Any) -> None:
    busy = [incident(number, "2024-08-02T12:00:00Z", AlertIds=[guid("alert a")]) for number in range(1, 1002)]
    served = serving(SecurityIncident=busy, SecurityAlert=[alert("a", "2024-08-02T11:00:00Z")])
    day = {"start_time": "2024-08-02T00:00:00Z", "end_time": "2024-08-03T00:00:00Z"}
    result = await served.ask("get_threat_summary", **day)
    assert result.coverage.partial
    assert "Of 1001 incidents with alerts of this time the newest 1000 were looked at" in result.coverage.partial_reason
