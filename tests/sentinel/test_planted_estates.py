"""Threat summary, rankings and totals against estates that were planted by hand: every figure is counted a second time,
from the rows that went in.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from estate_rows import alert, guid, incident

from sentinel_rag.contracts.query_results import TimeWindow, format_time, parse_time

pytestmark = pytest.mark.anyio

NOW = datetime(2024, 8, 3, tzinfo=UTC)
SEVERITIES = ("High", "Medium", "Low", "Informational")
STATUSES = ("New", "Active", "Closed")
TACTICS = ("Execution", "Impact", "LateralMovement", "Exfiltration")
HOURS = {"last_1h": 1, "last_24h": 24, "last_3d": 72, "last_7d": 168}


@dataclass
class Planted:
    """What went into an estate, as rows."""

    alerts: list[dict[str, Any]]
    incidents: list[dict[str, Any]]


def planted(seed: int) -> Planted:
    """Alerts and incidents of two weeks, each with one to four rows, most of which change something."""
    chance = random.Random(seed)

    def moment() -> datetime:
        # Often exactly on the edge of a window, where an off-by-one shows.
        edges = [NOW - timedelta(hours=hours * times) for hours in HOURS.values() for times in (1, 2)]
        edge = chance.choice(edges)
        return chance.choice([edge, edge - timedelta(microseconds=1), edge + timedelta(minutes=chance.randint(1, 900))])

    alerts: list[dict[str, Any]] = []
    names = [f"user{number}" for number in range(5)]
    for number in range(chance.randint(0, 40)):
        first = min(moment(), NOW - timedelta(hours=1))
        people = chance.sample(names, chance.randint(0, 3))
        for version in range(chance.randint(1, 4)):
            written = first + timedelta(minutes=version * chance.randint(0, 1) * 40 + version)
            entities: list[dict[str, Any]] = []
            for place, name in enumerate(people):
                entities.append({"$id": str(place), "Type": "account", "Name": name, "UPNSuffix": "c.example"})
                entities.append({"$ref": str(place)})
                entities.append({"Type": "host", "HostName": "pc", "$id": f"h{place}", "Owner": {"$ref": str(place)}})
            chance.shuffle(entities)
            alerts.append(
                alert(
                    f"alert {number}",
                    format_time(written),
                    StartTime=format_time(first),
                    AlertName=f"name {number % 4}",
                    AlertSeverity=chance.choice(SEVERITIES),
                    Status=chance.choice(("New", "Resolved")),
                    Tactics=", ".join(chance.sample(TACTICS, chance.randint(0, 2))),
                    Entities=entities,
                )
            )
    incidents: list[dict[str, Any]] = []
    ids = sorted({row["SystemAlertId"] for row in alerts})
    for number in range(1, chance.randint(2, 30)):
        created = moment()
        for version in range(chance.randint(1, 5)):
            written = created + timedelta(hours=version * chance.randint(0, 30), minutes=version)
            incidents.append(
                incident(
                    number,
                    format_time(min(written, NOW)),
                    CreatedTime=format_time(created),
                    Severity=chance.choice(SEVERITIES),
                    Status=chance.choice(STATUSES),
                    AlertIds=chance.sample(ids, min(len(ids), chance.randint(0, 3))),
                )
            )
    return Planted(alerts, _one_row_a_moment(incidents, "IncidentNumber"))


def _one_row_a_moment(rows: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """Of two versions of one thing in one microsecond the newest is not defined."""
    return list({(row[key], row["TimeGenerated"]): row for row in rows}.values())


def newest(rows: list[dict[str, Any]], key: str) -> dict[Any, dict[str, Any]]:
    found: dict[Any, dict[str, Any]] = {}
    for row in rows:
        before = found.get(row[key])
        if before is None or parse_time(row["TimeGenerated"]) > parse_time(before["TimeGenerated"]):
            found[row[key]] = row
    return found


def inside(text: str, window: TimeWindow) -> bool:
    assert window.start is not None
    assert window.end is not None
    return window.start <= parse_time(text) < window.end


def first_times(rows: list[dict[str, Any]]) -> dict[str, str]:
    times: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        times[row["SystemAlertId"]].append(row["TimeGenerated"])
    return {key: min(values, key=parse_time) for key, values in times.items()}


def counted(rows: list[dict[str, Any]], column: str) -> dict[str, int]:
    return dict(Counter(row[column] for row in rows))


@pytest.fixture(scope="module", params=range(6))
def estate(request: Any, serving: Callable[..., Any]) -> tuple[Planted, Any]:
    rows = planted(request.param)
    return rows, serving(SecurityAlert=rows.alerts, SecurityIncident=rows.incidents)


@pytest.mark.requirement("TOOL-6")
@pytest.mark.parametrize("name", list(HOURS))
async def test_a_summary_and_the_window_before_it_are_exact(estate: tuple[Planted, Any], name: str) -> None:
    """Field reports A1 and A2: counts are of things in their newest version, never of rows."""
    rows, served = estate
    length = timedelta(hours=HOURS[name])
    window, before = TimeWindow(NOW - length, NOW), TimeWindow(NOW - 2 * length, NOW - length)
    result = await served.ask("get_threat_summary", time_window=name)
    summary = result.summary

    current = list(newest(rows.incidents, "IncidentNumber").values())
    created = [row for row in current if inside(row["CreatedTime"], window)]
    active = {key for key, time in first_times(rows.alerts).items() if inside(time, window)}
    of_before = [
        row for row in current if row not in created and row["Status"] != "Closed" and active & {*row["AlertIds"]}
    ]
    changed = {row["IncidentNumber"] for row in rows.incidents if inside(row["TimeGenerated"], window)}
    assert summary["incidents"] == {
        "total": len(created),
        "open": sum(row["Status"] != "Closed" for row in created),
        "by_severity": counted(created, "Severity"),
        "by_status": counted(created, "Status"),
        "updated_in_window": sum(
            parse_time(row["CreatedTime"]) < window.start and row["IncidentNumber"] in changed for row in current
        ),
        **({"open_of_before": len(of_before)} if of_before else {}),
    }
    newest_alerts = newest(rows.alerts, "SystemAlertId")
    first = first_times(rows.alerts)
    recorded = [row for key, row in newest_alerts.items() if inside(first[key], window)]
    assert summary["alerts"] == {"total": len(recorded), "by_severity": counted(recorded, "AlertSeverity")}
    assert summary["previous"] == {
        "incidents": sum(inside(row["CreatedTime"], before) for row in current),
        "alerts": sum(inside(time, before) for time in first.values()),
    }
    assert {each["name"]: each["count"] for each in summary["top_alert_names"]} == counted(recorded, "AlertName")
    tactics = Counter(tactic for row in recorded for tactic in row["Tactics"].split(", ") if tactic)
    assert summary["tactics"] == dict(tactics)
    open_ones = sorted(
        (*(row for row in created if row["Status"] != "Closed"), *of_before),
        key=lambda row: (-SEVERITIES.index(row["Severity"]), parse_time(row["CreatedTime"]), row["IncidentNumber"]),
        reverse=True,
    )
    assert [row["number"] for row in result.rows] == [row["IncidentNumber"] for row in open_ones[:10]]


@pytest.mark.requirement("TOOL-7")
@pytest.mark.parametrize("name", list(HOURS))
async def test_a_ranking_counts_each_alert_once_for_each_entity(estate: tuple[Planted, Any], name: str) -> None:
    """Field report G1: elements that only point at others count nothing, and one alert counts once."""
    rows, served = estate
    window = TimeWindow(NOW - timedelta(hours=HOURS[name]), NOW)
    first = first_times(rows.alerts)
    expected: Counter[str] = Counter()
    high: Counter[str] = Counter()
    for key, row in newest(rows.alerts, "SystemAlertId").items():
        if not inside(first[key], window):
            continue
        people = {name for name in (f"user{number}" for number in range(5)) if f'"Name": "{name}"' in row["Entities"]}
        expected.update(people)
        high.update(people if row["AlertSeverity"] == "High" else ())
    result = await served.ask("get_top_entities", kind="account", time_window=name)
    assert {row["name"].partition("@")[0]: row["alerts"] for row in result.rows} == dict(expected)
    assert {row["name"].partition("@")[0]: row["high_alerts"] for row in result.rows if row["high_alerts"]} == dict(
        high
    )
    counts = [row["alerts"] for row in result.rows]
    assert counts == sorted(counts, reverse=True)
    owners = defaultdict(set)
    for number, version in newest(rows.incidents, "IncidentNumber").items():
        for alert_id in version["AlertIds"]:
            owners[alert_id].add(number)
    for row in result.rows:
        person = row["name"].partition("@")[0]
        named = [
            key
            for key, newest_row in newest(rows.alerts, "SystemAlertId").items()
            if inside(first[key], window) and f'"Name": "{person}"' in newest_row["Entities"]
        ]
        assert row["incident_numbers"] == sorted({number for key in named for number in owners[key]})


@pytest.mark.requirement("TOOL-6")
async def test_totals_do_not_depend_on_the_limit(estate: tuple[Planted, Any]) -> None:
    """Field report A1: the count is of distinct incident numbers, with values of the newest row."""
    rows, served = estate
    current = list(newest(rows.incidents, "IncidentNumber").values())
    for limit in (1, 100):
        result = await served.ask("query_incidents", limit=limit)
        assert result.coverage.rows_total == len(current)
        assert result.summary["by_severity"] == counted(current, "Severity")
        assert result.summary["by_status"] == counted(current, "Status")
    by_number = {row["IncidentNumber"]: row for row in current}
    assert len(result.rows) == len(current)
    assert all(row["severity"] == by_number[row["number"]]["Severity"] for row in result.rows)
    listed = await served.ask("query_alerts", limit=1)
    assert listed.coverage.rows_total == len(newest(rows.alerts, "SystemAlertId"))


async def test_an_alert_first_recorded_long_before_the_window_is_not_new_when_it_changes(serving: Any) -> None:
    """A change two months later does not make an alert one of this week."""
    served = serving(
        SecurityAlert=[
            alert("old", "2024-06-01T08:00:00Z"),
            alert("old", "2024-08-02T08:00:00Z", StartTime="2024-06-01T08:00:00Z", Status="Resolved"),
            alert("new", "2024-08-02T09:00:00Z"),
        ],
        SecurityIncident=[incident(1, "2024-08-02T10:00:00Z", AlertIds=[guid("alert old")])],
    )
    result = await served.ask("get_threat_summary", time_window="last_7d")
    assert (result.summary["alerts"]["total"], result.summary["previous"]["alerts"]) == (1, 0)
    trend = await served.ask("get_alert_trend", time_window="last_7d")
    assert trend.summary["total"] == 1
