"""get_incident_detail: which incident a reference means, and everything about it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from estate_rows import alert, guid, incident

from sentinel_rag.agent.answers.results import numbered
from sentinel_rag.agent.answers.view import view
from sentinel_rag.agent.tokens import EstimatingCounter
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.query_results import QueryErrorCode, QueryFailedError, note_code
from sentinel_rag.contracts.tool_calls import Succeeded, ToolCall
from sentinel_rag.sentinel.incidents.incident_resolution import IncidentReference, ReferenceKind, parse_reference

pytestmark = pytest.mark.anyio

A_GUID = guid("incident 7")


@pytest.mark.requirement("TOOL-6")
@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("55", ReferenceKind.NUMBER, "55"),
        ("#55", ReferenceKind.NUMBER, "55"),
        ("  incident 55 ", ReferenceKind.NUMBER, "55"),
        ("Incident #055", ReferenceKind.NUMBER, "55"),
        ("INC-55", ReferenceKind.NUMBER, "55"),
        ("incident number 55", ReferenceKind.NUMBER, "55"),
        (A_GUID, ReferenceKind.GUID, A_GUID),
        ("{" + A_GUID.upper() + "}", ReferenceKind.GUID, A_GUID),
        (f"https://portal.azure.com/#asset/x/Incidents/{A_GUID}", ReferenceKind.SENTINEL_URL, A_GUID),
        (f"https://portal.azure.com/#x%2FIncidents%2F{A_GUID}", ReferenceKind.SENTINEL_URL, A_GUID),
        ("https://security.microsoft.com/incidents/384?tid=1", ReferenceKind.DEFENDER_URL, "384"),
        ("https://security.microsoft.com/incident2/384/overview", ReferenceKind.DEFENDER_URL, "384"),
        ("https://security.microsoft.com/alerts/da637_1?tid=2", ReferenceKind.ALERT_ID, "da637_1"),
        ("12eb404c_1", ReferenceKind.ALERT_ID, "12eb404c_1"),
    ],
)
def test_the_form_of_a_reference(text: str, kind: ReferenceKind, value: str) -> None:
    assert parse_reference(text) == IncidentReference(kind, value)


@pytest.mark.parametrize("text", ["the phishing incident", "-55", "5 5", "99999999999", "#", "https://example.com/55"])
def test_what_is_no_reference_is_refused_with_what_would_be(text: str) -> None:
    with pytest.raises(QueryFailedError) as caught:
        parse_reference(text)
    assert caught.value.error.code is QueryErrorCode.INVALID_ARGUMENT
    assert caught.value.error.field == "incident"
    assert "#55" in caught.value.error.next_step


@pytest.fixture(scope="module")
def estate(serving: Any) -> Any:
    """Incident 7 with three alerts (one without a row), incident 8 whose Defender id is 7, incident 9 with none."""
    named = {"Type": "account", "Name": "ana", "UPNSuffix": "contoso.example", "$id": "1"}
    address = {"Type": "ip", "Address": "192.0.2.1"}
    return serving(
        SecurityIncident=[
            incident(7, "2024-07-30T08:00:00Z", AlertIds=[guid("alert one")], Severity="High", ModifiedBy="Defender"),
            incident(
                7,
                "2024-07-30T09:00:00Z",
                CreatedTime="2024-07-30T08:00:00Z",
                FirstActivityTime="2024-07-30T06:00:00Z",
                Status="Active",
                ModifiedBy="ana@contoso.example",
                AlertIds=[guid("alert one").upper(), guid("alert two"), guid("alert lost")],
                AdditionalData={"alertsCount": 3, "tactics": ["Execution"], "techniques": ["T1059"]},
                Comments=[
                    {
                        "message": 'looks "real"\r\nto me',
                        "createdTimeUtc": "2024-07-30T08:45:00.1234567Z",
                        "author": {"name": "Ana Lima", "email": None},
                    }
                ],
                Labels=[{"labelName": "vip", "labelType": "User"}],
            ),
            incident(
                8,
                "2024-07-31T08:00:00Z",
                ProviderName="Microsoft XDR",
                ProviderIncidentId="7",
                AlertIds=[guid("alert four")],
            ),
            incident(9, "2024-08-01T08:00:00Z", ProviderIncidentId="384", Status="Closed"),
            incident(10, "2024-08-01T09:00:00Z", IncidentNumber=None, Owner="Ana Lima", Comments="none", AlertIds="?"),
        ],
        SecurityAlert=[
            alert("one", "2024-07-30T07:00:00Z", Tactics="Execution, Impact", Techniques='["T1059"]', Entities=[named]),
            alert("one", "2024-07-30T07:30:00Z", Status="Resolved", Tactics="Execution, Impact", Entities=[named]),
            alert("two", "2024-07-30T06:30:00Z", Entities=[named, {"$ref": "1"}, address]),
            alert("three", "2024-07-30T06:30:00Z"),
            alert("four", "2024-07-31T06:30:00Z"),
        ],
    )


@pytest.mark.requirement("TOOL-6")
async def test_a_number_is_one_of_sentinel_before_it_is_a_defender_id_and_the_other_is_told(estate: Any) -> None:
    result = await estate.ask("get_incident_detail", incident="7")
    assert [row["number"] for row in result.rows] == [7]
    assert result.summary["ambiguous"] is False
    assert any("7 is ambiguous" in note and "incident 8" in note for note in result.notes)
    assert any("Taken as the Sentinel number 7" in note for note in result.notes)


async def test_the_alerts_of_an_ambiguous_number_are_of_one_incident_and_it_is_told_of_which(estate: Any) -> None:
    result = await estate.ask("query_alerts", incident="7")
    assert {row["incident_number"] for row in result.rows} == {7}
    assert any("7 is ambiguous" in note and "incident 8" in note for note in result.notes)
    assert any("Taken as the Sentinel number 7" in note for note in result.notes)


@pytest.mark.requirement("TOOL-6")
@pytest.mark.parametrize(
    ("reference", "number", "matched_by"),
    [
        ("8", 8, "incident_number"),
        ("384", 9, "provider_incident_id"),
        (guid("incident 7"), 7, "incident_name"),
        (guid("incident 7").upper(), 7, "incident_name"),
        (f"https://portal.azure.com/#asset/Incidents/{guid('incident 9')}", 9, "url"),
        ("https://security.microsoft.com/incidents/384", 9, "url"),
        (guid("alert one"), 7, "alert_id"),
        (guid("alert lost"), 7, "alert_id"),
        ("vendor1_two", 7, "alert_id"),
    ],
)
async def test_every_kind_of_reference_resolves(estate: Any, reference: str, number: int, matched_by: str) -> None:
    result = await estate.ask("get_incident_detail", incident=reference)
    assert [row["number"] for row in result.rows] == [number]
    assert result.summary["matched_by"] == matched_by
    assert result.summary["reference"] == reference


async def test_a_defender_id_that_is_no_sentinel_number_is_told(estate: Any) -> None:
    result = await estate.ask("get_incident_detail", incident="384")
    assert "384 is no Sentinel incident number; it is the Defender id of Sentinel incident 9." in result.notes


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("4711", "No incident has the Sentinel number or the Defender id 4711."),
        (guid("nobody"), "No incident and no alert of this workspace has the id"),
        (guid("alert three"), "is an alert of this workspace, but no incident names it"),
        (f"https://portal.azure.com/#x/Incidents/{guid('nobody')}", "No incident of this workspace has the reference"),
    ],
)
async def test_what_is_not_there_is_an_empty_result_with_the_reason(estate: Any, reference: str, words: str) -> None:
    result = await estate.ask("get_incident_detail", incident=reference)
    assert (result.rows, result.coverage.rows_total, result.summary["matched_by"]) == ((), 0, None)
    assert any(words in note for note in result.notes)


async def test_the_detail_holds_alerts_entities_comments_and_timeline(estate: Any) -> None:
    result = await estate.ask("get_incident_detail", incident=guid("incident 7"))
    row = result.rows[0]
    assert (row["severity"], row["status"], row["alert_count"]) == ("Medium", "Active", 3)
    assert [(found["name"], found["status"], found["incident_number"]) for found in row["alerts"]] == [
        ("two", "New", 7),
        ("one", "Resolved", 7),
    ]
    assert row["alert_ids_without_row"] == [guid("alert lost")]
    assert row["entities"] == {
        "account": [
            {"name": "ana@contoso.example", "alerts": 2, "account_name": "ana", "upn": "ana@contoso.example"},
        ],
        "ip": [{"name": "192.0.2.1", "alerts": 1, "address": "192.0.2.1"}],
    }
    assert row["entity_counts"] == {"account": 1, "ip": 1}
    assert row["comments"] == [
        {"time": "2024-07-30T08:45:00.1234567Z", "author": "Ana Lima", "message": 'looks "real"\r\nto me'}
    ]
    assert (row["tactics"], row["techniques"]) == (["Execution", "Impact"], ["T1059"])
    assert row["labels"] == ["vip"]
    assert row["timeline"] == [
        {"time": "2024-07-30T06:00:00Z", "event": "First activity"},
        {"time": "2024-07-30T06:30:00Z", "event": "Alert: two"},
        {"time": "2024-07-30T07:30:00Z", "event": "Alert: one"},
        {"time": "2024-07-30T08:00:00Z", "event": "Incident created"},
        {"time": "2024-07-30T08:45:00.123456Z", "event": "Comment by Ana Lima"},
        {"time": "2024-07-30T09:00:00Z", "event": "Status changed from New to Active by ana@contoso.example"},
        {"time": "2024-07-30T09:00:00Z", "event": "Severity changed from High to Medium by ana@contoso.example"},
    ]
    told = [note for note in result.notes if "names 1 alert that SecurityAlert has no row for" in note]
    assert [note_code(note) for note in told] == ["alerts_without_row"]


async def test_an_alert_that_disagrees_with_its_incident_is_told_to_be_a_snapshot(estate: Any) -> None:
    result = await estate.ask("get_incident_detail", incident=guid("incident 7"))
    assert any("1 alert has another state than the incident" in note for note in result.notes)
    assert any("2024-07-30T07:30:00Z" in note for note in result.notes)


async def test_an_incident_with_odd_columns_is_still_shown(estate: Any) -> None:
    result = await estate.ask("get_incident_detail", incident=guid("incident 10"))
    row = result.rows[0]
    assert (row["number"], row["owner"], row["comments"], row["alert_count"]) == (None, "Ana Lima", [], 0)


async def test_an_incident_without_alert_ids_says_so(estate: Any) -> None:
    result = await estate.ask("get_incident_detail", incident="9")
    assert result.rows[0]["alerts"] == []
    assert any("names no alert ids" in note for note in result.notes)


async def test_how_long_a_closed_incident_took_and_an_open_one_does_not_tell(serving: Any) -> None:
    created = "2024-08-01T08:00:00Z"
    estate = serving(
        SecurityIncident=[
            incident(
                1,
                "2024-08-02T08:00:00Z",
                CreatedTime=created,
                FirstModifiedTime="2024-08-01T08:01:30.5Z",
                ClosedTime="2024-08-02T08:00:00Z",
                Status="Closed",
            ),
            incident(2, "2024-08-02T08:00:00Z", CreatedTime=created, ClosedTime="2024-08-01T09:00:00Z"),
            incident(3, "2024-08-02T08:00:00Z", CreatedTime=created, Status="Closed"),
        ]
    )
    rows = [(await estate.ask("get_incident_detail", incident=str(number))).rows[0] for number in (1, 2, 3)]
    assert [(row["open_duration_s"], row["first_response_s"]) for row in rows] == [
        (86_400.0, 90.5),
        (None, None),
        (None, None),
    ]


@pytest.mark.requirement("TOOL-6")
async def test_how_it_was_classified_is_told_with_its_reason_and_comment(serving: Any) -> None:
    said = "Known inventory script,\nrule adjusted. " + "x" * 9_000
    estate = serving(
        SecurityIncident=[
            incident(
                1,
                "2024-08-02T08:00:00Z",
                Status="Closed",
                Classification="FalsePositive",
                ClassificationReason="IncorrectAlertLogic",
                ClassificationComment=said,
            ),
            incident(2, "2024-08-02T08:00:00Z"),
        ]
    )
    closed, still_open = [(await estate.ask("get_incident_detail", incident=each)).rows[0] for each in ("1", "2")]
    assert (closed["classification"], closed["classification_reason"]) == ("FalsePositive", "IncorrectAlertLogic")
    assert closed["classification_comment"].startswith("Known inventory script, rule adjusted. x")
    assert closed["classification_comment"].endswith("…")
    assert (still_open["classification_reason"], still_open["classification_comment"]) == (None, None)


@pytest.mark.requirement("TOOL-7")
async def test_every_entity_is_listed_once_with_its_properties_and_in_each_of_its_alerts(serving: Any) -> None:
    hashes = [{"Type": "filehash", "Algorithm": "SHA1", "Value": f"{number:040x}"} for number in range(130)]
    line = {"Type": "process", "CommandLine": "cmd.exe"}
    estate = serving(
        SecurityIncident=[incident(1, "2024-08-01T08:00:00Z", AlertIds=[guid("alert one"), guid("alert two")])],
        SecurityAlert=[
            alert("one", "2024-08-01T07:00:00Z", Entities=[*hashes, {**line, "ProcessId": "1"}]),
            alert("two", "2024-08-01T07:10:00Z", Entities=[hashes[129], {**line, "ProcessId": "2"}]),
        ],
    )
    result = await estate.ask("get_incident_detail", incident="1", detail="full")
    row = result.rows[0]
    assert result.summary["left_out"] == {}
    assert row["entity_counts"] == {"filehash": 130, "process": 1}
    assert len(row["entities"]["filehash"]) == 130
    value = f"{129:040x}"
    assert row["entities"]["filehash"][0] == {"name": value, "alerts": 2, "algorithm": "SHA1", "value": value}
    assert row["entities"]["process"] == [
        {
            "name": "cmd.exe",
            "alerts": 2,
            "process_id": "1",
            "command_line": "cmd.exe",
            "other_values": {"process_id": ["2"]},
        }
    ]
    assert {len(found["entities"]) for found in row["alerts"]} == {131, 2}


@pytest.mark.requirement("TOOL-7")
async def test_the_real_incident_5_is_shown_with_all_its_entities(real: Any) -> None:
    result = await real.ask("get_incident_detail", incident="5", detail="full")
    row = result.rows[0]
    assert set(result.summary["left_out"]) == {"cut_texts"}
    assert (row["alert_count"], len(row["alerts"]), len(row["alert_ids_without_row"])) == (71, 70, 1)
    assert all(found["entity_count"] == len(found["entities"]) for found in row["alerts"])
    assert row["entity_counts"] == {
        "account": 4,
        "file": 45,
        "filehash": 105,
        "host": 7,
        "ip": 7,
        "process": 32,
        "url": 2,
    }
    shown = {kind: len(entities) for kind, entities in row["entities"].items()}
    assert shown == row["entity_counts"]
    assert all(account["sid"] for account in row["entities"]["account"])
    assert all("…" not in file["name"] for file in row["entities"]["file"])
    assert row["open_duration_s"] is None


@pytest.mark.requirement("TOOL-6")
async def test_the_real_incident_55(real: Any) -> None:
    result = await real.ask("get_incident_detail", incident="55", detail="full")
    row = result.rows[0]
    assert (row["provider_incident_id"], row["alert_count"], len(row["alerts"])) == ("384", 28, 27)
    assert len(row["alert_ids_without_row"]) == 1
    assert {"account", "host", "ip", "process", "file", "filehash", "registry-key"} <= set(row["entities"])
    assert row["entities"]["account"][0]["name"] == "bjenkins@niseko.alpineskihouse.co"


@pytest.mark.requirement("TOOL-6")
async def test_384_is_the_defender_id_of_55_and_no_sentinel_number(real: Any) -> None:
    result = await real.ask("get_incident_detail", incident="#384")
    assert [row["number"] for row in result.rows] == [55]
    assert result.summary["matched_by"] == "provider_incident_id"
    assert "384 is no Sentinel incident number; it is the Defender id of Sentinel incident 55." in result.notes


@pytest.mark.requirement("CHAT-18")
async def test_a_model_can_read_a_real_incident_of_seventy_alerts_whole(real: Any) -> None:
    result = await real.ask("get_incident_detail", incident="5", detail="full")
    call = ToolCall("c1", "s", "get_incident_detail", {"incident": "5"})
    numbered_result = numbered(ToolRun(call, Succeeded(call, result, "")))
    counter, first = EstimatingCounter(), 1
    seen: list[str] = []
    while first:
        page = view(numbered_result, limit=16_000, counter=counter, first=first)
        seen += re.findall(r"^\[(c1\.\d+)\]", page.text, re.MULTILINE)
        first = page.next_row
    assert seen == [row.ref for row in numbered_result.rows]
    assert len(numbered_result.rows_of("alert")) == len(result.rows[0]["alerts"]) >= 70
