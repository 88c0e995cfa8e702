"""query_alerts: newest row of each alert, exact totals, entities found by every name they go by."""

from __future__ import annotations

import json
from typing import Any

import pytest
from estate_rows import alert, guid, incident

from sentinel_rag.contracts.query_results import TimeWindow, note_code, parse_time

pytestmark = pytest.mark.anyio


def names(result: Any) -> list[Any]:
    return [row["name"] for row in result.rows]


SID = "S-1-5-21-1111111111-2222222222-3333333333-1001"
ANA = {"$id": "1", "Type": "account", "Name": "ana", "UPNSuffix": "contoso.example", "NTDomain": "CONTOSO", "Sid": SID}
ANA_SHORT = {"$id": "1", "Type": "account", "Name": "ana", "NTDomain": "contoso"}
HOST = {"$id": "2", "Type": "host", "HostName": "WIN-01", "DnsDomain": "corp.example", "NetBiosName": "WIN01NB"}
FILE = {
    "$id": "3",
    "Type": "file",
    "Directory": "C:\\Program Files\\Tool's",
    "Name": "evil tool.exe",
    "FileHashes": [{"$id": "4", "Type": "filehash", "Algorithm": "SHA256", "Value": "A" * 64}],
}
PROCESS = {
    "$id": "5",
    "Type": "process",
    "ProcessId": "42",
    "CommandLine": 'evil.exe --say "hi" \\ c:\\temp',
    "ImageFile": {"$ref": "3"},
}


@pytest.fixture(scope="module")
def estate(serving: Any) -> Any:
    return serving(
        SecurityIncident=[
            incident(1, "2024-08-01T10:00:00Z", AlertIds=[guid("alert signin"), guid("alert tool")]),
            incident(2, "2024-08-02T10:00:00Z", AlertIds=[guid("alert tool")], Status="Closed"),
        ],
        SecurityAlert=[
            alert("signin", "2024-08-01T08:00:00Z", AlertSeverity="High", Entities=[ANA], ProductName="Entra ID"),
            alert(
                "signin",
                "2024-08-02T22:00:00Z",
                StartTime="2024-08-01T07:59:00Z",
                AlertSeverity="Low",
                Status="Resolved",
                Entities=[ANA],
            ),
            alert(
                "tool",
                "2024-08-01T09:00:00Z",
                AlertSeverity="High",
                Entities=[HOST, PROCESS, FILE, {"$ref": "4"}, {"$ref": "3"}],
                CompromisedEntity="win-01.corp.example",
                Tactics="DefenseEvasion, LateralMovement",
                Techniques='["T1570"]',
                SubTechniques='["T1021.002"]',
                Description="First line.\r\n" + "long " * 200,
            ),
            alert("short name", "2024-08-01T10:00:00Z", Entities=[ANA_SHORT]),
            alert("Malware prevented\u200b", "2024-08-01T11:00:00Z", Entities="[{not json", Status="InProgress"),
            alert("\u200b", "2024-08-01T11:30:00Z", DisplayName="O'Brien's alert", AlertSeverity="Informational"),
            alert(
                "late record",
                "2024-07-20T06:00:00Z",
                StartTime="2024-07-10T09:46:30Z",
                EndTime="2024-07-10T09:47:00Z",
                Entities=[{"$id": "1", "Type": "ip", "Address": "192.0.2.10"}, {"$ref": "99"}],
                ExtendedProperties='{"Custom Details": "{\\"Ticket\\":[\\"A\\r\\nB\\"]}", "Note": "line\r\nbreak"}',
            ),
            alert(
                "url",
                "2024-08-01T12:00:00Z",
                Entities=[
                    {"Type": "url", "Url": "https://evil.example/Path?q='x'"},
                    {"Type": "ip", "Address": "192.0.2.100"},
                    {"Type": "ip", "Address": "2001:0DB8:0:0::7"},
                    {"Type": "made-up-kind", "Thing": "something new"},
                ],
            ),
        ],
    )


@pytest.mark.requirement("TOOL-6")
async def test_each_alert_counts_once_with_its_newest_row_at_the_time_of_its_first(estate: Any) -> None:
    result = await estate.ask("query_alerts")
    assert names(result) == [
        "url",
        "O'Brien's alert",
        "Malware prevented",
        "short name",
        "tool",
        "signin",
        "late record",
    ]
    assert result.coverage.rows_total == 7
    signin = result.rows[5]
    assert (signin["severity"], signin["status"]) == ("Low", "Resolved")
    assert (signin["time"], signin["row_time"]) == ("2024-08-01T08:00:00Z", "2024-08-02T22:00:00Z")
    assert result.summary["by_severity"] == {"High": 1, "Medium": 4, "Low": 1, "Informational": 1}
    assert result.summary["by_status"] == {"New": 5, "InProgress": 1, "Resolved": 1}
    assert result.summary["by_product"] == {"Microsoft Defender XDR": 7}
    assert result.summary["by_name"] == dict.fromkeys(sorted(names(result)), 1)


