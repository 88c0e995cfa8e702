"""Incidents that Defender merged: what they are told as, into which incident, and what does not count them."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest
from asking import Conversation, shown
from estate_rows import alert, guid, incident
from sentinel_servers import connected, managed

from sentinel_rag.knowledge.documents import incident_document
from sentinel_rag.tools.knowledge.incident_source import SentinelIncidents

pytestmark = pytest.mark.anyio

CORRELATION = "Microsoft Defender XDR - alert correlation"
REDIRECTED = [{"labelName": "Redirected", "labelType": "AutoAssigned"}]
TWO, THREE = [guid("alert a"), guid("alert b")], [guid("alert a"), guid("alert b"), guid("alert c")]


def merged(number: int, time: str, **over: Any) -> dict[str, Any]:
    """The row that closes the source of a merge, created an hour before."""
    row = {"Status": "Closed", "ClosedTime": time, "Labels": REDIRECTED, "ModifiedBy": CORRELATION}
    return incident(number, time, **{**row, "CreatedTime": "2024-08-01T08:00:00Z", **over})


@pytest.fixture(scope="module")
def estate(serving: Any) -> Any:
    """900 went into 901. 910 went into 911 and that into 912. 920 and 921 name each other. 930 tells nothing. 940 is
    closed by a person under a label of a similar name; 950 names its target."""
    return serving(
        SecurityIncident=[
            incident(900, "2024-08-01T08:00:00Z", AlertIds=TWO),
            incident(901, "2024-08-01T08:10:00Z", AlertIds=[guid("alert c")]),
            merged(900, "2024-08-01T09:00:00Z"),
            incident(901, "2024-08-01T09:00:05Z", AlertIds=THREE, CreatedTime="2024-08-01T08:10:00Z"),
            incident(910, "2024-08-01T08:00:00Z", AlertIds=[guid("alert d")]),
            merged(910, "2024-08-01T09:00:00Z"),
            incident(911, "2024-08-01T09:00:00Z", AlertIds=[guid("alert d"), guid("alert e")]),
            merged(911, "2024-08-01T12:00:00Z"),
            incident(912, "2024-08-01T12:00:00Z", AlertIds=[guid("alert d"), guid("alert e"), guid("alert f")]),
            merged(920, "2024-08-01T09:00:00Z", AdditionalData={"redirectIncidentId": "10921"}),
            merged(921, "2024-08-01T10:00:00Z", AdditionalData={"redirectIncidentId": "10920"}),
            merged(930, "2024-08-01T09:00:00Z"),
            merged(
                940,
                "2024-08-01T10:00:00Z",
                Labels=[{"labelName": "Redirected to tier 2", "labelType": "User"}],
                Classification="TruePositive",
            ),
            merged(950, "2024-08-01T09:00:00Z", AdditionalData={"redirectIncidentId": "10901"}),
        ],
        SecurityAlert=[alert(name, "2024-08-01T07:59:00Z") for name in "abcdef"],
    )


@pytest.mark.requirement("TOOL-6")
async def test_merged_incidents_are_neither_listed_nor_counted_and_that_is_told(estate: Any) -> None:
    result = await estate.ask("query_incidents")
    assert sorted(row["number"] for row in result.rows) == [901, 912, 940]
    assert result.summary["by_status"] == {"New": 2, "Closed": 1}
    assert result.coverage.rows_total == 3
    assert result.summary["merged"] == 7
    (note,) = result.notes
    assert note.startswith("7 incidents were merged into others by Microsoft Defender (")
    for told in ("900 into 901", "910 into 912", "911 into 912", "920 into one the log does not tell", "950 into 901"):
        assert told in note
    closed = await estate.ask("query_incidents", status="Closed", time_field="closed")
    assert ([row["number"] for row in closed.rows], closed.coverage.rows_total) == ([940], 1)
    summary = (await estate.ask("get_threat_summary")).summary["incidents"]
    assert (summary["total"], summary["open"], summary["merged"]) == (3, 2, 7)
    assert summary["by_status"] == {"New": 2, "Closed": 1}


@pytest.mark.requirement("TOOL-6")
@pytest.mark.parametrize(
    ("number", "into", "told"),
    [
        (900, 901, "told by 2 of its 2 alerts, which incident 901 holds since"),
        (910, 912, "into incident 912, by way of 911."),
        (911, 912, "told by 2 of its 2 alerts"),
        (920, None, "lead in a circle (920 → 921 → 920)"),
        (930, None, "into which incident the log does not tell"),
        (950, 901, "not closed by a person, into incident 901."),
    ],
)
async def test_a_merged_incident_names_its_target(estate: Any, number: int, into: int | None, told: str) -> None:
    result = await estate.ask("get_incident_detail", incident=str(number))
    (row,) = result.rows
    assert (row["status"], row["merged_into"]) == ("Merged", into)
    assert (row["closed_time"], row["open_duration_s"]) == (None, None)
    (note,) = result.notes
    assert note.startswith(f"Incident {number} was merged by Microsoft Defender at 2024-08-01T")
    assert told in note


async def test_a_label_of_a_similar_name_is_no_merge(estate: Any) -> None:
    (row,) = (await estate.ask("get_incident_detail", incident="940")).rows
    assert (row["status"], row["merged_into"], row["open_duration_s"]) == ("Closed", None, 7200)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("mean_time_to_close", [{"Closed": 1, "MeanHours": 2.0}]),
        ("incidents_by_classification", [{"Incidents": 1, "Classification": "TruePositive"}]),
        ("incidents_by_owner", [{"Incidents": 3, "Open": 2}]),
    ],
)
async def test_a_template_over_closed_incidents_leaves_merged_ones_out(
    estate: Any, template: str, expected: list[dict[str, Any]]
) -> None:
    rows = (await estate.ask("run_kql_query", template=template)).rows
    assert [{name: row[name] for name in wanted} for row, wanted in zip(rows, expected, strict=True)] == expected


async def test_alerts_lead_to_the_target_and_those_of_the_source_are_its(estate: Any) -> None:
    result = await estate.ask("query_alerts", incident="900")
    assert {row["name"] for row in result.rows} == {"a", "b", "c"}
    assert {row["incident_number"] for row in result.rows} == {901}
    assert "The alerts told are those of incident 901, into which it was merged." in result.notes


@pytest.mark.parametrize("tool", ["update_incident", "add_incident_comment"])
async def test_a_merged_incident_is_not_changed(estate: Any, tool: str) -> None:
    change = {"status": "Active"} if tool == "update_incident" else {"message": "Seen."}
    error = await estate.refusal(tool, incident="900", **change)
    assert (error.code, error.allowed) == ("invalid_argument", ("901",))
    assert "merged" in error.message
    assert error.message.endswith("Nothing was changed.")


@pytest.mark.requirement("AGENT-1")
@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("show incident 900", ("status Merged", "into incident 901")),
        ("is incident 900 closed?", ("No: status Merged", "into incident 901")),
        ("how many incidents are closed?", ("1 incident (status Closed)", "7 incidents were merged")),
    ],
)
async def test_an_answer_tells_the_merge(estate: Any, question: str, told: tuple[str, ...]) -> None:
    answer = shown(await Conversation(estate).ask(question))
    assert all(part in answer for part in told), answer


async def test_what_defender_merges_now_is_followed_in_tools_and_knowledge(serving: Any) -> None:
    served = serving(
        SecurityIncident=[
            incident(1, "2024-08-01T08:00:00Z", AlertIds=TWO, Comments=[{"message": "Mine."}]),
            incident(2, "2024-08-01T08:10:00Z", AlertIds=[guid("alert c")]),
        ]
    )
    request = urllib.request.Request(
        f"{served.url}/admin/merge",
        json.dumps({"source": 1, "target": 2}).encode(),
        {"authorization": "Bearer admin-token-of-the-tests"},
    )
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200
    (row,) = (await served.ask("get_incident_detail", incident="1")).rows
    assert (row["status"], row["merged_into"], row["alert_count"]) == ("Merged", 2, 0)
    assert [comment["message"] for comment in row["comments"]] == ["Mine."]
    (target,) = (await served.ask("get_incident_detail", incident="2")).rows
    assert (target["status"], target["alert_count"]) == ("New", 3)
    async with connected(served.url) as logs, managed(served.url) as rest:
        source = SentinelIncidents(rest, logs)
        listed = (await source.listing(since=served.now.replace(year=2000))).incidents
        read = {each.record.number: each.record for each in await source.details(listed)}
    assert (read[1].status, read[2].status) == ("Merged", "New")
    text = "\n".join(block.text for section in incident_document(read[1]).sections for block in section.blocks)
    assert "Merged into incident 2 by Microsoft Defender" in text
    assert "Closed on" not in text
