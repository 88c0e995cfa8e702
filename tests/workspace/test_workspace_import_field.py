"""Files as other programs write them: other names of a table's columns, its own Type, times as numbers, frames."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.surfaces.cli import main
from sentinel_rag.workspace.importing.source_files import UnreadableFileError
from sentinel_rag.workspace.workspace import Workspace

ALERTS = (
    ",TenantId,StartTimeUtc,EndTimeUtc,ProviderAlertId,SystemAlertId,ProviderName,VendorName,AlertType,AlertName,"
    "AlertDisplayName,Description,Severity\n"
) + "".join(
    f"{n},t,2020-01-0{1 + n % 5} 00:00:00,2020-01-06 00:00:00,p{n},s{n},MCAS,Microsoft,X,N{n},D{n},d,"
    f"{'High' if n < 5 else 'Low'}\n"
    for n in range(9)
)
WINDOWS = {
    "Type": "WindowsEvent",
    "EventID": 3,
    "Channel": "Microsoft-Windows-Sysmon/Operational",
    "Provider": "Microsoft-Windows-Sysmon",
    "EventData": {"Image": "x"},
    "Computer": "ws-1",
    "TimeGenerated": "2024-01-01T00:00:00Z",
}
FRAMES = [
    {"FrameType": "DataSetHeader", "IsProgressive": False, "Version": "v2.0"},
    {"FrameType": "DataTable", "TableKind": "QueryProperties", "Columns": [{"ColumnName": "A"}], "Rows": [[1]]},
    {
        "FrameType": "DataTable",
        "TableKind": "PrimaryResult",
        "Columns": [{"ColumnName": "TimeGenerated", "ColumnType": "datetime"}, {"ColumnName": "Name"}],
        "Rows": [["2024-01-01T00:00:00Z", "a"], ["2024-01-02T00:00:00Z", "b"]],
    },
    {"FrameType": "DataSetCompletion", "HasErrors": False, "Cancelled": False},
]
ZEEK = "#separator \\x09\n#fields\tts\tuid\tid.orig_h\n#types\ttime\tstring\taddr\n1600000000.1\tC1\t192.0.2.1\n"


def imported(workspace: Workspace, path: Path, text: str) -> Any:
    path.write_text(text, encoding="utf-8")
    (report,) = workspace.import_path(path)
    return report


def test_other_names_of_a_tables_columns_are_its_columns(workspace: Workspace, tmp_path: Path) -> None:
    report = imported(workspace, tmp_path / "alertlist.csv", ALERTS)
    assert (report.table, report.rows_stored) == ("SecurityAlert", 9)
    assert any("'Severity' is stored as AlertSeverity" in note for note in report.notes)
    found = workspace.query(
        "SecurityAlert | where AlertSeverity == 'High' and StartTime < EndTime and DisplayName != ''"
    )
    assert len(found.to_dict()["rows"]) == 5


@pytest.mark.parametrize("name", ["events.json", "SecurityEvent.json", "export.json"])
def test_the_type_of_a_row_is_its_table_whatever_the_file_is_called(
    workspace: Workspace, tmp_path: Path, name: str
) -> None:
    report = imported(workspace, tmp_path / name, json.dumps(WINDOWS) + "\n")
    assert (report.table, report.rows_stored) == ("WindowsEvent", 1)


@pytest.mark.parametrize("table", ["VMComputer", "StorageFileLogs", "Perf2", "OTelTraces"])
def test_any_row_of_log_analytics_is_stored_in_the_table_that_its_type_names(
    workspace: Workspace, tmp_path: Path, table: str
) -> None:
    row = {"TenantId": "t", "TimeGenerated": "2024-06-20T10:00:00Z", "Type": table, "Place": "a"}
    report = imported(workspace, tmp_path / "query_data.json", json.dumps([row, {**row, "Place": "b"}]))
    assert (report.table, report.rows_stored) == (table, 2)
    assert workspace.query(f"{table} | summarize count() by Type").to_dict()["rows"] == [[table, 2]]


TIME = {"TimeGenerated": "2024-06-20T10:00:00Z"}


@pytest.mark.parametrize(
    "row",
    [
        {"Type": "ProcessCreate", "TenantId": "t"},
        {"Type": "ProcessCreate", **TIME},
        {"Type": "DHCPREQUEST", "TenantId": "t", **TIME},
    ],
)
def test_a_type_that_is_a_word_of_another_program_names_no_table(
    workspace: Workspace, tmp_path: Path, row: dict[str, str]
) -> None:
    row = {"Image": "a.exe", "ParentImage": "b.exe", **row}
    assert imported(workspace, tmp_path / "things.json", json.dumps([row])).table == "things_CL"


@pytest.mark.parametrize(
    ("cell", "time"),
    [
        ('"1612192196113"', "2021-02-01T15:09:56.113"),
        ("1616424563915", "2021-03-22T14:49:23.915"),
        ("1678936138", "2023-03-16T03:08:58"),
        ("1678936138.5", "2023-03-16T03:08:58.5"),
        ("1678936138000000", "2023-03-16T03:08:58"),
    ],
)
@pytest.mark.parametrize("column", ["timestamp", "alertTime", "unixTime"])
def test_a_number_since_1970_is_a_time(workspace: Workspace, tmp_path: Path, column: str, cell: str, time: str) -> None:
    report = imported(workspace, tmp_path / "x.json", f'[{{"{column}": {cell}, "name": "a", "kind": "b"}}]')
    ((moment,),) = workspace.query(f"{report.table} | project TimeGenerated").to_dict()["rows"]
    assert str(moment).startswith(time)


def test_a_length_of_time_is_none(workspace: Workspace, tmp_path: Path) -> None:
    report = imported(workspace, tmp_path / "x.json", '[{"time": 12, "name": "a", "kind": "b"}]')
    assert any("no time column" in note for note in report.notes)


def test_frames_are_unwrapped(workspace: Workspace, tmp_path: Path) -> None:
    report = imported(workspace, tmp_path / "answer.json", json.dumps(FRAMES))
    rows = workspace.query(f"{report.table} | project Name | order by Name asc").to_dict()["rows"]
    assert [list(row) for row in rows] == [["a"], ["b"]]


def test_a_zeek_log_is_called_one(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="Zeek log"):
        imported(workspace, tmp_path / "conn.log", ZEEK)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_one_bad_file_of_a_list_keeps_no_other_away(
    clean_environment: Path, tmp_path: Path, order: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "notes.log").write_text("Two lines of prose.\nNothing else.\n")
    (folder / "SecurityAlert.csv").write_text(ALERTS)
    names = [str(folder / ("notes.log", "SecurityAlert.csv")[place]) for place in order]
    assert main(["workspace", "import", *names, "--json"]) == 1
    reports = json.loads(capsys.readouterr().out)
    assert {Path(report["file"]).name: report["rows_stored"] for report in reports} == {
        "notes.log": 0,
        "SecurityAlert.csv": 9,
    }
    assert main(["workspace", "import", str(folder), "--json"]) == 0
    assert "notes.log" in json.dumps(json.loads(capsys.readouterr().out)[-1]["notes"])


PAGE_OF = {
    "Sentinel's API": (
        "nextLink",
        {"name": "n", "properties": {"incidentNumber": 1, "title": "t", "createdTimeUtc": TIME["TimeGenerated"]}},
    ),
    "Graph": (
        "@odata.nextLink",
        {"id": "a", "title": "t", "createdDateTime": TIME["TimeGenerated"], "alertWebUrl": "https://x"},
    ),
    "any other": ("nextLink", {"Computer": "a", "EventID": 1, **TIME}),
}


@pytest.mark.parametrize("service", PAGE_OF)
@pytest.mark.parametrize("last", [False, True])
def test_a_file_that_is_one_page_of_several_says_so(
    workspace: Workspace, tmp_path: Path, service: str, last: bool
) -> None:
    link, row = PAGE_OF[service]
    document = {"value": [row], link: None if last else "https://service.example/next"}
    report = imported(workspace, tmp_path / "page.json", json.dumps(document))
    assert report.rows_stored == 1
    assert any("one page of several" in note for note in report.notes) is not last


COLUMNS = [{"name": "Computer", "type": "string"}, {"name": "EventID", "type": "int"}]
FRAME_COLUMNS = [{"ColumnName": column["name"], "ColumnType": column["type"]} for column in COLUMNS]


def frames(*rows: Any, **completion: Any) -> list[dict[str, Any]]:
    table = {"FrameType": "DataTable", "TableKind": "PrimaryResult", "Columns": FRAME_COLUMNS, "Rows": [*rows]}
    return [{"FrameType": "DataSetHeader"}, table, {"FrameType": "DataSetCompletion", **completion}]


@pytest.mark.parametrize(
    ("document", "partial"),
    [
        ({"tables": [{"name": "PrimaryResult", "columns": COLUMNS, "rows": [["a", 1]]}]}, False),
        ({"tables": [{"name": "P", "columns": COLUMNS, "rows": [["a", 1]]}], "error": {"code": "PartialError"}}, True),
        (frames(["a", 1], HasErrors=False), False),
        (frames(["a", 1], HasErrors=True), True),
        (frames(["a", 1], Cancelled=True), True),
        (frames(["a", 1], {"OneApiErrors": [{"error": {"code": "LimitsExceeded"}}]}), True),
    ],
)
def test_an_answer_that_the_service_cut_is_no_whole_file(
    workspace: Workspace, tmp_path: Path, document: Any, partial: bool
) -> None:
    report = imported(workspace, tmp_path / "answer.json", json.dumps(document))
    assert report.rows_stored == 1
    assert any("a part of what was asked for" in note for note in report.notes) is partial


@pytest.mark.parametrize(("count", "full"), [(9_999, False), (10_000, True)])
def test_a_portals_export_that_is_exactly_full_may_not_be_the_end(
    workspace: Workspace, tmp_path: Path, count: int, full: bool
) -> None:
    lines = [f"2024-06-20T10:00:00Z,user{n}@contoso.example,0" for n in range(count)]
    text = "\n".join(["TimeGenerated,UserPrincipalName,ResultType", *lines])
    report = imported(workspace, tmp_path / "SigninLogs.csv", text)
    assert any("there may have been more" in note for note in report.notes) is full


def test_what_a_service_will_know_one_day_keeps_no_alert_away(workspace: Workspace, tmp_path: Path) -> None:
    evidence = [
        None,
        {"@odata.type": "#microsoft.graph.security.futureEvidence"},
        {"@odata.type": "#microsoft.graph.security.ipEvidence", "ipAddress": "192.0.2.7"},
    ]
    row = {
        "id": "a",
        "title": "t",
        "createdDateTime": TIME["TimeGenerated"],
        "alertWebUrl": "https://x",
        "evidence": evidence,
        "severity": "unknownFutureValue",
    }
    report = imported(workspace, tmp_path / "alerts_v2.json", json.dumps({"value": [row]}))
    assert (report.table, report.rows_stored) == ("SecurityAlert", 1)
    (stored,) = workspace.query("SecurityAlert | project AlertSeverity, tostring(Entities)").to_dict()["rows"]
    assert stored == ["", '[{"Type":"ip","Address":"192.0.2.7"}]']


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize(
    "first", ["sep=;\r\n", '"sep=;"\n', "SEP=;\n", "#TYPE System.Management.Automation.PSObject\r\n"]
)
def test_a_line_that_names_the_separator_is_no_header(
    workspace: Workspace, tmp_path: Path, first: str, encoding: str
) -> None:
    path = tmp_path / "SigninLogs.csv"
    rows = "TimeGenerated;UserPrincipalName;ResultType\r\n2024-06-20T10:00:00Z;näch@contoso.example;0\r\n"
    path.write_bytes((first + rows).encode(encoding))
    (report,) = workspace.import_path(path)
    assert (report.table, report.rows_stored, report.rows_rejected) == ("SigninLogs", 1, 0)
    assert workspace.query("SigninLogs | project UserPrincipalName").to_dict()["rows"] == [["näch@contoso.example"]]


def test_both_times_of_defenders_rows_are_kept(workspace: Workspace, tmp_path: Path) -> None:
    row = {
        **TIME,
        "Timestamp": "2024-06-20T09:58:00Z",
        "AccountUpn": "a@contoso.example",
        "Type": "IdentityLogonEvents",
    }
    assert imported(workspace, tmp_path / "rows.json", json.dumps([row])).table == "IdentityLogonEvents"
    found = workspace.query("IdentityLogonEvents | project TimeGenerated, Timestamp").to_dict()["rows"]
    assert found == [["2024-06-20T10:00:00Z", "2024-06-20T09:58:00Z"]]


@pytest.mark.parametrize(
    ("mark", "told"),
    [(" [UTC]", False), ("", False), (" [Local Time]", True), (" [UTC+02:00]", True), (" [GMT]", True)],
)
def test_times_that_say_they_are_of_another_zone_are_told(
    workspace: Workspace, tmp_path: Path, mark: str, told: bool
) -> None:
    text = f'TimeGenerated{mark},UserPrincipalName,ResultType\n"6/20/2024, 10:00:00.000 AM",a@contoso.example,0\n'
    report = imported(workspace, tmp_path / "SigninLogs.csv", text)
    assert (report.table, report.rows_stored) == ("SigninLogs", 1)
    assert any(f"TimeGenerated{mark}." in note for note in report.notes) is told


SPELLED = {
    "SecurityAlert": ["SystemAlertId", "AlertName", "AlertSeverity", "StartTime", "EndTime", "DisplayName", "Status"],
    "SecurityIncident": ["IncidentNumber", "IncidentName", "Title", "Severity", "CreatedTime", "LastModifiedTime"],
    "SigninLogs": ["CreatedDateTime", "UserPrincipalName", "IPAddress", "ResultType", "AppDisplayName"],
}


def camel(name: str) -> str:
    return f"{name[:1].lower()}{name[1:]}"


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def spaced(name: str) -> str:
    return snake(name).replace("_", " ").capitalize()


@pytest.mark.parametrize("spelling", [camel, snake, spaced, str.upper])
@pytest.mark.parametrize("table", SPELLED)
def test_a_table_is_found_however_its_columns_are_spelled(
    workspace: Workspace, tmp_path: Path, table: str, spelling: Callable[[str], str]
) -> None:
    names = SPELLED[table]
    cells = [TIME["TimeGenerated"] if name.endswith("Time") else "7" for name in names]
    text = f"{','.join(map(spelling, names))}\n{','.join(cells)}\n"
    report = imported(workspace, tmp_path / "rows.csv", text)
    assert (report.table, report.new_columns) == (table, {})
    (row,) = workspace.query(f"{table} | project {', '.join(names)}, TimeGenerated").to_dict()["rows"]
    assert [str(cell) for cell in row] == [*cells, TIME["TimeGenerated"]]


@pytest.mark.parametrize(
    "header",
    [
        "title,description,status,severity,owner",
        "name,description,type,tags,source",
        "start_time,end_time,display_name,place",
    ],
)
def test_a_list_of_anything_is_no_table_of_sentinel(workspace: Workspace, tmp_path: Path, header: str) -> None:
    assert imported(workspace, tmp_path / "list.csv", f"{header}\na,b,c,d,e\n").table == "list_CL"


def test_two_columns_that_differ_by_what_stands_between_words_stay_two(workspace: Workspace, tmp_path: Path) -> None:
    text = "SystemAlertId,AlertName,AlertSeverity,alert_severity,Severity,StartTime\na,b,High,Low,Medium,2024-06-20\n"
    assert imported(workspace, tmp_path / "rows.csv", text).table == "SecurityAlert"
    (row,) = workspace.query("SecurityAlert | project AlertSeverity, alert_severity, Severity").to_dict()["rows"]
    assert row == ["High", "Low", "Medium"]


def test_sign_ins_of_graph_are_sign_ins(workspace: Workspace, tmp_path: Path) -> None:
    row = {
        "id": "1",
        "createdDateTime": TIME["TimeGenerated"],
        "userPrincipalName": "a@contoso.example",
        "appDisplayName": "App",
        "ipAddress": "192.0.2.7",
        "status": {"errorCode": 50126, "failureReason": "Wrong."},
        "deviceDetail": {"browser": "B"},
        "location": {"city": "Bonn", "countryOrRegion": "DE"},
    }
    report = imported(
        workspace, tmp_path / "signins.json", json.dumps({"value": [row, {**row, "status": None, "location": None}]})
    )
    assert (report.table, report.rows_stored) == ("SigninLogs", 2)
    kql = "SigninLogs | sort by ResultType | project IPAddress, ResultType, Location, tostring(LocationDetails.city)"
    assert workspace.query(kql).to_dict()["rows"] == [
        ["192.0.2.7", "50126", "DE", "Bonn"],
        ["192.0.2.7", "", "", ""],
    ]