async def test_an_alert_of_last_night_that_was_resolved_today_stays_one_of_last_night(estate: Any) -> None:
    today = await estate.ask("query_alerts", start_time="2024-08-02T00:00:00Z", end_time="2024-08-03T00:00:00Z")
    that_day = await estate.ask("query_alerts", start_time="2024-08-01T08:00:00Z", end_time="2024-08-01T09:00:00Z")
    assert names(today) == []
    assert [(row["name"], row["status"]) for row in that_day.rows] == [("signin", "Resolved")]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"severity": "High"}, ["tool"]),
        ({"min_severity": "Medium", "order": "severity", "limit": 2}, ["tool", "url"]),
        ({"status": "InProgress"}, ["Malware prevented"]),
        ({"name_contains": "o'brien"}, ["O'Brien's alert"]),
        ({"name_contains": "PREVENTED malware"}, ["Malware prevented"]),
        ({"product": "entra"}, []),
        ({"product": "defender", "severity": "Low"}, ["signin"]),
        ({"tactic": "Lateral Movement"}, ["tool"]),
        ({"tactic": "lateralmovement"}, ["tool"]),
        ({"tactic": "Movement"}, []),
        ({"tactic": "T1021"}, ["tool"]),
        ({"tactic": "t1021.002"}, ["tool"]),
        ({"tactic": "T1570"}, ["tool"]),
        ({"tactic": "T157"}, []),
        ({"order": "oldest", "limit": 1}, ["late record"]),
        ({"alert_id": guid("alert tool")}, ["tool"]),
        ({"alert_id": guid("alert tool").upper()}, ["tool"]),
        ({"alert_id": f"  {guid('alert late record')} "}, ["late record"]),
        ({"alert_id": "VENDOR1_url"}, ["url"]),
        ({"alert_id": "vendor1_"}, []),
        ({"alert_id": guid("alert tool")[:8]}, []),
        ({"alert_id": guid("alert tool"), "severity": "Low"}, []),
        ({"alert_id": guid("alert tool"), "incident": "2", "entity": "win-01"}, ["tool"]),
        ({"alert_id": '" or 1 == 1 //'}, []),
        ({"incident": "1"}, ["tool", "signin"]),
        ({"incident": "2"}, ["tool"]),
        ({"incident": "77"}, []),
    ],
    ids=str,
)
async def test_filters(estate: Any, filters: dict[str, Any], expected: list[str]) -> None:
    assert names(await estate.ask("query_alerts", **filters)) == expected


@pytest.mark.requirement("TOOL-6")
async def test_an_alert_asked_for_by_its_id_comes_in_its_newest_row_whenever_it_was(estate: Any) -> None:
    result = await estate.ask("query_alerts", alert_id=guid("alert signin"))
    assert [(row["name"], row["status"], row["row_time"]) for row in result.rows] == [
        ("signin", "Resolved", "2024-08-02T22:00:00Z")
    ]
    assert (result.coverage.rows_total, result.coverage.window) == (1, TimeWindow())
    outside = await estate.ask("query_alerts", alert_id=guid("alert signin"), time_window="last_1h")
    assert outside.rows == ()
    assert any("meets the other conditions" in note for note in outside.notes)


async def test_an_id_that_no_alert_has_is_told(estate: Any) -> None:
    result = await estate.ask("query_alerts", alert_id=guid("nobody"))
    assert (result.rows, result.coverage.rows_total) == ((), 0)
    assert f"No alert of this workspace has the id '{guid('nobody')}' (SystemAlertId or VendorOriginalId)." in (
        result.notes
    )


