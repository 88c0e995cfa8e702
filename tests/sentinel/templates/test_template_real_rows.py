"""Templates over real exports (sign-ins, Entra audit, Office, processes) against SQL that was written for this test and
reads the files themselves, not the workspace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from sentinel_servers import Served, workspace_app

from sentinel_rag.workspace.workspace import Workspace
from sentinel_rag_testing.loopback import serve

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("TOOL-4")]

FILES = (
    "training_lab/sign-in_adelete.csv",
    "training_lab/disable_accounts.csv",
    "training_lab/office_activity.csv",
    "training_lab/AuditLogs_Hunting.csv",
    "msticpy/aad_logons.jsonl",
    "msticpy/processes_on_host.csv",
    "msticpy/mde_proc_pub.jsonl",
)


@pytest.fixture(scope="module")
def exports(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    workspace = Workspace.open(tmp_path_factory.mktemp("exports"))
    try:
        for name in FILES:
            assert all(report.rows_stored for report in workspace.import_path(shared_data / name))
        with serve(workspace_app(workspace)) as url:
            yield Served(url)
    finally:
        workspace.close()


def by_hand(shared_data: Path, sql: str) -> list[tuple[Any, ...]]:
    """`{name}` in the SQL is a file as text columns (CSV) or as its own types (JSON lines)."""
    csv = "read_csv('{}', all_varchar = true, header = true, nullstr = '')"
    readers = {
        Path(name).stem.replace("-", "_"): f"read_json('{shared_data / name}')"
        if name.endswith(".jsonl")
        else csv.format(shared_data / name)
        for name in FILES
    }
    return duckdb.connect().execute(sql.format(**readers)).fetchall()


SIGNINS = """
(select UserPrincipalName as who, AppDisplayName as app, Location as place, IPAddress as ip, ResultType as code,
        try_strptime("CreatedDateTime [UTC]", '%m/%d/%Y, %I:%M:%S.%g %p')::date as day from {sign_in_adelete}
 union all
 select UserPrincipalName, AppDisplayName, Location, IPAddress, ResultType, null from {disable_accounts}
 union all
 select UserPrincipalName, AppDisplayName, Location, IPAddress, ResultType::varchar, TimeGenerated::timestamp::date
 from {aad_logons})
"""


@pytest.mark.parametrize(
    ("template", "parameters", "columns", "sql"),
    [
        (
            "signins_by_country",
            {},
            ["Country", "SignIns", "Failures", "Users", "Addresses"],
            f"select place, count(*), count(*) filter (code <> '0'), count(distinct who), count(distinct ip) "
            f"from {SIGNINS} group by all order by 2 desc, 1",
        ),
        (
            "signins_by_application",
            {},
            ["Application", "SignIns", "Failures"],
            f"select app, count(*), count(*) filter (code <> '0') from {SIGNINS} group by all order by 2 desc, 1",
        ),
        (
            "signins_by_day",
            {},
            ["Day", "SignIns", "Users"],
            f"select strftime(day, '%Y-%m-%dT00:00:00Z'), count(*), count(distinct who) from {SIGNINS} "
            f"group by all order by 1 nulls first",
        ),
        (
            "failed_signins_by_user",
            {"user": "johns"},
            ["UserPrincipalName", "Failures", "Addresses"],
            f"select who, count(*), count(distinct ip) from {SIGNINS} where code <> '0' and who ilike 'johns@%' "
            f"group by all",
        ),
        (
            "office_operations_by_user",
            {},
            ["UserId", "Operation", "Events"],
            "select UserId, Operation, count(*) from {office_activity} group by UserId, OfficeWorkload, Operation "
            "order by 3 desc, 1, 2",
        ),
        (
            "office_activity_by_user",
            {"user": "adelev@m365x816222.onmicrosoft.com"},
            ["OfficeWorkload", "Operation", "Events"],
            "select OfficeWorkload, Operation, count(*) from {office_activity} "
            "where lower(UserId) = 'adelev@m365x816222.onmicrosoft.com' group by all order by 3 desc, 2",
        ),
        (
            "mailbox_rule_changes",
            {},
            ["UserId", "Operation", "Changes"],
            "select UserId, Operation, count(*) from {office_activity} where Operation ilike '%InboxRule%' "
            "group by all",
        ),
        (
            "entra_changes_by_target",
            {},
            ["Target", "Changes"],
            "select targetDisplayName, count(*) from {AuditLogs_Hunting} group by all order by 2 desc, 1",
        ),
        (
            "entra_changes_by_actor",
            {},
            ["Actor", "Changes"],
            "select InitiatedBy::json ->> '$.user.userPrincipalName', count(*) from {AuditLogs_Hunting} group by all "
            "order by 2 desc, 1",
        ),
        (
            "windows_parent_child_processes",
            {},
            ["Parent", "Child", "Executions"],
            r"select lower(regexp_extract(ParentProcessName, '[^\\]*$')) as p, "
            r"lower(regexp_extract(NewProcessName, '[^\\]*$')) as c, count(*) as n from {processes_on_host} "
            r"where EventID = '4688' group by all order by n, p, c",
        ),
        (
            "windows_rare_processes",
            {"max_executions": 1},
            ["Program", "Executions"],
            "select lower(NewProcessName) as program, count(*) as n from {processes_on_host} where EventID = '4688' "
            "group by program having n = 1 order by program",
        ),
        (
            "parent_child_processes",
            {},
            ["Parent", "Child", "Executions", "Hosts"],
            "select lower(InitiatingProcessFileName) as p, lower(FileName) as c, count(*) as n, "
            "count(distinct DeviceName) from {mde_proc_pub} group by all order by n, p, c",
        ),
        (
            "processes_by_host",
            {},
            ["DeviceName", "Executions", "Programs", "Accounts"],
            "select DeviceName, count(*), count(distinct FileName), count(distinct AccountName) from {mde_proc_pub} "
            "group by all order by 2 desc, 1",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isidentifier() else "",
)
async def test_real_rows_give_the_answer_of_sql_over_the_files(
    exports: Served, shared_data: Path, template: str, parameters: dict[str, Any], columns: list[str], sql: str
) -> None:
    expected = by_hand(shared_data, sql)
    result = await exports.ask("run_kql_query", template=template, parameters=parameters, limit=100)
    assert expected
    assert [tuple(row[column] for column in columns) for row in result.rows] == expected[:100]
    assert result.coverage.rows_total == len(expected)


async def test_the_totals_of_real_rows_are_their_number(exports: Served, shared_data: Path) -> None:
    ((rows, failed),) = by_hand(shared_data, f"select count(*), count(*) filter (code <> '0') from {SIGNINS}")
    for template in ("signins_by_country", "signins_by_application", "signins_by_day"):
        result = await exports.ask("run_kql_query", template=template, limit=1)
        assert result.summary["totals"] == {"SignIns": rows, "Failures": failed}


async def test_the_timeline_of_a_real_account_holds_every_row_of_it(exports: Served, shared_data: Path) -> None:
    ((signins, office),) = by_hand(
        shared_data,
        f"select (select count(*) from {SIGNINS} where who ilike 'adelev@%'), "
        "(select count(*) from {office_activity} where UserId ilike 'adelev@%')",
    )
    result = await exports.ask("run_kql_query", template="account_activity_timeline", parameters={"account": "adelev"})
    assert signins > 50
    assert office > 100
    assert result.coverage.rows_total == signins + office
    times = [row["TimeGenerated"] for row in result.rows]
    assert times == sorted(times, reverse=True)
