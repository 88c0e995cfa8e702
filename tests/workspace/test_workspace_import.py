"""Exports as they come: every row is stored, rejected with its line, or known already, and the report says which."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.workspace.importing.reports import ImportReport
from sentinel_rag.workspace.importing.source_files import UnreadableFileError
from sentinel_rag.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("DATA-5")

ALERT_HEADER = "TimeGenerated,SystemAlertId,AlertName,AlertSeverity,Status,Entities\n"


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def only(reports: list[ImportReport]) -> ImportReport:
    (report,) = reports
    assert report.rows_read == report.rows_stored + report.duplicates_skipped + report.rows_rejected
    return report


def test_public_alerts_and_incidents_are_imported_whole(workspace: Workspace, shared_data: Path) -> None:
    alerts = only(workspace.import_path(shared_data / "secrl" / "extracted_alerts.csv"))
    incidents = only(workspace.import_path(shared_data / "secrl" / "extracted_incidents.csv"))
    assert (alerts.table, alerts.rows_stored, alerts.misfits, alerts.rejects) == ("SecurityAlert", 189, (), ())
    assert (incidents.table, incidents.rows_stored, incidents.misfits) == ("SecurityIncident", 8, ())
    assert alerts.format == "csv separated by ❖"
    severities = workspace.query("SecurityAlert | summarize n = count() by AlertSeverity")
    assert dict(severities.rows) == {"High": 85, "Medium": 78, "Low": 18, "Informational": 8}
    by_status = workspace.query("SecurityIncident | summarize n = count() by Status")
    assert dict(by_status.rows) == {"Active": 3, "New": 3, "Closed": 2}
    incident = workspace.query(
        "SecurityIncident | where IncidentNumber == 55 | project ProviderIncidentId, array_length(AlertIds), "
        "tostring(Owner.assignedTo)"
    )
    assert incident.rows == [("384", 28, "Mimik Emails - AlpineSkiHouse")]


def test_every_cell_of_the_public_alerts_is_the_cell_of_the_file(workspace: Workspace, shared_data: Path) -> None:
    path = shared_data / "secrl" / "extracted_alerts.csv"
    workspace.import_path(path)
    csv.field_size_limit(1 << 30)
    with path.open(encoding="utf-8", newline="") as file:
        expected = {row["SystemAlertId"]: row for row in csv.DictReader(file, delimiter="❖")}
    text = ["AlertName", "Description", "Entities", "ExtendedProperties", "Tactics", "Techniques", "CompromisedEntity"]
    answer = workspace.query(f"SecurityAlert | project SystemAlertId, {', '.join(text)}")
    assert len(answer.rows) == len(expected)
    for alert_id, *cells in answer.rows:
        assert cells == [expected[str(alert_id)][name] for name in text]


@pytest.mark.parametrize("folder", ["secrl", "azure_sentinel", "msticpy", "otrf", "training_lab"])
def test_every_public_file_is_accounted_for_and_a_second_import_adds_nothing(
    workspace: Workspace, shared_data: Path, folder: str
) -> None:
    files = [path for path in sorted((shared_data / folder).iterdir()) if path.suffix in {".csv", ".json", ".jsonl"}]
    assert files
    imported_again: set[str] = set()
    for path in files:
        first = only(workspace.import_path(path))
        assert first.rows_stored > 0
        assert first.rows_rejected == 0
        if path.suffix not in imported_again:
            imported_again.add(path.suffix)
            second = only(workspace.import_path(path))
            assert (second.rows_stored, second.duplicates_skipped) == (0, first.rows_stored), path.name


def test_rows_read_are_the_records_of_the_file(workspace: Workspace, shared_data: Path) -> None:
    counts = {
        "msticpy/demo_exchange_data.csv": 1334,
        "azure_sentinel/WatchGuardFirebox_syslog_data.csv": 3066,
        "azure_sentinel/CiscoISEEvent.json": 31,
        "otrf/schtask_create.json": 1041,
        "training_lab/office_activity.csv": 266,
    }
    assert {name: only(workspace.import_path(shared_data / name)).rows_read for name in counts} == counts


def test_portal_quirks_mark_of_order_headers_times_and_null(workspace: Workspace, tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "export.csv",
        '\ufeff"TimeGenerated [UTC]",OperationName,ResultType,DurationMs,UserPrincipalName,IsInteractive\r\n'
        '"4/19/2021, 12:13:19.483 PM",Sign-in activity,0,null,adele@contoso.example,true\r\n'
        '"4/19/2021, 12:13:19\u202fAM",Sign-in activity,50126,12.0,null,null\r\n',
    )
    report = only(workspace.import_path(path, table="SigninLogs"))
    assert (report.rows_stored, report.misfits) == (2, ())
    answer = workspace.query(
        "SigninLogs | sort by TimeGenerated desc "
        "| project TimeGenerated, ResultType, DurationMs, UserPrincipalName, IsInteractive"
    )
    assert answer.rows == [
        ("2021-04-19T12:13:19.483Z", "0", None, "adele@contoso.example", True),
        ("2021-04-19T00:13:19Z", "50126", 12, "", None),
    ]


@pytest.mark.parametrize(
    ("encoding", "name"), [("utf-16", "UTF-16"), ("utf-8-sig", "UTF-8 with mark"), ("cp1252", "Windows")]
)
def test_encodings_are_found(workspace: Workspace, tmp_path: Path, encoding: str, name: str) -> None:
    text = "TimeGenerated,Computer,SyslogMessage\n2024-01-01T00:00:00Z,srv,Müller – größer\n"
    only(workspace.import_path(write(tmp_path, f"{name}.csv", text.encode(encoding)), table="Syslog"))
    assert workspace.query("Syslog | project SyslogMessage").rows == [("Müller – größer",)]


def test_two_equal_rows_stay_two_and_overlapping_exports_merge(workspace: Workspace, tmp_path: Path) -> None:
    row = "2024-01-01T00:00:00Z,srv,daemon,same line\n"
    other = "2024-01-01T00:05:00Z,srv,daemon,another line\n"
    header = "TimeGenerated,Computer,Facility,SyslogMessage\n"
    first = write(tmp_path, "a.csv", header + row + row)
    assert only(workspace.import_path(first, table="Syslog")).rows_stored == 2
    assert only(workspace.import_path(first, table="Syslog")).rows_stored == 0
    wider = write(tmp_path, "b.csv", header + row + row + row + other)
    report = only(workspace.import_path(wider, table="Syslog"))
    assert (report.rows_stored, report.duplicates_skipped) == (2, 2)
    counts = workspace.query("Syslog | summarize n = count() by SyslogMessage")
    assert dict(counts.rows) == {"same line": 3, "another line": 1}


def test_values_that_do_not_fit_are_counted_shown_and_kept(workspace: Workspace, tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "events.csv",
        "TimeGenerated,EventID,Computer\n2024-01-01T00:00:00Z,4624,a\nyesterday,46x24,b\n2024-01-02T00:00:00Z,4624.6,c\n",
    )
    report = only(workspace.import_path(path, table="SecurityEvent"))
    assert report.rows_stored == 3
    assert [(misfit.column, misfit.type, misfit.count, misfit.records, misfit.values) for misfit in report.misfits] == [
        ("EventID", "int", 2, (2, 3), ("46x24", "4624.6")),
        ("TimeGenerated", "datetime", 1, (2,), ("yesterday",)),
    ]
    kept = workspace.query(
        "SecurityEvent | where isnotempty(UnfitValues) | mv-expand UnfitValues "
        "| project Computer, tostring(UnfitValues.column), tostring(UnfitValues.value) | sort by Computer asc"
    )
    assert sorted(kept.rows) == [
        ("b", "EventID", "46x24"),
        ("b", "TimeGenerated", "yesterday"),
        ("c", "EventID", "4624.6"),
    ]


def test_malformed_lines_are_rejected_with_their_numbers_and_kept(workspace: Workspace, tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "alerts.csv",
        ALERT_HEADER
        + "2024-01-01T00:00:00Z,a1,One,High,New,[]\n"
        + "2024-01-01T00:01:00Z,a2,too few\n"
        + "2024-01-01T00:02:00Z,a3,Three,Low,New,[],x,y\n"
        + "2024-01-01T00:03:00Z,a4,Four,Low,New,[]\n",
    )
    report = only(workspace.import_path(path, table="SecurityAlert"))
    assert (report.rows_read, report.rows_stored, report.rows_rejected) == (4, 2, 2)
    assert [(reject.line, reject.reason) for reject in report.rejects] == [
        (3, "fewer fields than the header"),
        (4, "more fields than the header"),
    ]
    assert report.rejects[0].content == "2024-01-01T00:01:00Z,a2,too few"


def test_a_quote_that_never_closes_costs_one_line_not_the_file(workspace: Workspace, tmp_path: Path) -> None:
    lines = [f"2024-01-01T00:{minute:02d}:00Z,a{minute},Name,High,New,[]\n" for minute in range(30)]
    lines[4] = '2024-01-01T00:04:00Z,a4,"never closed,High,New,[]\n'
    lines[20] = '2024-01-01T00:20:00Z,a20,"again,High,New,[]\n'
    report = only(workspace.import_path(write(tmp_path, "x.csv", ALERT_HEADER + "".join(lines)), table="SecurityAlert"))
    assert (report.rows_read, report.rows_stored, report.rows_rejected) == (30, 28, 2)
    assert [reject.line for reject in report.rejects] == [6, 22]
    assert workspace.query("SecurityAlert | where SystemAlertId in ('a4', 'a20') | count").rows == [(0,)]


@pytest.mark.parametrize("closed_by", ["", '2024-01-01T00:00:00Z,c1,say "closed,High,New,[]\n'])
def test_an_open_quote_above_megabytes_costs_its_line_and_no_other(
    workspace: Workspace, tmp_path: Path, closed_by: str
) -> None:
    good = [f"2024-01-01T00:00:00Z,a{number},Name,High,New,[]\n" for number in range(40_000)]
    lines = [good[0], '2024-01-01T00:00:00Z,b1,"never closed,High,New,[]\n', *good[1:20_000], closed_by, *good[20_000:]]
    report = only(workspace.import_path(write(tmp_path, "x.csv", ALERT_HEADER + "".join(lines)), table="SecurityAlert"))
    stored = 40_000 + bool(closed_by)  # the quote within a cell of that line opens nothing
    assert (report.rows_read, report.rows_stored, report.rows_rejected) == (stored + 1, stored, 1)
    assert [reject.line for reject in report.rejects] == [3]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.csv", ALERT_HEADER + '"\n' * 600_000, "none of its lines is a row"),
        ("x.csv", ALERT_HEADER + '"' * 1_200_000, "none of its lines is a row"),
        (
            "x.csv",
            ALERT_HEADER + "2024-01-01T00:00:00Z,a1,One,High,New,[]\n" + "a\n" * 60_000,
            "more than 50,000 faults",
        ),
        ("x.json", "[" + "7," * 60_000 + "7]", "more than 50,000 faults"),
        ("x.jsonl", '{"A": 1}\n' + "7\n" * 60_000, "more than 50,000 faults"),
    ],
    ids=["csv-of-quotes", "csv-of-one-line", "csv-of-halves", "json-of-numbers", "json-lines-of-numbers"],
)
def test_a_file_of_next_to_no_rows_is_refused_before_each_of_its_lines_is_told(
    workspace: Workspace, tmp_path: Path, name: str, content: str, said: str
) -> None:
    with pytest.raises(UnreadableFileError, match=said) as refused:
        workspace.import_path(write(tmp_path, name, content), table="SecurityAlert")
    assert refused.value.next_step


def test_many_open_quotes_cost_their_lines_only(workspace: Workspace, tmp_path: Path) -> None:
    lines = [f"2024-01-01T00:00:00Z,a{number},Name,High,New,[]\n" for number in range(500)]
    broken = list(range(3, 500, 7))
    for number in broken:
        lines[number] = f'2024-01-01T00:00:00Z,a{number},"never closed,High,New,[]\n'
    report = only(workspace.import_path(write(tmp_path, "x.csv", ALERT_HEADER + "".join(lines)), table="SecurityAlert"))
    assert (report.rows_read, report.rows_stored, report.rows_rejected) == (500, 500 - len(broken), len(broken))


def test_the_record_of_a_misfit_is_right_far_down_in_a_file(workspace: Workspace, tmp_path: Path) -> None:
    lines = [f"2024-01-01T00:00:00Z,host-{number},{number}\n" for number in range(600_000)]
    for record in (1, 299_999, 555_555):
        lines[record - 1] = f"2024-01-01T00:00:00Z,host,bad{record}\n"
    path = write(tmp_path, "x.csv", "TimeGenerated,Computer,ProcessID\n" + "".join(lines))
    for _ in range(2):
        (misfit,) = only(workspace.import_path(path, table="Syslog")).misfits
        assert (misfit.count, misfit.records) == (3, (1, 299_999, 555_555))
        assert misfit.values == ("bad1", "bad299999", "bad555555")


def test_a_header_without_rows_is_an_empty_import(workspace: Workspace, tmp_path: Path) -> None:
    report = only(workspace.import_path(write(tmp_path, "x.csv", ALERT_HEADER), table="SecurityAlert"))
    assert (report.rows_read, report.rows_stored) == (0, 0)


def test_a_line_beyond_any_sense_is_rejected_and_the_rest_is_stored(workspace: Workspace, tmp_path: Path) -> None:
    huge = "2024-01-01T00:00:00Z,a1," + "x" * 20_000_000 + ",High,New,[]\n"
    good = "2024-01-01T00:01:00Z,a2,Two,High,New,[]\n"
    report = only(workspace.import_path(write(tmp_path, "x.csv", ALERT_HEADER + huge + good), table="SecurityAlert"))
    assert (report.rows_stored, report.rows_rejected) == (1, 1)
    assert "longer than" in report.rejects[0].reason
    assert len(report.rejects[0].content) <= 10_000


def test_quoted_newlines_quotes_and_separators_survive(workspace: Workspace, tmp_path: Path) -> None:
    message = 'one\r\ntwo, "three"\n\n;four'
    path = tmp_path / "x.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["TimeGenerated", "Computer", "SyslogMessage"])
        writer.writerow(["2024-01-01T00:00:00Z", "srv", message])
    only(workspace.import_path(path, table="Syslog"))
    assert workspace.query("Syslog | project SyslogMessage").rows == [(message,)]


def test_line_ends_of_two_kinds_in_one_file(workspace: Workspace, tmp_path: Path) -> None:
    content = b"TimeGenerated,Computer,SyslogMessage\r\n2024-01-01T00:00:00Z,a,x\n2024-01-01T00:00:01Z,b,y\r\n"
    report = only(workspace.import_path(write(tmp_path, "x.csv", content), table="Syslog"))
    assert report.rows_stored == 2
    assert workspace.query("Syslog | project Computer, SyslogMessage | sort by Computer asc").rows == [
        ("a", "x"),
        ("b", "y"),
    ]


def test_rows_go_to_the_tables_that_a_column_names(workspace: Workspace, tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "mixed.csv",
        "$table,TimeGenerated,Computer\nSyslog,2024-01-01T00:00:00Z,a\nHeartbeat,2024-01-01T00:00:00Z,b\n"
        "Syslog,2024-01-01T00:00:01Z,c\n",
    )
    reports = workspace.import_path(path)
    assert {report.table: report.rows_stored for report in reports} == {"Heartbeat": 1, "Syslog": 2}
    assert {(table.name, table.rows) for table in workspace.tables()} == {("Heartbeat", 1), ("Syslog", 2)}


def test_a_file_that_fits_no_table_says_that_one_was_made_and_how_to_choose_another(
    workspace: Workspace, tmp_path: Path
) -> None:
    report = only(workspace.import_path(write(tmp_path, "odd.csv", "a,b\n1,2\n")))
    assert (
        "No known table has its columns, so odd_CL was made; the terminal takes another: --table NAME" in report.notes
    )


def test_rejects_of_a_file_for_several_tables_are_counted_once(workspace: Workspace, tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "mixed.csv",
        "TimeGenerated,Computer,Type\n2024-01-01T00:00:00Z,a,Syslog\nbroken\n2024-01-01T00:00:00Z,b,Heartbeat\n"
        "2024-01-01T00:00:00Z,c,not a table\n",
    )
    reports = workspace.import_path(path)
    stored = {report.table: report.rows_stored for report in reports}
    assert stored == {"Heartbeat": 1, "Syslog": 1, "mixed_CL": 1}
    assert sum(report.rows_rejected for report in reports) == 1
    assert sum(report.rows_read for report in reports) == 4
    assert sum(report.rows_stored for report in workspace.import_path(path)) == 0


def test_a_type_that_changes_late_in_a_file_is_seen(workspace: Workspace, tmp_path: Path) -> None:
    lines = ["2024-01-01T00:00:00Z,srv,Syslog"] * 25_000 + ["2024-01-01T00:00:01Z,srv,Heartbeat"]
    reports = workspace.import_path(write(tmp_path, "x.csv", "TimeGenerated,Computer,Type\n" + "\n".join(lines)))
    assert {report.table: report.rows_stored for report in reports} == {"Heartbeat": 1, "Syslog": 25_000}


def test_names_of_columns_that_clash_or_are_strange(workspace: Workspace, tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "Odd_CL.csv",
        ",TimeGenerated,User,user,a b,1st,@id,Type_\n0,2024-01-01T00:00:00Z,A,B,c,d,00713,t\n",
    )
    report = only(workspace.import_path(path))
    assert report.table == "Odd_CL"
    assert any("pandas" in note for note in report.notes)
    answer = workspace.query("Odd_CL | project User, user_1, a_b, _1st, id, Type_")
    assert answer.rows == [("A", "B", "c", "d", "00713", "t")]


def test_a_column_in_another_case_goes_to_the_tables_column(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path, "x.csv", "timegenerated,COMPUTER,SyslogMessage\n2024-01-01T00:00:00Z,srv,m\n")
    report = only(workspace.import_path(path, table="Syslog"))
    assert report.new_columns == {}
    assert workspace.query("Syslog | project TimeGenerated, Computer").rows == [("2024-01-01T00:00:00Z", "srv")]


def test_the_time_of_a_new_table_is_found_in_any_case(workspace: Workspace, tmp_path: Path) -> None:
    report = only(workspace.import_path(write(tmp_path, "Own_CL.csv", "timegenerated,n\n2024-01-01T00:00:00Z,1\n")))
    assert report.new_columns == {"TimeGenerated": "datetime", "n": "long"}
    assert workspace.query("Own_CL | project TimeGenerated, n", timespan="2024-01-01/PT1H").rows == [
        ("2024-01-01T00:00:00Z", 1)
    ]


def test_unknown_columns_become_typed_columns(workspace: Workspace, tmp_path: Path) -> None:
    rows = [
        {"TimeGenerated": "2024-01-01T00:00:00Z", "Computer": "a", "Score": 7, "Ratio": 1.5, "Bag": {"k": [1, 2]}},
        {"TimeGenerated": "2024-01-01T00:00:01Z", "Computer": "b", "Seen": "2024-01-02T03:04:05Z", "Flag": False},
    ]
    path = write(tmp_path, "x.jsonl", "\n".join(json.dumps(row) for row in rows))
    report = only(workspace.import_path(path, table="Syslog"))
    assert report.new_columns == {
        "Score": "long",
        "Ratio": "real",
        "Bag": "dynamic",
        "Seen": "datetime",
        "Flag": "bool",
    }
    assert workspace.query("Syslog | where Computer == 'a' | project Score + 1, Bag.k[1], Seen").rows == [
        (8, "2", None)
    ]


@pytest.mark.parametrize("shape", ["array", "pretty", "lines", "value", "tables", "one after another"])
def test_json_shapes(workspace: Workspace, tmp_path: Path, shape: str) -> None:
    rows = [
        {"TimeGenerated": f"2024-01-01T00:00:0{number}Z", "Computer": "ü", "ProcessID": 9007199254740993 % 2**31}
        for number in range(3)
    ]
    columns = [{"name": name, "type": "string"} for name in rows[0]]
    documents = {
        "array": json.dumps(rows),
        "pretty": json.dumps(rows, indent=2, ensure_ascii=False),
        "lines": "\n".join(json.dumps(row) for row in rows) + "\n\n",
        "value": json.dumps({"value": rows, "nextLink": None}),
        "tables": json.dumps({"tables": [{"name": "x", "columns": columns, "rows": [list(r.values()) for r in rows]}]}),
        "one after another": "\n".join(json.dumps(row, indent=1) for row in rows),
    }
    report = only(workspace.import_path(write(tmp_path, "x.json", documents[shape]), table="Syslog"))
    assert (report.rows_stored, report.rows_rejected) == (3, 0)
    assert workspace.query("Syslog | where Computer == 'ü' | summarize min(TimeGenerated), count()").rows == [
        ("2024-01-01T00:00:00Z", 3)
    ]


def test_one_broken_json_line_costs_one_line(workspace: Workspace, tmp_path: Path) -> None:
    path = write(
        tmp_path, "x.jsonl", '{"Computer":"a","Facility":"f"}\n{"Computer":\n[1]\n{"Computer":"b","HostName":"h"}\n'
    )
    report = only(workspace.import_path(path, table="Syslog"))
    assert (report.rows_read, report.rows_stored) == (4, 2)
    assert [(reject.line, reject.reason) for reject in report.rejects] == [
        (2, "not valid JSON"),
        (3, "not a JSON object"),
    ]


def test_dynamic_text_that_is_no_json_stays_text(workspace: Workspace, tmp_path: Path) -> None:
    path = write(
        tmp_path, "x.csv", 'TimeGenerated,IncidentNumber,Owner,Labels\n2024-01-01T00:00:00Z,1,"{""a"": 1}",{broken\n'
    )
    report = only(workspace.import_path(path, table="SecurityIncident"))
    assert report.misfits == ()
    assert workspace.query("SecurityIncident | project Owner.a, Labels").rows == [("1", "{broken")]


def test_parquet(workspace: Workspace, tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "x.parquet"
    duckdb.sql(
        "SELECT TIMESTAMP '2024-01-01 00:00:00.5' AS TimeGenerated, 'srv' AS Computer, 7 AS ProcessID, "
        "['a', 'b'] AS Tags, {'k': 1} AS Extra"
    ).write_parquet(str(path))
    report = only(workspace.import_path(path, table="Syslog"))
    assert (report.format, report.rows_stored, report.misfits) == ("parquet", 1, ())
    assert workspace.query("Syslog | project TimeGenerated, Tags[1], Extra.k").rows == [
        ("2024-01-01T00:00:00.5Z", "b", "1")
    ]


def test_a_folder_imports_what_it_can_and_says_what_it_cannot(workspace: Workspace, tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    write(folder, "Syslog_1.csv", "TimeGenerated,Computer,Facility\n2024-01-01T00:00:00Z,a,f\n")
    write(folder, "broken.json", '[{"a": 1},')
    write(folder, "notes.md", "not an export")
    reports = {Path(report.file).name: report for report in workspace.import_path(folder)}
    assert set(reports) == {"Syslog_1.csv", "broken.json"}
    assert reports["Syslog_1.csv"].rows_stored == 1
    assert "line 1, column" in reports["broken.json"].error
    assert reports["broken.json"].next_step


@pytest.mark.parametrize(
    ("name", "content", "table", "sentence"),
    [
        ("missing.csv", None, None, "There is no file"),
        ("empty.csv", b"", None, "is empty"),
        ("blank.csv", b"\n  \n", None, "is empty"),
        ("image.csv", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x01", None, "is a binary file"),
        ("x.csv", b"Computer,b\n1,2\n", "SecurityAlerts", "There is no table 'SecurityAlerts'"),
        ("x.csv", b"Computer,b\n1,2\n", "x'; DROP TABLE Syslog; --_CL", "There is no table"),
        ("x.json", b'{"a": ', None, "is not valid JSON"),
        ("x.json", b"[1, 2, 3]", None, "holds no row"),
        ("x.json", b"[]", None, "holds no row"),
        ("x.parquet", b"PAR1 but not really", None, "cannot be read"),
    ],
)
def test_what_cannot_be_imported_is_said_in_one_sentence(
    workspace: Workspace, tmp_path: Path, name: str, content: bytes | None, table: str | None, sentence: str
) -> None:
    path = tmp_path / name if content is None else write(tmp_path, name, content)
    with pytest.raises(SentinelError) as refusal:
        workspace.import_path(path, table=table)
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert refusal.value.next_step
    assert workspace.tables() == []
    assert list((workspace.folder / "staging").iterdir()) == []


def test_a_wrong_table_name_suggests_the_right_one(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(SentinelError) as refusal:
        workspace.import_path(write(tmp_path, "x.csv", "Computer,b\n1,2\n"), table="SecurityAlerts")
    assert "SecurityAlert?" in refusal.value.next_step


def test_a_file_without_any_time_says_so(workspace: Workspace, tmp_path: Path) -> None:
    report = only(workspace.import_path(write(tmp_path, "x.csv", "Computer,Facility\na,f\n"), table="Syslog"))
    assert any("no time column" in note for note in report.notes)
    assert workspace.query("Syslog | count").rows == [(1,)]
    assert workspace.query("Syslog | count", timespan="P30D").rows == [(0,)]


def test_a_report_survives_its_wire_form(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path, "x.csv", "TimeGenerated,EventID,New\nx,y,1\nz\n")
    report = only(workspace.import_path(path, table="SecurityEvent"))
    assert report.misfits
    assert report.rejects
    assert ImportReport.from_dict(json.loads(json.dumps(report.to_dict()))) == report