@pytest.mark.requirement("TOOL-7")
@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("ana@contoso.example", None, ["short name", "signin"]),
        ("ANA@Contoso.Example", "account", ["short name", "signin"]),
        ("contoso\\ana", None, ["short name", "signin"]),
        (SID, None, ["signin"]),
        ("ana", "host", []),
        ("win-01", None, ["tool"]),
        ("WIN-01.corp.example", "host", ["tool"]),
        ("win01nb", None, ["tool"]),
        ("C:\\Program Files\\Tool's\\evil tool.exe", None, ["tool"]),
        ("EVIL TOOL.EXE", "file", ["tool"]),
        ('evil.exe --say "hi" \\ c:\\temp', None, ["tool"]),
        ("evil tool.exe", "process", ["tool"]),
        ("a" * 64, None, ["tool"]),
        ("192.0.2.10", None, ["late record"]),
        ("192.0.2.1", None, []),
        ("2001:db8::7", None, ["url"]),
        ("2001:0db8:0000:0000:0000:0000:0000:0007", "ip", ["url"]),
        ("evil.example", None, ["url"]),
        ("https://evil.example/Path?q='x'", "url", ["url"]),
        ("something new", None, ["url"]),
        ("O'Brien", None, []),
        ("'; drop table x --", None, []),
        ("%", None, []),
        ("\\", None, []),
    ],
)
async def test_an_entity_is_found_by_every_value_that_names_it_exactly(
    estate: Any, value: str, kind: str | None, expected: list[str]
) -> None:
    arguments = {"entity": value} if kind is None else {"entity": value, "entity_kind": kind}
    result = await estate.ask("query_alerts", **arguments)
    assert names(result) == expected
    assert result.coverage.rows_total == len(expected)
    assert sum(result.summary["by_severity"].values()) == len(expected)


async def test_a_part_of_one_name_is_read_as_that_name_and_said(estate: Any) -> None:
    result = await estate.ask("query_alerts", entity="win")
    assert names(result) == names(await estate.ask("query_alerts", entity="WIN-01.corp.example"))
    assert "No entity is exactly 'win'; read was WIN-01.corp.example, the only one like it." in result.notes
    assert result.summary["names"]["entity"]["code"] == "name_completed"


@pytest.mark.parametrize("value", ["win-0", "win-01.other.example"])
async def test_what_may_be_another_machine_is_proposed_and_never_read(estate: Any, value: str) -> None:
    result = await estate.ask("query_alerts", entity=value)
    assert result.rows == ()
    assert result.summary["names"]["entity"] == {
        "code": "name_unclear",
        "given": value,
        "like": ["WIN-01.corp.example"],
    }


async def test_a_name_outside_the_window_is_known_and_said_to_be(estate: Any) -> None:
    result = await estate.ask("query_alerts", entity="win-01", start_time="2030-01-01T00:00:00Z")
    assert result.rows == ()
    assert result.summary["names"]["entity"]["code"] == "name_known"


@pytest.mark.requirement("TOOL-7")
async def test_entities_of_a_row_are_resolved_named_identified_and_each_listed_once(estate: Any) -> None:
    rows = {row["name"]: row for row in (await estate.ask("query_alerts")).rows}
    assert rows["tool"]["entities"] == [
        {"kind": "host", "name": "WIN-01.corp.example", "host_name": "WIN-01", "dns_domain": "corp.example"},
        {
            "kind": "process",
            "name": 'evil.exe --say "hi" \\ c:\\temp',
            "process_id": "42",
            "command_line": 'evil.exe --say "hi" \\ c:\\temp',
            "image_file": "C:\\Program Files\\Tool's\\evil tool.exe",
        },
        {
            "kind": "file",
            "name": "C:\\Program Files\\Tool's\\evil tool.exe",
            "directory": "C:\\Program Files\\Tool's",
            "sha256": "A" * 64,
        },
        {"kind": "filehash", "name": "A" * 64, "algorithm": "SHA256", "value": "A" * 64},
    ]
    assert rows["tool"]["entity_count"] == 4
    assert rows["url"]["entities"][-1] == {"kind": "made-up-kind", "name": "something new"}


@pytest.mark.requirement("TOOL-7")
async def test_entities_that_do_not_parse_are_told_and_the_alert_is_kept(estate: Any) -> None:
    result = await estate.ask("query_alerts")
    assert any("entities of 1 alert do not parse" in note for note in result.notes)
    assert any("1 entity references point at nothing" in note for note in result.notes)
    row = next(row for row in result.rows if row["name"] == "Malware prevented")
    assert row["entities"] == []


@pytest.mark.requirement("TOOL-7")
async def test_custom_details_with_line_breaks_are_parsed(estate: Any) -> None:
    row = (await estate.ask("query_alerts", order="oldest", limit=1)).rows[0]
    assert row["custom_details"] == {"Ticket": ["A\r\nB"]}


async def test_texts_are_one_line_and_cut_where_more_than_five_alerts_come(estate: Any) -> None:
    few = (await estate.ask("query_alerts", severity="High")).rows[0]
    assert few["description"] == "First line. " + " ".join(["long"] * 200)
    row = next(row for row in (await estate.ask("query_alerts")).rows if row["name"] == "tool")
    assert row["description"].startswith("First line. long")
    assert row["description"].endswith("…")
    assert len(row["description"]) <= 300
    assert (row["tactics"], row["techniques"]) == (["DefenseEvasion", "LateralMovement"], ["T1570", "T1021.002"])


