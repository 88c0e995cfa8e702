"""Files as people have them: exports of advanced hunting, times of portals, REST and Graph JSON, queues, archives."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from sentinel_rag.surfaces.cli import main
from sentinel_rag.workspace.importing import source_files
from sentinel_rag.workspace.importing.source_files import UnreadableFileError
from sentinel_rag.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("DATA-5")

HUNTED = (
    "Timestamp,DeviceId,DeviceName,ActionType,FileName,FolderPath,SHA256,InitiatingProcessFileName,"
    "InitiatingProcessCommandLine,AccountName,AccountDomain,ReportId\n"
)
TIME = "2026-11-28T13:02:03Z"


def hunted(*actions: str, time: str = TIME) -> str:
    rows = (
        f'"{time}",d{n},ws-17,{action},cmd.exe,C:\\x,aa,explorer.exe,x,dana,corp,{n}\n'
        for n, action in enumerate(actions)
    )
    return HUNTED + "".join(rows)


def imported(workspace: Workspace, path: Path, content: str | bytes) -> list[Any]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return workspace.import_path(path)


def values(workspace: Workspace, kql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in workspace.query(kql).rows]


@pytest.mark.parametrize("name", ["New query.csv", "AdvancedHunting_DeviceProcessEvents.csv", "export (3).csv"])
def test_processes_of_advanced_hunting_go_to_their_table_under_any_name(
    workspace: Workspace, tmp_path: Path, name: str
) -> None:
    (report,) = imported(workspace, tmp_path / name, hunted("ProcessCreated", "ProcessCreated"))
    assert (report.table, report.rows_stored) == ("DeviceProcessEvents", 2)


def test_rows_of_several_actions_go_each_to_their_table(workspace: Workspace, tmp_path: Path) -> None:
    actions = ("ProcessCreated", "ConnectionSuccess", "FileCreated", "ConnectionFailed", "AntivirusDetection")
    reports = imported(workspace, tmp_path / "New query.csv", hunted(*actions))
    assert {each.table: each.rows_stored for each in reports} == {
        "DeviceProcessEvents": 1,
        "DeviceNetworkEvents": 2,
        "DeviceFileEvents": 1,
        "DeviceEvents": 1,
    }


@pytest.mark.parametrize(
    "written",
    [
        "Nov 28, 2026 1:02:03 PM",
        "Nov 28, 2026 1:02:03.000 PM",
        "11/28/2026, 1:02:03 PM",
        "28.11.2026, 13:02:03",
        "28.11.2026 13:02:03",
        "Sat Nov 28 13:02:03 2026 UTC",
        "20261128130203.000",
        "1795870923",
        "1795870923000",
        "2026-11-28 13:02:03",
    ],
)
@pytest.mark.parametrize("table", ["DeviceProcessEvents", "custom_CL"])
def test_times_as_portals_and_people_write_them_place_the_rows(
    workspace: Workspace, tmp_path: Path, written: str, table: str
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f'Timestamp,DeviceName,ActionType\n"{written}",ws-17,ProcessCreated\n')
    (report,) = workspace.import_path(path, table=table)
    assert not report.misfits
    assert values(workspace, f"{table} | project TimeGenerated") == [("2026-11-28T13:02:03Z",)]


def test_a_file_whose_times_nobody_reads_does_not_spoil_those_after_it(workspace: Workspace, tmp_path: Path) -> None:
    imported(workspace, tmp_path / "DeviceProcessEvents.csv", hunted("ProcessCreated", time="around noon"))
    (report,) = imported(workspace, tmp_path / "DeviceProcessEvents_2.csv", hunted("ProcessCreated", "ProcessCreated"))
    assert any("filled from Timestamp" in note for note in report.notes)
    placed = values(workspace, "DeviceProcessEvents | summarize countif(isnotempty(TimeGenerated))")
    assert placed == [(2,)]


def test_columns_of_two_tables_are_those_of_the_commoner_one_and_it_says_so(
    workspace: Workspace, tmp_path: Path
) -> None:
    row = {"TimeGenerated": TIME, "UserPrincipalName": "dana@x.example", "ResultType": "0", "IPAddress": "192.0.2.1"}
    answer = {"tables": [{"name": "P", "columns": [{"name": n} for n in row], "rows": [list(row.values())]}]}
    (report,) = imported(workspace, tmp_path / "answer.json", json.dumps(answer))
    assert report.table == "SigninLogs"
    assert any("the commonest was taken (--table names another)" in note for note in report.notes)


REST = {
    "id": "/subscriptions/s/incidents/1437c223",
    "name": "1437c223-8852-4ebd-8973-e1058896914c",
    "type": "Microsoft.SecurityInsights/Incidents",
    "properties": {
        "title": "Password spray",
        "severity": "High",
        "status": "Closed",
        "classification": "TruePositive",
        "owner": {"assignedTo": "Dana", "email": "dana@x.example"},
        "labels": [],
        "incidentNumber": 3177,
        "createdTimeUtc": "2026-11-27T08:00:00Z",
        "lastModifiedTimeUtc": "2026-11-28T08:00:00.5763494Z",
        "additionalData": {"alertsCount": 2, "tactics": ["CredentialAccess"]},
        "incidentUrl": "https://portal.example/3177",
    },
}
FLAT = {
    "name": "9d16f4f0-953c-4bb4-8e5e-f1ccc607c046",
    "properties.title": "Flat one",
    "properties.severity": "Medium",
    "properties.status": "New",
    "properties.owner.assignedTo": None,
    "properties.incidentNumber": 58035,
    "properties.createdTimeUtc": "2021-10-01T17:52:21.5763494Z",
    "properties.lastModifiedTimeUtc": "2021-10-01T17:52:21.5763494Z",
    "Alerts": [{"ID": "a-1", "Name": "x"}],
}
GRAPH = {
    "id": "2972395",
    "incidentWebUrl": "https://security.example/incidents/2972395",
    "displayName": "Multi-stage attack",
    "createdDateTime": "2026-11-28T08:43:35Z",
    "lastUpdateDateTime": "2026-11-28T18:38:35Z",
    "assignedTo": "kaic@x.example",
    "classification": "truePositive",
    "status": "inProgress",
    "severity": "medium",
    "customTags": ["Demo"],
    "alerts": [
        {
            "id": "da637551227677560813",
            "title": "Suspicious execution",
            "incidentId": "2972395",
            "status": "new",
            "severity": "low",
            "serviceSource": "microsoftDefenderForEndpoint",
            "createdDateTime": "2026-11-28T08:40:00Z",
            "firstActivityDateTime": "2026-11-28T08:30:00Z",
            "lastActivityDateTime": "2026-11-28T08:31:00Z",
            "alertWebUrl": "https://security.example/alerts/da63",
            "category": "DefenseEvasion",
            "mitreTechniques": ["T1564.001"],
            "evidence": [
                {"@odata.type": "#microsoft.graph.security.deviceEvidence", "deviceDnsName": "ws-17.x.example"},
                {"@odata.type": "#microsoft.graph.security.userEvidence", "userAccount": {"accountName": "dana"}},
                {"@odata.type": "#microsoft.graph.security.ipEvidence", "ipAddress": "192.0.2.7"},
            ],
        }
    ],
}
INCIDENT = "SecurityIncident | project IncidentNumber, Title, Severity, Status, TimeGenerated"


@pytest.mark.parametrize("wrapped", [{"value": [REST]}, [REST], REST])
def test_incidents_of_the_rest_api_are_incidents(workspace: Workspace, tmp_path: Path, wrapped: Any) -> None:
    (report,) = imported(workspace, tmp_path / "incidents_rest.json", json.dumps(wrapped))
    assert (report.table, report.rows_rejected) == ("SecurityIncident", 0)
    assert report.misfits == ()
    assert "Read as incidents of Sentinel's API." in report.notes
    assert values(workspace, INCIDENT) == [(3177, "Password spray", "High", "Closed", "2026-11-28T08:00:00.576349Z")]
    [(owner, closed)] = values(workspace, "SecurityIncident | project tostring(Owner.email), isnotempty(ClosedTime)")
    assert (owner, closed) == ("dana@x.example", True)


def test_incidents_that_a_program_flattened_are_incidents_line_by_line(workspace: Workspace, tmp_path: Path) -> None:
    lines = "\n".join((json.dumps(FLAT), "not json", json.dumps({**FLAT, "properties.incidentNumber": 58036})))
    (report,) = imported(workspace, tmp_path / "sent.jsonl", lines)
    assert (report.table, report.rows_stored, report.rows_rejected) == ("SecurityIncident", 2, 1)
    found = values(
        workspace, "SecurityIncident | project IncidentNumber, tostring(AlertIds) | order by IncidentNumber asc"
    )
    assert found == [(58035, '["a-1"]'), (58036, '["a-1"]')]


def test_incidents_of_graph_bring_their_alerts_and_entities(workspace: Workspace, tmp_path: Path) -> None:
    reports = imported(workspace, tmp_path / "graph.json", json.dumps({"@odata.context": "x", "value": [GRAPH]}))
    assert {each.table: each.rows_stored for each in reports} == {"SecurityIncident": 1, "SecurityAlert": 1}
    assert values(workspace, INCIDENT) == [
        (2972395, "Multi-stage attack", "Medium", "Active", "2026-11-28T18:38:35Z"),
    ]
    [(name, severity, entities)] = values(
        workspace, "SecurityAlert | project AlertName, AlertSeverity, tostring(Entities)"
    )
    assert (name, severity) == ("Suspicious execution", "Low")
    assert [entity["Type"] for entity in json.loads(entities)] == ["host", "account", "ip"]


QUEUE = (
    "Incident name,Incident Id,Tags,Severity,Investigation state,Categories,Impacted assets,Active alerts,"
    "Service sources,First activity,Last activity,Status,Assigned to,Classification\n"
    'Password spray,412,"vip,emea",High,,Initial access,dana,2/3,Defender,"Nov 28, 2026 1:02:03 PM",'
    '"Nov 28, 2026 2:02:03 PM",Active,Unassigned,Not set\n'
    'Scan,413,,Low,,Discovery,web,0/1,Defender,"Nov 27, 2026 1:02:03 PM","Nov 27, 2026 2:02:03 PM",Resolved,'
    "dana@x.example,True positive\n"
)


def test_the_queue_of_incidents_of_defender_is_incidents_by_their_defender_id(
    workspace: Workspace, tmp_path: Path
) -> None:
    (report,) = imported(workspace, tmp_path / "incidents-queue-20261128.csv", QUEUE)
    assert report.table == "SecurityIncident"
    found = values(workspace, f"{INCIDENT} | order by IncidentNumber asc")
    assert [row[:4] for row in found] == [(412, "Password spray", "High", "New"), (413, "Scan", "Low", "Closed")]
    assert found[0][4] == "2026-11-28T14:02:03Z"


def test_the_queue_of_alerts_of_defender_is_alerts(workspace: Workspace, tmp_path: Path) -> None:
    head = (
        "Alert name,Tags,Severity,Investigation state,Status,Category,Detection source,Impacted assets,"
        "First activity,Last activity\n"
    )
    row = (
        "Suspicious sign-in,,Medium,,New,Initial access,Identity,dana,"
        '"Nov 28, 2026 1:02:03 PM","Nov 28, 2026 1:03:03 PM"\n'
    )
    imported(workspace, tmp_path / "alerts-queue.csv", head + row)
    (again,) = imported(workspace, tmp_path / "alerts-queue (1).csv", head + row)
    assert (again.table, again.duplicates_skipped) == ("SecurityAlert", 1)
    assert values(workspace, "SecurityAlert | project AlertName, AlertSeverity, Status") == [
        ("Suspicious sign-in", "Medium", "New")
    ]


# --- archives


def zipped(files: dict[str, str]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def workbook(rows: str) -> bytes:
    """A workbook whose sheet has these rows, as XML, and does not say how many."""
    made = io.BytesIO()
    openpyxl.Workbook().save(made)
    with zipfile.ZipFile(made) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    before, end, behind = parts[sheet].replace('<dimension ref="A1:A1"/>', "").partition("</sheetData>")
    assert behind
    return zipped({**parts, sheet: before + rows + end + behind})


def test_a_zip_is_its_files_and_tells_each(workspace: Workspace, tmp_path: Path) -> None:
    content = zipped(
        {
            "export/DeviceProcessEvents.csv": hunted("ProcessCreated"),
            "../../queue.csv": QUEUE,
            "readme.md": "no",
            "e.csv": "",
        }
    )
    reports = imported(workspace, tmp_path / "export.zip", content)
    told = {each.file.partition(": ")[2]: each for each in reports}
    assert told["export/DeviceProcessEvents.csv"].table == "DeviceProcessEvents"
    assert told["../../queue.csv"].table == "SecurityIncident"
    assert "is empty" in told["e.csv"].error
    assert "staging" not in told["e.csv"].error
    assert not (tmp_path.parent / "queue.csv").exists()


def test_a_gzip_is_the_file_that_it_holds(workspace: Workspace, tmp_path: Path) -> None:
    (report,) = imported(
        workspace, tmp_path / "DeviceProcessEvents.csv.gz", gzip.compress(hunted("ProcessCreated").encode())
    )
    assert (report.table, report.rows_stored) == ("DeviceProcessEvents", 1)


def test_a_workbook_is_its_sheets_with_their_times(workspace: Workspace, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.title = "DeviceProcessEvents"
    book.active.append(["Timestamp", "DeviceName", "ActionType", "FileName"])
    book.active.append([datetime(2026, 11, 28, 13, 2, 3), "ws-17", "ProcessCreated", "Müller.exe"])
    other = book.create_sheet("empty")
    other.append([])
    path = tmp_path / "rows.xlsx"
    book.save(path)
    (report,) = workspace.import_path(path)
    assert (report.table, report.rows_stored) == ("DeviceProcessEvents", 1)
    found = values(workspace, "DeviceProcessEvents | project TimeGenerated, FileName")
    assert found == [(datetime(2026, 11, 28, 13, 2, 3, tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "Müller.exe")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cut.zip", zipped({"a.csv": "x,y\n1,2\n"})[:40]),
        ("cut.csv.gz", gzip.compress(b"x,y\n" * 1_000)[:30]),
        ("no.xlsx", b"PK\x03\x04 nothing"),
        ("text.gz", b"plain text"),
        ("nothing.zip", zipped({"readme.md": "no"})),
        ("strings.xlsx", workbook('<row r="1"><c r="A1" t="s"><v>7</v></c></row>')),
        ("cell.xlsx", workbook('<row r="1"><c r="A1"><v>x</v></c></row>')),
        ("many.zip", zipped({f"{number}.csv": "x" for number in range(1_001)})),
    ],
    ids=["cut.zip", "cut.gz", "no.xlsx", "text.gz", "nothing.zip", "strings.xlsx", "cell.xlsx", "many.zip"],
)
def test_a_broken_archive_is_refused_in_one_line(
    workspace: Workspace, tmp_path: Path, name: str, content: bytes
) -> None:
    with pytest.raises(UnreadableFileError) as refused:
        imported(workspace, tmp_path / name, content)
    assert name in str(refused.value)
    assert refused.value.next_step


def test_an_archive_that_grows_without_end_is_stopped(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_files, "MOST_BYTES", 1 << 20)
    reports = imported(workspace, tmp_path / "ok.zip", zipped({"a.csv": "x,y\n1,2\n"}))
    assert reports[0].rows_stored == 1
    with pytest.raises(UnreadableFileError, match="unpacks to more than"):
        imported(workspace, tmp_path / "bomb.zip", zipped({"a.csv": "0" * (3 << 20)}))
    with pytest.raises(UnreadableFileError, match="unpacks to more than"):  # each within the bound, and not all
        imported(workspace, tmp_path / "bombs.zip", zipped(dict.fromkeys(("b.csv", "c.csv"), "0" * (1 << 20))))
    assert [each.name for each in workspace.tables()] == [reports[0].table]
    with pytest.raises(UnreadableFileError, match="unpacks to more than"):
        imported(workspace, tmp_path / "bomb.csv.gz", gzip.compress(b"0" * (3 << 20)))
    wide = "".join(f'<row r="{number}"><c r="XFD{number}"><v>1</v></c></row>' for number in range(1, 99))
    with pytest.raises(UnreadableFileError, match="unpacks to more than"):
        imported(workspace, tmp_path / "wide.xlsx", workbook(wide))
    monkeypatch.setattr(source_files, "MOST_WORKBOOK_BYTES", 1 << 10)
    with pytest.raises(UnreadableFileError, match="unpacks to more than"):
        imported(workspace, tmp_path / "bomb.xlsx", workbook(""))


@pytest.mark.parametrize("name", ["wide.csv", "wide.jsonl"])
def test_a_file_of_more_columns_than_a_table_can_have_is_refused(
    workspace: Workspace, tmp_path: Path, name: str
) -> None:
    row = {f"c{number}": "1" for number in range(10_000)}
    content = f"{','.join(row)}\n{','.join(row.values())}\n" if name.endswith("csv") else f"{json.dumps(row)}\n" * 2
    with pytest.raises(UnreadableFileError, match="has 10,000 columns; a file may have 1,000"):
        imported(workspace, tmp_path / name, content)


def test_a_row_that_numbers_itself_beyond_every_sheet_is_not_counted_up_to(
    workspace: Workspace, tmp_path: Path
) -> None:
    cell = '<c r="{0}{1}" t="inlineStr"><is><t>{2}</t></is></c>'
    rows = ((1, "City", "Zone"), (2, "Bern", "7"), (10**15, "Rome", "8"))
    written = "".join(
        f'<row r="{number}">{cell.format("A", number, first)}{cell.format("B", number, second)}</row>'
        for number, first, second in rows
    )
    (report,) = imported(workspace, tmp_path / "far.xlsx", workbook(written))
    assert report.rows_stored == 1


# --- the command


def test_an_import_ends_with_questions_that_its_rows_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SENTINEL_HOME", str(tmp_path / "home"))
    (tmp_path / "queue.csv").write_text(QUEUE)
    (tmp_path / "hunt.csv").write_text(hunted("ProcessCreated"))
    assert main(["workspace", "import", str(tmp_path / "queue.csv"), str(tmp_path / "hunt.csv")]) == 0
    out = capsys.readouterr().out
    assert "Ask, for example:" in out
    assert "sentinel ask 'what is incident 41" in out
    assert "sentinel ask 'processes on ws-17'" in out
    assert "sentinel ask 'what data do you have?'" in out
    assert main(["workspace", "import", "--workspace", "lab", str(tmp_path / "hunt.csv")]) == 0
    out = capsys.readouterr().out
    assert "hunt.csv -> DeviceProcessEvents: 1 of 1 rows stored, 2026-11-28 13:02 UTC" in out
    assert str(tmp_path) not in out
    assert "sentinel ask --workspace lab 'processes on ws-17'" in out


def test_a_check_tells_what_would_become_of_files_and_stores_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SENTINEL_HOME", str(tmp_path / "home"))
    (tmp_path / "hunt.csv").write_text(hunted("ProcessCreated"))
    for _ in range(2):  # the first left nothing that the second could find there already
        assert main(["workspace", "import", "--check", str(tmp_path / "hunt.csv")]) == 0
        out = capsys.readouterr().out
        assert "hunt.csv -> DeviceProcessEvents: 1 of 1 rows would be stored" in out
        assert "first row: " in out
        assert "ActionType ProcessCreated" in out
        assert "Ask, for example" not in out
    assert main(["workspace", "tables"]) == 0
    assert "has no rows yet" in capsys.readouterr().out


def test_one_bad_file_of_several_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SENTINEL_HOME", str(tmp_path / "home"))
    (tmp_path / "bad.zip").write_bytes(b"no archive")
    (tmp_path / "hunt.csv").write_text(hunted("ProcessCreated"))
    assert main(["workspace", "import", str(tmp_path / "bad.zip"), str(tmp_path / "hunt.csv")]) == 1
    out = capsys.readouterr().out
    assert "bad.zip cannot be unpacked" in out
    assert "-> DeviceProcessEvents: 1 of 1 rows stored" in out
