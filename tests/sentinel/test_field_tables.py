"""Counts of tables: the list of tables knows them, and nobody's raw rows are read for a number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from action_estate import Estate, estate
from asking import Conversation, shown
from sentinel_servers import Served
from starlette.responses import JSONResponse

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("AGENT-1")]
MEASURES = (("Rows", "long"), ("Oldest", "datetime"), ("Newest", "datetime"))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    with estate(tmp_path_factory.mktemp("field-tables")) as running:
        yield running


@pytest.mark.parametrize(
    ("question", "table"),
    [
        ("how many rows are in SigninLogs?", "SigninLogs"),
        ("how many rows does SecurityEvent have?", "SecurityEvent"),
        ("count the rows of OfficeActivity", "OfficeActivity"),
        ("row count of AuditLogs", "AuditLogs"),
        ("how many sign-ins are in SigninLogs?", "SigninLogs"),
        ("how many events in SecurityEvent", "SecurityEvent"),
        ("how many incidents are in SecurityIncident?", "SecurityIncident"),
        ("how many process events in DeviceProcessEvents?", "DeviceProcessEvents"),
        ("is SigninLogs empty?", "SigninLogs"),
        ("what is the row count of SecurityAlert", "SecurityAlert"),
        ("show me how many rows OfficeActivity has", "OfficeActivity"),
        ("does SecurityEvent have data", "SecurityEvent"),
        ("does AuditLogs contain anything?", "AuditLogs"),
        ("rows of OfficeActivity", "OfficeActivity"),
        ("ist SigninLogs leer?", "SigninLogs"),
        ("¿cuántas filas tiene SigninLogs?", "SigninLogs"),
        ("est-ce que SigninLogs est vide ?", "SigninLogs"),
    ],
)
async def test_the_rows_of_a_table_are_counted_by_the_list_of_tables(served: Estate, question: str, table: str) -> None:
    ((rows,),) = served.kql(f"{table} | count")
    conversation = Conversation(served)
    answer = shown(await conversation.ask(question))
    assert answer.startswith(f"`{table}` holds {rows} row"), answer
    assert ", the oldest of 2025-03-0" in answer
    assert conversation.calls == [("list_tables", {})]


@pytest.mark.parametrize(
    "question",
    ["how many failed sign-ins in SigninLogs?", "how many users are in SigninLogs?", "columns of SigninLogs"],
)
async def test_what_narrows_the_rows_is_no_count_of_the_table(served: Estate, question: str) -> None:
    conversation = Conversation(served)
    await conversation.ask(question)
    assert ("list_tables", {}) not in conversation.calls


@pytest.mark.parametrize("table", ["DeviceEvents", "AADUserRiskEvents"])
async def test_a_table_without_rows_is_empty(served: Estate, table: str) -> None:
    answer = shown(await Conversation(served).ask(f"is {table} empty?"))
    assert answer.startswith(f"The workspace holds no rows of `{table}`."), answer


async def test_a_window_that_the_count_does_not_have_is_told(served: Estate) -> None:
    answer = shown(await Conversation(served).ask("how many rows are in SigninLogs in the last 24 hours?"))
    assert "`SigninLogs` holds 28 rows" in answer
    assert "all rows that are retained" in answer


async def test_a_table_that_is_not_there_is_told_and_not_over_a_cut_list(served: Estate) -> None:
    question = "how many rows are in NoSuchTable?"
    assert shown(await Conversation(served).ask(question)).startswith("The workspace holds no rows of `NoSuchTable`.")
    served.faults({"kind": "partial", "path": "/query"})
    answer = shown(await Conversation(served).ask(question))
    served.faults()
    assert answer.startswith("Whether the workspace holds rows of `NoSuchTable` is not known"), answer


async def test_a_table_that_nobody_here_knows_is_counted_too(serving: Any) -> None:
    row = {
        "TenantId": "t",
        "TimeGenerated": "2024-07-02T09:00:00Z",
        "Type": "StorageBlobLogs",
        "OperationName": "PutBlob",
    }
    answer = shown(await Conversation(serving(StorageBlobLogs=[row])).ask("how many rows are in StorageBlobLogs?"))
    assert answer.startswith("`StorageBlobLogs` holds 1 row")


def answered(column: str, *cells: str) -> JSONResponse:
    named = [{"name": name, "type": kind} for name, kind in ((column, "string"), *MEASURES)]
    return JSONResponse(
        {"tables": [{"name": "PrimaryResult", "columns": named, "rows": [[c, 1, None, None] for c in cells]}]}
    )


@pytest.mark.parametrize(("count", "asked"), [(100, 1), (101, 2)])
async def test_of_a_thousand_tables_those_that_are_billed_for_are_counted(wire: Any, count: int, asked: int) -> None:
    names = [*(f"Azure{place}Logs" for place in range(count)), "Own_CL"]
    columns = [{"name": "TimeGenerated", "type": "datetime"}]
    wire.schema = JSONResponse({"tables": [{"name": name, "columns": columns} for name in names]})
    wire.answers = [answered("DataType", "Azure7Logs"), answered("TableName", "Azure7Logs")][-asked:]
    await Served(wire.url).ask("list_tables")
    assert len(wire.requests) == asked
    counted = wire.requests[-1]["query"]
    assert ("Azure7Logs |" in counted, "Own_CL |" in counted, "Azure8Logs |" in counted) == (True, True, asked == 1)
