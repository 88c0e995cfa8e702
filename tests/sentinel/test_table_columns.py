"""The tool describe_table: names and types from the workspace's schema, fillings from its newest rows."""

from __future__ import annotations

from typing import Any

import pytest
from sentinel_servers import Served
from starlette.responses import JSONResponse

from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.workspace.table_schemas import known_tables

pytestmark = pytest.mark.anyio

ROWS = [
    {
        "TimeGenerated": f"2024-08-0{day}T01:00:00Z",
        "UserPrincipalName": "ana@contoso.example",
        "Location": "PT" if day > 1 else "",
        "LocationDetails": {"city": "Porto"},
    }
    for day in (1, 2)
]


@pytest.fixture(scope="module")
def estate(serving: Any) -> Served:
    served: Served = serving(SigninLogs=ROWS, Door_CL=[{"TimeGenerated": "2024-08-01T00:00:00Z", "Badge": 7}])
    return served


@pytest.mark.requirement("TOOL-5")
async def test_every_column_of_the_schema_comes_with_its_type_and_filled_ones_first(estate: Any) -> None:
    """Field report H2: a schema look-up tells table and column names, so that a query need not guess them."""
    result = await estate.ask("describe_table", table="SigninLogs", examples=True)
    assert {row["column"]: row["type"] for row in result.rows}.items() >= dict(known_tables()["SigninLogs"]).items()
    filled = {row["column"]: row["filled"] for row in result.rows if row["filled"]}
    assert filled.items() >= {"TimeGenerated": 2, "UserPrincipalName": 2, "Location": 1, "LocationDetails": 2}.items()
    assert [bool(row["filled"]) for row in result.rows] == sorted(
        (bool(r["filled"]) for r in result.rows), reverse=True
    )
    assert result.summary == {
        "table": "SigninLogs",
        "columns": len(result.rows),
        "columns_filled": len(filled),
        "rows_looked_at": 2,
    }
    coverage = result.coverage
    assert (coverage.tables, coverage.table_rows) == (("SigninLogs",), 2)
    assert coverage.table_newest is not None


async def test_columns_that_hold_nothing_are_counted_and_not_listed(estate: Any) -> None:
    result = await estate.ask("describe_table", table="SigninLogs")
    assert {row["column"] for row in result.rows} >= {"TimeGenerated", "UserPrincipalName", "Location"}
    assert all(row["filled"] for row in result.rows)
    assert "example" not in result.rows[0]
    empty = result.summary["columns"] - result.summary["columns_filled"]
    assert result.notes == (
        f"{empty} columns hold nothing in the 2 rows read and are left out. examples: true lists every column.",
    )


async def test_examples_are_values_of_the_newest_rows_and_come_only_when_asked_for(estate: Any) -> None:
    result = await estate.ask("describe_table", table="SigninLogs", examples=True)
    examples = {row["column"]: row["example"] for row in result.rows}
    assert examples["UserPrincipalName"] == "ana@contoso.example"
    assert examples["LocationDetails"] == '{"city": "Porto"}'
    assert examples["AppDisplayName"] is None
    assert [column.name for column in result.columns] == ["column", "type", "filled", "example"]


async def test_a_long_example_is_one_short_line(serving: Any) -> None:
    row = {"TimeGenerated": "2024-08-01T00:00:00Z", "SyslogMessage": "line one\nline two " + "x" * 500}
    result = await serving(Syslog=[row]).ask("describe_table", table="Syslog", examples=True)
    example = next(row["example"] for row in result.rows if row["column"] == "SyslogMessage")
    assert example.startswith("line one line two xxx")
    assert (len(example), example[-1]) == (80, "…")


@pytest.mark.parametrize("name", ["signinlogs", "SIGNINLOGS", " SigninLogs ", "['SigninLogs']", '["signinLogs"]'])
async def test_the_name_is_taken_in_any_case_and_its_spelling_is_told(estate: Any, name: str) -> None:
    result = await estate.ask("describe_table", table=name)
    assert result.summary["table"] == "SigninLogs"
    told = "The table's name is SigninLogs; names of tables and columns are case sensitive." in result.notes
    assert told == (name.strip() != "SigninLogs")


