"""KQL over the store: right answers or a refusal by name, inside the time range and the limits that were set."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.workspace.queries import KqlError, KqlSyntaxError, KqlTimeoutError, TimeRange, TimespanError
from sentinel_rag.workspace.store import Store, create_table_sql
from sentinel_rag.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("DATA-4")

REFUSED_TODAY: set[str] = set()


@pytest.fixture(scope="module")
def cases(request: pytest.FixtureRequest) -> dict[str, Any]:
    path = request.config.rootpath / ".." / "shared" / "cases" / "kql-cases.json"
    if not path.is_file():
        pytest.skip(f"no cases at {path}")
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded


@pytest.fixture(scope="module")
def case_workspace(cases: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    store = Store.open(tmp_path_factory.mktemp("cases"))
    with store.writing() as cursor:
        for name, table in cases["tables"].items():
            cursor.execute(create_table_sql(name, table["columns"]))
            for row in table["rows"]:
                cursor.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)
    workspace = Workspace(store)
    yield workspace
    workspace.close()


def comparable(cell: Any) -> Any:
    if isinstance(cell, str) and cell[:4].isdigit() and cell.endswith("Z"):
        return cell.removesuffix("Z").replace("T", " ")
    return cell


def test_cases_with_known_answers_are_right_or_refused_by_name(
    case_workspace: Workspace, cases: dict[str, Any]
) -> None:
    wrong, wrong_kind, refused = {}, set(), set()
    for case in cases["cases"]:
        try:
            answer = case_workspace.query(case["kql"])
        except KqlError as error:
            (refused if error.kql_code == "SEN0001" else wrong_kind).add(case["name"])
            continue
        rows = [[comparable(cell) for cell in row] for row in answer.rows]
        expected = case["expected"]
        if not case["ordered"]:
            rows, expected = sorted(rows, key=repr), sorted(expected, key=repr)
        if rows != expected:
            wrong[case["name"]] = (rows, expected)
    assert (wrong, wrong_kind) == ({}, set())
    assert refused == REFUSED_TODAY


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Ten hours of Syslog, one row an hour, and one table of several types."""
    folder = tmp_path_factory.mktemp("logs")
    rows = [
        {
            "TimeGenerated": f"2024-07-02T{hour:02d}:00:00Z",
            "Computer": f"srv-{hour % 2}",
            "ProcessID": hour,
            "SyslogMessage": f"Accepted password for user{hour} from 192.0.2.{hour}",
        }
        for hour in range(10)
    ]
    (folder / "x.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    workspace = Workspace.open(folder / "workspace")
    workspace.import_path(folder / "x.jsonl", table="Syslog")
    yield workspace
    workspace.close()


@pytest.mark.parametrize(
    ("timespan", "hours"),
    [
        (None, range(10)),
        ("2024-07-02T03:00:00Z/2024-07-02T05:00:00Z", (3, 4)),
        ("2024-07-02T03:00:00.000Z/PT7200.0S", (3, 4)),
        ("PT1H/2024-07-02T05:00:00Z", (4,)),
        ("2024-07-02/2024-07-03", range(10)),
        ("2024-07-02T05:00:00+02:00/PT1H", (3,)),
        (TimeRange(start=datetime(2024, 7, 2, 8, tzinfo=UTC)), (8, 9)),
        (TimeRange(end=datetime(2024, 7, 2, 1, tzinfo=UTC)), (0,)),
        ("P7D", ()),
    ],
)
def test_the_timespan_restricts_every_read_of_a_table(
    logs: Workspace, timespan: str | TimeRange | None, hours: range | tuple[int, ...]
) -> None:
    for kql in (
        "Syslog | project ProcessID | sort by ProcessID asc",
        "let t = Syslog; t | project ProcessID | sort by ProcessID asc",
        "Syslog | where ProcessID in ((Syslog | project ProcessID)) | project ProcessID | sort by ProcessID asc",
        "let Syslog = Syslog | where true; Syslog | project ProcessID | sort by ProcessID asc",
        "union (Syslog), (Heartbeat | project TimeGenerated) | project ProcessID | sort by ProcessID asc",
    ):
        answer = logs.query(kql, timespan=timespan)
        assert [row[0] for row in answer.rows] == list(hours), kql
    joined = logs.query("Syslog | join kind=inner (Syslog) on ProcessID | count", timespan=timespan)
    assert joined.rows == [(len(tuple(hours)),)]
    total = logs.query("print n = toscalar(Syslog | count)", timespan=timespan)
    assert total.rows == [(len(tuple(hours)),)]


@pytest.mark.parametrize(
    "text", ["P1H", "1h", "PT", "P", "P1Y", "2024-07-02", "a/b/c", "2024-07-02T05:00:00Z/2024-07-02T03:00:00Z"]
)
def test_a_wrong_timespan_is_refused_and_never_empty(logs: Workspace, text: str) -> None:
    with pytest.raises(TimespanError) as refusal:
        logs.query("Syslog", timespan=text)
    assert refusal.value.next_step


def test_answers_are_cut_at_the_row_and_byte_limits_and_say_so(logs: Workspace) -> None:
    whole = logs.query("Syslog", max_rows=10)
    assert (len(whole.rows), whole.partial) == (10, "")
    cut = logs.query("Syslog | sort by ProcessID asc | project ProcessID", max_rows=4)
    assert cut.rows == [(0,), (1,), (2,), (3,)]
    assert "record count limit 4" in cut.partial
    small = logs.query("range x from 1 to 100000 step 1", max_bytes=1000)
    assert 0 < len(small.rows) < 1000
    assert "data size limit 1000" in small.partial
    assert [row[0] for row in small.rows] == list(range(1, len(small.rows) + 1))


def test_a_query_past_its_deadline_is_stopped_and_the_workspace_goes_on(logs: Workspace) -> None:
    side = "(range x from 1 to 4000000 step 1 | extend k = 1)"
    endless = f"{side} | join kind=inner {side} on k | count"
    with pytest.raises(KqlTimeoutError) as refusal:
        logs.query(endless, timeout_s=0.3)
    assert "0.3 seconds" in str(refusal.value)
    assert logs.query("Syslog | count").rows == [(10,)]


def test_cells_are_those_of_the_service(logs: Workspace) -> None:
    answer = logs.query(
        "print datetime(2015-12-31 23:59:59.9), false, guid(74be27de-1e4e-49d9-b579-fe0b331d3642), int(12345), "
        "1234567890123, 12345.6789, 'string value', 10s, decimal(0.10101), "
        'dynamic({"a": 123, "b": "hello", "c": [1, 2, 3], "d": {}})'
    )
    assert answer.rows == [
        (
            "2015-12-31T23:59:59.9Z",
            False,
            "74be27de-1e4e-49d9-b579-fe0b331d3642",
            12345,
            1234567890123,
            12345.6789,
            "string value",
            "00:00:10",
            "0.10101",
            '{"a":123,"b":"hello","c":[1,2,3],"d":{}}',
        )
    ]
    types = ["datetime", "bool", "guid", "int", "long", "real", "string", "timespan", "decimal", "dynamic"]
    assert [column.type for column in answer.columns] == types


def test_nulls_are_null_except_strings(logs: Workspace) -> None:
    answer = logs.query(
        "print bool(null), int(null), long(null), real(null), datetime(null), timespan(null), guid(null), real(nan), "
        "1.0 / 0, -1.0 / 0, 2d + 3h + 4m + 5s + 6ms, -1s | extend s = tostring(int(null))"
    )
    assert answer.rows == [(None,) * 7 + ("NaN", "Infinity", "-Infinity", "2.03:04:05.0060000", "-00:00:01", "")]


@pytest.mark.parametrize(
    ("kql", "code", "names"),
    [
        ("SecurityIncidents | take 1", "SEM0100", ("SecurityIncident",)),
        ("securityincident | take 1", "SEM0100", ("SecurityIncident",)),
        ("Syslog | where Computr == 'a'", "SEM0100", ("Computer",)),
        ("Syslog | where computer == 'a'", "SEM0100", ("Computer",)),
        ("Syslog | project LogLevel", "SEM0100", ()),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(
    logs: Workspace, kql: str, code: str, names: tuple[str, ...]
) -> None:
    with pytest.raises(KqlError) as refusal:
        logs.query(kql)
    assert refusal.value.kql_code == code
    assert refusal.value.suggestions[: len(names)] == names
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "kql", ["print countof('aba''a')", "print strcat()", "print bin(1)", "Syslog | take", "print 1 +"]
)
def test_faulty_calls_are_refused_in_one_sentence(logs: Workspace, kql: str) -> None:
    with pytest.raises(KqlError) as refusal:
        logs.query(kql)
    assert "\n" not in str(refusal.value)
    assert refusal.value.next_step


def test_a_syntax_error_has_its_place(logs: Workspace) -> None:
    with pytest.raises(KqlSyntaxError) as refusal:
        logs.query("Syslog\n| where Computer == 'a'\n| whre x")
    error = refusal.value
    assert (error.kql_code, error.line) == ("SYN0002", 3)
    assert error.position is not None


@pytest.mark.parametrize(
    ("kql", "name"),
    [
        ("Syslog | evaluate autocluster()", "evaluate autocluster"),
        ("search '4625'", "search"),
        ("Syslog | extend x = parse_user_agent(SyslogMessage, 'browser')", "parse_user_agent"),
        ("Syslog | summarize tdigest(ProcessID)", "tdigest"),
        ("cluster('other').database('d').Syslog", "cluster"),
    ],
)
def test_valid_kql_that_is_not_run_is_refused_by_name(logs: Workspace, kql: str, name: str) -> None:
    with pytest.raises(KqlError) as refusal:
        logs.query(kql)
    assert name in str(refusal.value)
    assert refusal.value.next_step


@pytest.mark.parametrize(
    ("kql", "columns"),
    [
        ("Syslog | project a=1, b=2, c=3 | project-reorder c, *", ["c", "a", "b"]),
        ("Syslog | project b2=1, a=2, b1=3 | project-reorder b* asc", ["b1", "b2", "a"]),
        ("Syslog | project a1=1, b=2, a2=3 | project-keep a*", ["a1", "a2"]),
        ("print Props=dynamic({'tags':[1]}) | mv-expand Props.tags", ["Props", "Props_tags"]),
        ("print a=dynamic([1]) | mv-expand todynamic(a)", ["a"]),
        (
            "Syslog | summarize make_set_if(Computer, true), make_list_if(Computer, true)",
            ["set_Computer", "list_Computer"],
        ),
    ],
)
def test_columns_of_added_operators_are_named_as_kusto_names_them(
    logs: Workspace, kql: str, columns: list[str]
) -> None:
    assert [column.name for column in logs.query(kql).columns] == columns


@pytest.mark.parametrize(
    ("kql", "rows"),
    [
        (
            "print ipv4_is_private('10.1.2.3'), ipv4_is_private('172.31.0.1'), ipv4_is_private('172.32.0.1')",
            [(True, True, False)],
        ),
        ("print ipv4_is_private('not an address')", [(None,)]),
        ("print ipv4_is_in_range('192.168.1.77', '192.168.1.0/24')", [(True,)]),
        ("print ipv4_is_in_range('192.168.2.1', '192.168.1.0/24')", [(False,)]),
        ("print split('a_b_c', '_', 1), split('a_b', '_', 9)", [('["b"]', "[]")]),
        ("Syslog | where ingestion_time() > datetime(2024-07-02T08:30:00Z) | count", [(1,)]),
        ("Syslog | distinct * | count", [(10,)]),
        ("(union (Syslog | where ProcessID < 2), (Syslog | where ProcessID > 7)) | count", [(4,)]),
        (
            "Syslog | make-series n = count(), max(ProcessID) default = -1 on TimeGenerated "
            "from datetime(2024-07-02T08:00:00Z) to datetime(2024-07-02T11:00:00Z) step 1h by Computer "
            "| sort by Computer asc | project Computer, n, max_ProcessID, tostring(TimeGenerated[2])",
            [
                ("srv-0", "[1,0,0]", "[8,-1,-1]", "2024-07-02T10:00:00.0000000Z"),
                ("srv-1", "[0,1,0]", "[-1,9,-1]", "2024-07-02T10:00:00.0000000Z"),
            ],
        ),
        (
            "let from_ = datetime(2024-07-02); let width = 5h; Syslog "
            "| make-series n = count() on TimeGenerated from from_ to from_ + 1d step width | project n",
            [("[5,5,0,0,0]",)],
        ),
        (
            "Heartbeat | make-series n = count() on TimeGenerated from datetime(2024-07-02) "
            "to datetime(2024-07-03) step 1d",
            [],
        ),
        (
            "Syslog | extend v = iff(ProcessID == 9, long(null), ProcessID) | make-series avg(v) on TimeGenerated "
            "from datetime(2024-07-02T08:00:00Z) to datetime(2024-07-02T11:00:00Z) step 1h | project avg_v",
            [("[8.0,null,0.0]",)],
        ),
        ("table('Syslog') | join kind=inner (table(\"Syslog\") | project ProcessID) on ProcessID | count", [(10,)]),
        ("print t = 'table(\"Syslog\")'", [('table("Syslog")',)]),
        ("search in (Syslog, Heartbeat) 'user3' | project $table, ProcessID", [("Syslog", 3)]),
        ("search in (Syslog) 'user' | count", [(0,)]),
        ("print bin(datetime(2024-07-04T13:45:07Z), 1h)", [("2024-07-04T13:00:00Z",)]),
        ("print bin(datetime(2024-07-04T13:45:07Z), 7d)", [("2024-07-01T00:00:00Z",)]),
        ("print bin(datetime(1969-12-31T23:59:59Z), 1d), bin(26h, 1d)", [("1969-12-31T00:00:00Z", "1.00:00:00")]),
        (
            "Syslog | summarize n = count() by bin(TimeGenerated, 4h) | sort by TimeGenerated asc | project n",
            [(4,), (4,), (2,)],
        ),
        ("print decimal(0.1) + decimal(0.2), decimal(-12345678901234567.5)", [("0.3", "-12345678901234567.5")]),
        ("Syslog | as hint.materialized=true X | count", [(10,)]),
        ("Syslog | where SyslogMessage has 'USER7' | count", [(1,)]),
        ("Syslog | where SyslogMessage has 'user' | count", [(0,)]),
        ("Syslog | where SyslogMessage contains 'USER7' | count", [(1,)]),
        ("Syslog | extend SyslogMessage = todynamic('[\"admin\"]') | where SyslogMessage has 'admin' | count", [(10,)]),
        ("let f = (least: long) { Syslog | where ProcessID >= least }; f(7) | count", [(3,)]),
        ("Syslog | extend z = column_ifexists('Nope', 'default') | take 1 | project z", [("default",)]),
        (
            "Syslog | extend z = column_ifexists('Computer', 'x') | summarize by z | sort by z asc",
            [("srv-0",), ("srv-1",)],
        ),
    ],
)
def test_additions_answer_right(logs: Workspace, kql: str, rows: list[tuple[Any, ...]]) -> None:
    assert logs.query(kql).rows == rows


def test_queries_go_on_while_an_import_runs(tmp_path: Path, workspace: Workspace) -> None:
    export = tmp_path / "x.csv"
    export.write_text("TimeGenerated,Computer\n2024-01-01T00:00:00Z,srv\n")
    workspace.import_path(export, table="Syslog")
    path = tmp_path / "Heartbeat.csv"
    lines = [f"2024-01-01T00:00:00Z,host-{number}" for number in range(200_000)]
    path.write_text("TimeGenerated,Computer\n" + "\n".join(lines) + "\n")
    importing = threading.Thread(target=workspace.import_path, args=(path,), name="import")
    importing.start()
    seen = set()
    while importing.is_alive():
        seen.add(workspace.query("Heartbeat | count").rows[0][0])
        assert workspace.query("Syslog | count").rows == [(1,)]
    importing.join()
    seen.add(workspace.query("Heartbeat | count").rows[0][0])
    assert seen <= {0, 200_000}
    assert 200_000 in seen
