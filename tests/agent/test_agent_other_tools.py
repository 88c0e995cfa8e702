"""The agent's wire for tools whose results are no rows, and the list of tools that a gateway offers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from sentinel_rag.agent.gateway_client import HttpToolGateway, read_response
from sentinel_rag.agent.tool_runs import RetryOnce
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.contracts.tool_calls import DocumentResult, Failed, Succeeded, ToolCall
from sentinel_rag.gateway.policy import Policy
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.loopback import serve
from sentinel_rag_testing.running_gateway import running_gateway
from sentinel_rag_testing.scripted_gateway import rows_result

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("value", [{"results": []}, ["a"], "text", None, 7, {"kind": "page", "rows": []}])
def test_a_result_of_another_tool_is_taken_as_it_is(value: Any) -> None:
    call = ToolCall("c1", "s", "somebody_elses_tool")
    body = json.dumps({"result": value, "status": "success", "audit_id": "a-1"}).encode()
    assert read_response(call, 200, body) == Succeeded(call, DocumentResult(value), "a-1")


def test_rows_of_another_tool_are_rows() -> None:
    call = ToolCall("c1", "s", "somebody_elses_tool")
    result = rows_result([{"a": 1}])
    body = json.dumps({"result": result.to_dict(), "status": "success", "audit_id": "a-1"}).encode()
    assert read_response(call, 200, body) == Succeeded(call, result, "a-1")


def test_a_tool_of_sentinel_must_answer_with_rows() -> None:
    call = ToolCall("c1", "s", "query_alerts")
    outcome = read_response(call, 200, json.dumps({"result": {"results": []}, "audit_id": "a"}).encode())
    assert isinstance(outcome, Failed)
    assert outcome.error.code is QueryErrorCode.PROTOCOL


async def test_a_gateway_names_the_tools_that_it_offers_to_whoever_has_a_key(
    shipped_policy: Policy, tmp_path: Path
) -> None:
    with FakeToolServer().running() as executor, running_gateway(shipped_policy, tmp_path, executor) as real:
        async with HttpToolGateway(real.url, real.key) as client:
            assert await RetryOnce(client).offered_tools() == set(shipped_policy.tools)
        async with HttpToolGateway(real.url, "sr_wrong_key_wrong_key") as client:
            assert await client.offered_tools() == frozenset()


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"", 200), (b"[]", 200), (b'{"tools": 3}', 200), (b'{"tools": [{}]}', 200), (b'{"tools": []}', 200), (b"", 302)],
)
async def test_an_answer_that_is_no_list_of_tools_offers_nothing(body: bytes, status: int) -> None:
    app = Starlette(routes=[Route("/v1/tools", lambda _: Response(body, status))])
    with serve(app) as url:
        async with HttpToolGateway(url, "k") as client:
            assert await client.offered_tools() == frozenset()


async def test_a_gateway_that_is_away_offers_nothing() -> None:
    with serve(Starlette()) as url:
        pass
    async with HttpToolGateway(url, "k") as client:
        assert await client.offered_tools() == frozenset()