async def test_an_imported_table_has_its_own_columns(estate: Any) -> None:
    result = await estate.ask("describe_table", table="door_cl")
    assert {"column": "Badge", "type": "long", "filled": 1} in [dict(row) for row in result.rows]


@pytest.mark.parametrize(
    ("name", "near"),
    [("SignInLog", "SigninLogs"), ("SecurityEvents", "SecurityEvent"), ("DeviceProcess", "DeviceProcessEvents")],
)
async def test_a_wrong_name_is_answered_with_the_nearest_ones(estate: Any, name: str, near: str) -> None:
    """Field report H2: most errors of written queries are wrong names, so an error carries the right ones."""
    error = await estate.refusal("describe_table", table=name)
    assert (error.code, error.field) == (QueryErrorCode.INVALID_ARGUMENT, "table")
    assert near in error.allowed
    assert near in error.message
    assert "list_tables" in error.next_step


@pytest.mark.parametrize("name", ["SigninLogs | take 1", "x; drop", "*", "SigninLogs\n| take 1", "T" * 200, "é"])
async def test_what_is_no_table_is_never_pasted_into_a_query(wire: Any, name: str) -> None:
    wire.schema = JSONResponse({"tables": [{"name": "SigninLogs", "columns": [{"name": "a", "type": "string"}]}]})
    error = await Served(wire.url).refusal("describe_table", table=name)
    assert error.code is QueryErrorCode.INVALID_ARGUMENT
    assert len(error.message) < 200
    assert wire.requests == []


async def test_an_odd_name_of_the_schema_is_quoted(wire: Any) -> None:
    wire.schema = JSONResponse(
        {"tables": [{"name": 'my "odd" | table', "columns": [{"name": "TimeGenerated", "type": "datetime"}]}]}
    )
    wire.answers = [JSONResponse({"tables": [{"name": "PrimaryResult", "columns": [], "rows": []}]})]
    result = await Served(wire.url).ask("describe_table", table='my "odd" | table')
    assert [row["column"] for row in result.rows] == ["TimeGenerated"]
    assert all(request["query"].startswith('["my \\"odd\\" | table"]\n') for request in wire.requests)
    assert wire.requests


async def test_a_table_made_a_moment_ago_is_found(wire: Any) -> None:
    from sentinel_servers import connected

    from sentinel_rag.sentinel.workspace_view import WorkspaceSchema

    async with connected(wire.url) as workspace:
        schema = WorkspaceSchema(workspace)
        wire.schema = JSONResponse({"tables": [{"name": "Old_CL", "columns": [{"name": "a", "type": "string"}]}]})
        assert await schema.table("old_cl") == ("Old_CL", {"a": "string"})
        wire.schema = JSONResponse({"tables": [{"name": "New_CL", "columns": [{"name": "b", "type": "double"}]}]})
        assert await schema.table("New_CL") == ("New_CL", {"b": "real"})


async def test_an_empty_table_is_described_and_said_to_be_empty(estate: Any) -> None:
    result = await estate.ask("describe_table", table="AWSCloudTrail")
    assert len(result.rows) == len(known_tables()["AWSCloudTrail"])
    assert {row["filled"] for row in result.rows} == {0}
    assert result.notes == ("AWSCloudTrail holds no rows, so no column is filled.",)


@pytest.mark.parametrize(
    ("status", "body"), [(200, b"<html>"), (200, b""), (200, b'{"tables": [{"columns": 5}]}'), (200, b"[]")]
)
async def test_a_schema_that_is_none_is_a_protocol_error(wire: Any, status: int, body: bytes) -> None:
    from starlette.responses import Response

    wire.schema = Response(body, status)
    error = await Served(wire.url).refusal("describe_table", table="SigninLogs")
    assert error.code is QueryErrorCode.PROTOCOL


async def test_a_service_without_schemas_says_so(wire: Any) -> None:
    error = await Served(wire.url).refusal("describe_table", table="SigninLogs")
    assert error.code is QueryErrorCode.WORKSPACE_NOT_FOUND
    assert error.next_step