@pytest.mark.requirement("TOOL-6")
async def test_the_incident_of_an_alert_is_found_through_the_incidents(estate: Any) -> None:
    result = await estate.ask("query_alerts")
    linked = {row["name"]: row["incident_number"] for row in result.rows}
    assert (linked["signin"], linked["tool"], linked["url"]) == (1, 2, None)
    assert any("1 alert belongs to more than one incident" in note for note in result.notes)
    told = [note for note in result.notes if "2 alerts have another state than the incident" in note]
    assert [note_code(note) for note in told] == ["alert_state_differs"]


async def test_a_minute_of_activity_finds_alerts_that_were_recorded_days_later(estate: Any) -> None:
    result = await estate.ask("query_alerts", start_time="2024-07-10T09:45:00Z", end_time="2024-07-10T09:48:00Z")
    assert names(result) == ["late record"]
    assert result.coverage.time_column == "StartTime"
    assert any("StartTime" in note for note in result.notes)
    by_entity = await estate.ask(
        "query_alerts", entity="192.0.2.10", start_time="2024-07-10T09:45:00Z", end_time="2024-07-10T09:48:00Z"
    )
    assert (names(by_entity), by_entity.coverage.time_column) == (["late record"], "StartTime")


async def test_an_empty_window_says_where_rows_are(estate: Any) -> None:
    result = await estate.ask("query_alerts", time_window="last_1h")
    assert (result.rows, result.coverage.rows_total, result.coverage.table_rows) == ((), 0, 8)
    assert result.coverage.table_newest == parse_time("2024-08-02T22:00:00Z")


@pytest.mark.requirement("TOOL-6")
async def test_the_real_alerts(real: Any) -> None:
    result = await real.ask("query_alerts", limit=100)
    assert (result.coverage.rows_returned, result.coverage.rows_total) == (100, 189)
    assert result.summary["by_severity"] == {"High": 85, "Medium": 78, "Low": 18, "Informational": 8}
    assert len(result.summary["by_name"]) == 20


async def test_a_hundred_real_alerts_stay_compact_and_a_page_of_them_is_full(real: Any) -> None:
    page = await real.ask("query_alerts", limit=20)
    assert all(len(row["entities"]) == row["entity_count"] for row in page.rows)
    assert any("sid" in entity for row in page.rows for entity in row["entities"])
    result = await real.ask("query_alerts", limit=100)
    assert {key for row in result.rows for entity in row["entities"] for key in entity} == {"kind", "name"}
    assert max(len(row["entities"]) for row in result.rows) == 4
    assert max(len(entity["name"]) for row in result.rows for entity in row["entities"]) == 80
    assert len(json.dumps(result.to_dict()["rows"], ensure_ascii=False)) < 100_000


async def test_a_long_list_of_entities_is_cut_at_forty_and_the_count_is_of_all(serving: Any) -> None:
    hashes = [{"Type": "filehash", "Algorithm": "MD5", "Value": f"{number:032x}"} for number in range(50)]
    url = {"Type": "url", "Url": "https://evil.example/" + "x" * 1200}
    line = {"Type": "process", "ProcessId": 7, "CommandLine": "tool  --twice\r\n " + "y" * 2000}
    estate = serving(SecurityAlert=[alert("many", "2024-08-01T08:00:00Z", Entities=[*hashes, url, line])])
    row = (await estate.ask("query_alerts")).rows[0]
    assert (len(row["entities"]), row["entity_count"]) == (40, 52)
    shown_url, shown_line = row["entities"][:2]
    assert shown_url["url"] == shown_url["name"] == "https://evil.example/" + "x" * 978 + "…"
    assert shown_line["command_line"] == "tool  --twice " + "y" * 985 + "…"
    assert shown_line["process_id"] == "7"


@pytest.mark.requirement("TOOL-7")
async def test_two_processes_of_one_command_line_in_one_alert_are_two(serving: Any) -> None:
    line = {"Type": "process", "CommandLine": "cmd.exe"}
    twice = [{**line, "ProcessId": "1"}, {**line, "ProcessId": "2"}, {**line, "ProcessId": "1"}, line]
    estate = serving(SecurityAlert=[alert("twice", "2024-08-01T08:00:00Z", Entities=twice)])
    row = (await estate.ask("query_alerts")).rows[0]
    assert [entity["process_id"] for entity in row["entities"]] == ["1", "2"]
    assert row["entity_count"] == 2


