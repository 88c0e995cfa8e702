"""The MCP server over a real socket with the official client, on the embedded workspace."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client.session import ClientSession  # a test has no start-up to keep short
from mcp.client.streamable_http import streamable_http_client  # the same
from sentinel_servers import IDENTITY_HEADER, NOW, WORKSPACE_ID, ScriptedWire, workspace_app

from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode, QueryResult
from sentinel_rag.contracts.tool_schemas import OPT_IN_TOOLS, PREVIEW_TOOLS, SENTINEL_TOOLS, WRITING_TOOLS
from sentinel_rag.sentinel.credentials import IdentityEndpointCredential
from sentinel_rag.sentinel.freeform_query import FreeformQueries
from sentinel_rag.sentinel.kql_guard import KqlGuard
from sentinel_rag.sentinel.logs.log_analytics import LogAnalytics
from sentinel_rag.sentinel.rest import ArmConnection, SentinelRest
from sentinel_rag.sentinel.service import SentinelService
from sentinel_rag.tools.sentinel import create_app
from sentinel_rag.workspace.server import EMBEDDED_RESOURCE_ID
from sentinel_rag.workspace.workspace import Workspace
from sentinel_rag_testing.loopback import serve
from waiting import WAIT_S

pytestmark = pytest.mark.anyio

TOKEN = "executor-token-of-the-tests"


def executor(workspace_url: str, **options: Any) -> Any:
    credential = IdentityEndpointCredential(f"{workspace_url}/msi/token", IDENTITY_HEADER)
    connection = LogAnalytics(credential, endpoint=workspace_url, first_retry_delay_s=0.001)
    workspaces = {"lab": connection.workspace("lab", WORKSPACE_ID)}
    manager = ArmConnection(credential, endpoint=workspace_url, first_retry_delay_s=0.001)
    rest = {"lab": SentinelRest("lab", EMBEDDED_RESOURCE_ID, manager)}
    return create_app(SentinelService(workspaces, rest=rest, clock=lambda: NOW, **options), token=TOKEN)


@asynccontextmanager
async def session(url: str) -> AsyncIterator[ClientSession]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=WAIT_S) as http,
        streamable_http_client(f"{url}/mcp", http_client=http) as streams,
        ClientSession(streams[0], streams[1]) as client,
    ):
        await client.initialize()
        yield client


@pytest.fixture(scope="module")
def real_executor(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    workspace = Workspace.open(tmp_path_factory.mktemp("executor"))
    try:
        for name, table in (("extracted_alerts.csv", "SecurityAlert"), ("extracted_incidents.csv", "SecurityIncident")):
            workspace.import_path(shared_data / "secrl" / name, table=table)
        with serve(workspace_app(workspace)) as url, serve(executor(url)) as executor_url:
            yield executor_url
    finally:
        workspace.close()


@pytest.mark.requirement("TOOL-1")
async def test_the_tools_are_served_with_the_schemas_of_the_contracts(real_executor: str) -> None:
    async with session(real_executor) as client:
        listed = (await client.list_tools()).tools
    assert [(tool.name, tool.description, tool.input_schema) for tool in listed] == [
        (tool.name, tool.description, json.loads(json.dumps(tool.parameters)))
        for tool in (*SENTINEL_TOOLS, *PREVIEW_TOOLS)
        if tool.name not in OPT_IN_TOOLS
    ]
    hints = {tool.name: tool.annotations for tool in listed}
    assert {name for name, hint in hints.items() if hint is not None and not hint.read_only_hint} == WRITING_TOOLS
    assert {name for name, hint in hints.items() if hint is not None and hint.destructive_hint} == {"update_incident"}


ARGUMENTS: dict[str, dict[str, Any]] = {
    "get_incident_detail": {"incident": "55"},
    "get_top_entities": {"kind": "account"},
    "get_alert_events": {"alert_id": "c6a40f35-751c-407a-8357-aa77fcd5613c"},
    "run_kql_query": {"template": "alerts_by_product"},
    "describe_table": {"table": "SecurityAlert"},
    "search_logs": {"text": "c6a40f35-751c-407a-8357-aa77fcd5613c"},
    "add_incident_comment": {"incident": "55", "message": "Seen."},
    "update_incident": {"incident": "55", "severity": "Medium"},
}


@pytest.mark.requirement("TOOL-3")
@pytest.mark.parametrize("tool", [tool.name for tool in SENTINEL_TOOLS if tool.name not in OPT_IN_TOOLS])
async def test_every_tool_answers_with_a_typed_result_over_mcp(real_executor: str, tool: str) -> None:
    async with session(real_executor) as client:
        answer = await client.call_tool(tool, ARGUMENTS.get(tool, {}))
    assert answer.is_error is False
    result = QueryResult.from_dict(answer.structured_content)
    assert result.to_dict() == answer.structured_content
    assert result.coverage.workspace == ("" if tool == "list_workspaces" else "lab")
    if tool == "get_alert_events":  # its query reads a table that was not exported
        assert (result.rows, result.summary["why_not"]) == ((), "refused")
        return
    assert result.rows
    assert set(result.rows[0]) <= {column.name for column in result.columns}


@pytest.mark.requirement("TOOL-5")
async def test_freeform_kql_is_served_only_where_it_was_switched_on(
    shared_data: Path, tmp_path: Path, real_executor: str
) -> None:
    arguments = {"kql": "SecurityAlert | where TimeGenerated > datetime(2024-01-01) | summarize Alerts = count()"}
    async with session(real_executor) as client:
        assert "run_freeform_kql" not in {tool.name for tool in (await client.list_tools()).tools}
        refused = await client.call_tool("run_freeform_kql", arguments)
    assert refused.is_error is True
    assert "SENTINEL_FREEFORM_KQL" in refused.structured_content["next_step"]
    workspace = Workspace.open(tmp_path / "workspace")
    try:
        workspace.import_path(shared_data / "secrl" / "extracted_alerts.csv", table="SecurityAlert")
        freeform = FreeformQueries(KqlGuard(None))
        with serve(workspace_app(workspace)) as url, serve(executor(url, freeform=freeform)) as opted_in:
            async with session(opted_in) as client:
                assert "run_freeform_kql" in {tool.name for tool in (await client.list_tools()).tools}
                answer = await client.call_tool("run_freeform_kql", arguments)
        assert answer.is_error is False, answer.structured_content
        assert QueryResult.from_dict(answer.structured_content).rows == ({"Alerts": 189},)
    finally:
        workspace.close()


async def test_the_text_beside_the_result_is_one_line_without_rows(real_executor: str) -> None:
    async with session(real_executor) as client:
        answer = await client.call_tool("query_incidents", {"limit": 2})
    assert [block.text for block in answer.content] == ["2 of 8 rows from SecurityIncident."]


@pytest.mark.requirement("TOOL-2")
async def test_a_bad_argument_is_a_typed_error_over_mcp(real_executor: str) -> None:
    async with session(real_executor) as client:
        answer = await client.call_tool("query_incidents", {"severity": "Critical"})
    assert answer.is_error is True
    error = QueryError.from_dict(answer.structured_content)
    assert (error.code, error.field) == (QueryErrorCode.INVALID_ARGUMENT, "severity")
    assert "High" in answer.content[0].text


async def test_calls_of_several_clients_run_at_once(real_executor: str) -> None:
    results: list[Any] = []

    async def one(number: int) -> None:
        async with session(real_executor) as client:
            results.append(await client.call_tool("query_incidents", {"limit": number}))

    async with anyio.create_task_group() as group:
        for number in range(1, 7):
            group.start_soon(one, number)
    assert sorted(len(result.structured_content["rows"]) for result in results) == [1, 2, 3, 4, 5, 6]


async def test_a_workspace_that_is_away_is_an_error_value_and_the_server_stays_up() -> None:
    wire = ScriptedWire()
    with serve(wire.app()) as gone:
        pass
    with serve(executor(gone)) as url:
        async with session(url) as client:
            answer = await client.call_tool("query_incidents", {})
            assert (await client.list_tools()).tools
    error = QueryError.from_dict(answer.structured_content)
    assert error.code is QueryErrorCode.UNAVAILABLE
    assert gone in error.message


class _Broken:
    async def get_alert_events(self, *_: object, **__: object) -> QueryResult:
        raise LookupError("s3cret")


async def test_a_fault_of_ours_is_an_error_with_an_id_and_no_data(caplog: pytest.LogCaptureFixture) -> None:
    with serve(ScriptedWire().app()) as workspace_url, serve(executor(workspace_url, alert_events=_Broken())) as url:
        async with session(url) as client:
            answer = await client.call_tool("get_alert_events", {"alert_id": "a1"})
            assert (await client.list_tools()).tools
    error = QueryError.from_dict(answer.structured_content)
    assert error.code is QueryErrorCode.INTERNAL
    assert "s3cret" not in json.dumps(answer.structured_content)
    record = next(record for record in caplog.records if "internal error" in record.getMessage())
    fault = record.getMessage().split()[2]
    assert fault in error.message
    assert record.exc_info is not None


def test_the_executor_holds_no_database_engine() -> None:
    code = (
        "import sys; import sentinel_rag.tools.sentinel, sentinel_rag.sentinel.logs.log_analytics as l; "
        "import sentinel_rag.sentinel.credentials as c; "
        "l.LogAnalytics(c.IdentityEndpointCredential('http://127.0.0.1:9', 'x'), endpoint='http://127.0.0.1:9'); "
        "print([n for n in ('duckdb', 'kql_duckdb', 'azure.identity', 'sentinel_rag.workspace', "
        "'sentinel_rag.gateway', 'sentinel_rag.agent') if n in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
