"""Questions over real, public incidents and alerts (microsoft/SecRL), through every zone; the truth is in the rows."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

csv.field_size_limit(10**9)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="❖"))


@pytest.fixture(scope="module")
def alerts(shared_data: Path) -> list[dict[str, str]]:
    return rows(shared_data / "secrl" / "extracted_alerts.csv")


@pytest.fixture(scope="module")
def incidents(shared_data: Path) -> list[dict[str, str]]:
    return rows(shared_data / "secrl" / "extracted_incidents.csv")


def numbers(text: str) -> set[int]:
    return {int(found) for found in re.findall(r"(?<![\w.:/-])\d+(?![\w:/-])", text)}


def tool_names(answer: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in answer["tools"]]


@pytest.mark.requirement("DATA-4")
def test_the_import_keeps_every_row(imported: Any, real_rows: Any) -> None:
    counts = {table["table"]: table["rows"] for table in real_rows.json("workspace", "tables")}
    assert counts["SecurityAlert"] == 189
    assert counts["SecurityIncident"] == 8


@pytest.mark.requirement("SURF-2")
def test_how_many_high_severity_alerts(real_rows: Any) -> None:
    answer = real_rows.json("ask", "how many high severity alerts are there?")
    assert answer["outcome"] == "answered"
    assert 85 in numbers(answer["answer"])
    assert "query_alerts" in tool_names(answer)
    assert any(piece["value"] == 85 for piece in answer["evidence"])
    coverage = answer["coverage"][0]
    assert coverage["rows_total"] is not None
    assert set(coverage["window"]) == {"start", "end"}


@pytest.mark.parametrize(("severity", "count"), [("medium", 78), ("low", 18), ("informational", 8)])
def test_a_named_severity_is_exactly_that_one(real_rows: Any, severity: str, count: int) -> None:
    assert count in numbers(real_rows.json("ask", f"how many {severity} severity alerts?")["answer"])


def test_medium_and_above_is_a_threshold(real_rows: Any) -> None:
    assert 85 + 78 in numbers(real_rows.json("ask", "how many alerts of medium severity and above?")["answer"])


def test_open_incidents_newest_first(real_rows: Any, incidents: list[dict[str, str]]) -> None:
    still_open = [row for row in incidents if row["Status"] != "Closed"]
    expected = [row["IncidentNumber"] for row in sorted(still_open, key=lambda row: row["CreatedTime"], reverse=True)]
    answer = real_rows.json("ask", "list the incidents still open, newest first")
    table = answer["tables"][0]
    shown = [found for row in table["rows"] for cell in row for found in re.findall(r"^#?(\d{1,3})$", cell)]
    assert [number for number in shown if number in {r["IncidentNumber"] for r in incidents}][
        : len(expected)
    ] == expected
    assert len(table["rows"]) == len(expected) == 6


def test_what_an_incident_is_about_and_how_many_alerts_it_has(real_rows: Any, incidents: list[dict[str, str]]) -> None:
    row = next(row for row in incidents if row["IncidentNumber"] == "55")
    answer = real_rows.json("ask", "what is incident 55 about and how many alerts has it?")
    assert row["Title"] in answer["answer"]
    assert len(json.loads(row["AlertIds"])) in numbers(answer["answer"])


def test_which_alerts_name_a_host(real_rows: Any, alerts: list[dict[str, str]]) -> None:
    host = "vnevado-win10v"
    expected = {
        row["SystemAlertId"]
        for row in alerts
        for entity in json.loads(row["Entities"] or "[]")
        if isinstance(entity, dict) and str(entity.get("HostName", "")).lower() == host
    }
    assert expected, "the truth of this test is gone from the rows"
    answer = real_rows.json("ask", f"which alerts name the host {host}?")
    assert len(expected) in numbers(answer["answer"])


def test_top_accounts_by_distinct_alerts(real_rows: Any, alerts: list[dict[str, str]]) -> None:
    # One person has several spellings ("dp5hn", "Grace Chen"); the user principal name is the same in all of them.
    by_name: dict[str, set[str]] = defaultdict(set)
    for row in alerts:
        for entity in json.loads(row["Entities"] or "[]"):
            if isinstance(entity, dict) and entity.get("Type") == "account" and entity.get("UserPrincipalName"):
                by_name[entity["UserPrincipalName"].lower()].add(row["SystemAlertId"])
    name, distinct = max(by_name.items(), key=lambda item: len(item[1]))
    answer = real_rows.json("ask", "top accounts by number of distinct alerts")
    first = " ".join(answer["tables"][0]["rows"][0]).lower()
    assert name in first
    assert str(len(distinct)) in first.split()


def test_a_defender_id_is_told_from_a_sentinel_number(real_rows: Any) -> None:
    answer = real_rows.json("ask", "is incident 384 a Sentinel number?")
    assert "Defender" in answer["answer"]
    assert {384, 55} <= numbers(answer["answer"])


@pytest.mark.requirement("CHAT-10")
def test_an_empty_window_says_where_rows_are(real_rows: Any) -> None:
    done = real_rows.run("ask", "show me the alerts of the last 24 hours", "--json")
    assert done.returncode == 3, done.stderr
    answer = json.loads(done.stdout)
    assert answer["outcome"] == "no_data"
    assert "2024-07-04" in answer["answer"]
    assert "2024-08-01" in answer["answer"]
    assert answer["suggestions"]


def test_an_absolute_window_has_exact_bounds(real_rows: Any, alerts: list[dict[str, str]]) -> None:
    answer = real_rows.json("ask", "how many alerts on 2024-07-04?")
    expected = sum(row["TimeGenerated"].startswith("2024-07-04") for row in alerts)
    assert expected in numbers(answer["answer"])
    window = answer["coverage"][0]["window"]
    assert (window["start"], window["end"]) == ("2024-07-04T00:00:00Z", "2024-07-05T00:00:00Z")


@pytest.mark.requirement("CHAT-8")
def test_every_answer_names_tool_window_and_rows(real_rows: Any) -> None:
    answer = real_rows.json("ask", "list high severity incidents")
    footnote = "\n".join(answer["footnote"])
    assert "query_incidents" in footnote
    assert re.search(r"\b6 of 6\b", footnote)
    assert "UTC" in footnote
    assert answer["tools"][0]["audit_id"]


def test_every_number_of_a_table_is_in_the_rows(real_rows: Any, alerts: list[dict[str, str]]) -> None:
    answer = real_rows.json("ask", "how many alerts are there by severity?")
    assert Counter(row["AlertSeverity"] for row in alerts) == {"High": 85, "Medium": 78, "Low": 18, "Informational": 8}
    assert {85, 78, 18, 8} <= numbers(json.dumps(answer["tables"]).replace('"', " ") + answer["answer"])