async def test_few_alerts_come_with_what_to_do_about_them(serving: Any) -> None:
    steps = ["Isolate the device.", "", None, "long " * 200, *(f"step {number}" for number in range(20))]
    estate = serving(
        SecurityAlert=[
            alert("list", "2024-08-01T08:05:00Z", RemediationSteps=json.dumps(steps)),
            alert("text", "2024-08-01T08:04:00Z", RemediationSteps="1. Reset it.\r\n\r\n2. Tell Ana."),
            alert("none", "2024-08-01T08:03:00Z"),
            *(alert(f"more {number}", f"2024-08-01T08:0{number}:00Z") for number in range(3)),
        ]
    )
    few = (await estate.ask("query_alerts", limit=5)).rows
    assert few[0]["remediation_steps"][0] == "Isolate the device."
    assert few[0]["remediation_steps"][2:] == [f"step {number}" for number in range(10)]
    assert (len(few[0]["remediation_steps"]), len(few[0]["remediation_steps"][1])) == (12, 500)
    assert few[1]["remediation_steps"] == ["1. Reset it.", "2. Tell Ana."]
    assert few[2]["remediation_steps"] == []
    assert not any("remediation_steps" in row for row in (await estate.ask("query_alerts", limit=6)).rows)


async def test_the_steps_of_a_real_alert(real: Any) -> None:
    row = (await real.ask("query_alerts", alert_id="197C2262-2CD9-4CA0-4C33-ADD856F8AF63")).rows[0]
    assert [step[:2] for step in row["remediation_steps"]] == ["1.", "2.", "3.", "4.", "5."]


async def test_the_entity_that_was_searched_stands_first_in_every_row(real: Any) -> None:
    result = await real.ask("query_alerts", entity="vnevado-win10v", limit=100)
    assert result.coverage.rows_returned == 40
    assert {row["entities"][0]["name"].lower() for row in result.rows} == {"vnevado-win10v.vnevado.alpineskihouse.co"}
    assert all(row["entity_count"] >= len(row["entities"]) for row in result.rows)


async def test_a_real_minute(real: Any) -> None:
    result = await real.ask("query_alerts", start_time="2024-07-02T09:45:00Z", end_time="2024-07-02T09:48:00Z")
    assert (result.coverage.rows_total, result.coverage.time_column) == (9, "StartTime")


async def test_the_alerts_of_a_real_incident_and_the_id_without_a_row(real: Any) -> None:
    result = await real.ask("query_alerts", incident="55", limit=100)
    assert result.coverage.rows_total == 27
    assert "The incident names 28 alerts; SecurityAlert has no row for 1 of them." in result.notes
    assert {row["incident_number"] for row in result.rows} == {55}


BY_EVENT = [  # recorded in another order than it happened; two began in the same moment
    alert("second", "2024-08-01T09:00:00Z", StartTime="2024-07-30T09:10:00Z", SystemAlertId=guid("b")),
    alert("third", "2024-08-01T08:00:00Z", StartTime="2024-07-30T09:10:00Z", SystemAlertId=guid("c")),
    alert("first", "2024-08-05T08:00:00Z", StartTime="2024-07-30T09:00:00Z", SystemAlertId=guid("a")),
    alert("without a start", "2024-07-31T00:00:00Z", StartTime=None, SystemAlertId=guid("d")),
]


async def test_the_order_of_alerts_is_that_of_their_events(serving: Any) -> None:
    served = serving(SecurityAlert=BY_EVENT)
    tied = [name for _, name in sorted([(guid("b"), "second"), (guid("c"), "third")])]
    for filters in ({}, {"start_time": "2024-07-01T00:00:00Z"}):
        oldest = await served.ask("query_alerts", order="oldest", **filters)
        assert names(oldest) == ["first", *tied, "without a start"]
        newest = await served.ask("query_alerts", order="newest", **filters)
        assert names(newest) == names(oldest)[::-1]
    pages = [await served.ask("query_alerts", order="oldest", limit=1, offset=offset) for offset in range(4)]
    assert [name for page in pages for name in names(page)] == names(oldest)


async def test_the_real_alerts_of_an_incident_come_in_the_order_of_the_attack(real: Any) -> None:
    result = await real.ask("query_alerts", incident="5", order="oldest", limit=100)
    started = [parse_time(str(row["start_time"])) for row in result.rows]
    assert len(started) == 70
    assert started == sorted(started)
    recorded = [row["time"] for row in result.rows]
    assert recorded != sorted(recorded)
