"""Our lean MCP client and the official SDK, each against the other's server: what one can say, the other hears.

The official server is the reference for the client, the official client is the reference for the fake tool server; both
eras of the protocol and both forms of answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.gateway.request_body import CanonicalArguments
from sentinel_rag.gateway.upstream import McpHttpUpstream, Returned, ToolFailed, Unanswered, UpstreamCall
from sentinel_rag.gateway.upstream.mcp_messages import UpstreamProtocol
from sentinel_rag_testing.fake_tool_server import SESSIONS, STATELESS, Answers, FakeToolServer, Sends
from sentinel_rag_testing.loopback import serve
from waiting import WAIT_S

VALUE: dict[str, Any] = {"rows": [{"n": 1, "text": "é \u0000 \U0001f600"}, {"n": 2.5, "text": None}], "ok": True}


def official_server() -> Any:
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("reference")

    @server.tool()
    def structured(limit: int = 0) -> dict[str, Any]:
        return {**VALUE, "limit": limit}

    @server.tool(structured_output=False)
    def text(name: str) -> str:
        return f"hello {name}"

    @server.tool()
    def fails() -> dict[str, Any]:
        raise ValueError("no such row")

    return server


@pytest.fixture(scope="module", params=itertools.product((True, False), (True, False)), ids=str)
def official_url(request: pytest.FixtureRequest) -> Iterator[str]:
    json_response, stateless = request.param
    app = official_server().streamable_http_app(json_response=json_response, stateless_http=stateless)
    with serve(app) as url:
        yield f"{url}/mcp"


@pytest.mark.anyio
@pytest.mark.parametrize("era", [None, UpstreamProtocol.STATELESS, UpstreamProtocol.SESSIONS], ids=str)
async def test_our_client_speaks_to_the_official_server(official_url: str, era: UpstreamProtocol | None) -> None:
    upstream = McpHttpUpstream(official_url, era=era)

    async def call(tool: str, **arguments: Any) -> Any:
        canonical = CanonicalArguments.of(arguments)
        return await upstream.call(
            UpstreamCall(tool=tool, arguments=canonical, principal="key", session_id="one", timeout_s=WAIT_S)
        )

    try:
        tools = {tool.name: tool for tool in await upstream.list_tools(timeout_s=WAIT_S)}
        assert set(tools) == {"structured", "text", "fails"}
        assert tools["structured"].input_schema["properties"]["limit"]["type"] == "integer"
        reply = await call("structured", limit=3)
        assert isinstance(reply, Returned)
        assert msgspec.json.decode(reply.encoded) == {**VALUE, "limit": 3}
        assert reply.rows == 2
        text = await call("text", name="00713")
        assert text == Returned(b'"hello 00713"', "hello 00713")
        failed = await call("fails")
        assert isinstance(failed, ToolFailed)
        assert failed.error.code is QueryErrorCode.INTERNAL
        assert "fails" in failed.error.message
        unknown = await call("nothing")
        assert isinstance(unknown, ToolFailed | Unanswered)
    finally:
        await upstream.aclose()


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("stream", [True, False])
async def test_the_official_client_speaks_to_the_fake_executor(mode: Any, stream: bool) -> None:
    from mcp.client.client import Client

    with FakeToolServer(stream=stream).running() as executor:
        executor.on("list_tables", Answers(VALUE))
        async with Client(executor.url, mode=mode) as client:
            listed = await client.list_tools()
            assert {tool.name for tool in listed.tools} == {tool.name for tool in executor.tools}
            result = await client.call_tool("list_tables", {})
            assert (result.structured_content, result.is_error) == (VALUE, False)
        assert [call.tool for call in executor.calls] == ["list_tables"]


@pytest.mark.anyio
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("eras", "expected"),
    [((STATELESS,), STATELESS), ((SESSIONS,), SESSIONS), ((STATELESS, SESSIONS), STATELESS)],
)
async def test_the_era_is_asked_once_and_the_newer_one_taken(
    eras: tuple[str, ...], expected: str, stream: bool
) -> None:
    with FakeToolServer(eras=eras, stream=stream, token="t").running() as executor:
        upstream = McpHttpUpstream(executor.url, token="t")
        for _ in range(2):
            reply = await upstream.call(
                UpstreamCall(
                    tool="list_tables",
                    arguments=CanonicalArguments.of({}),
                    principal="key",
                    session_id="s",
                    timeout_s=WAIT_S,
                )
            )
            assert isinstance(reply, Returned)
        assert {call.headers["mcp-protocol-version"] for call in executor.calls} == {expected}
        await upstream.aclose()


@pytest.mark.anyio
async def test_a_list_that_is_not_one_or_never_ends_is_an_error() -> None:
    for body in (b"{}", b"[]", b'{"jsonrpc":"2.0","id":2,"result":{"tools":[],"nextCursor":"x"}}'):
        with serve(_always(body)) as url:
            upstream = McpHttpUpstream(url, era=UpstreamProtocol.STATELESS)
            with pytest.raises(UnavailableError):
                await upstream.list_tools(timeout_s=5)
            await upstream.aclose()


@pytest.mark.anyio
async def test_a_question_back_in_the_middle_of_a_call_is_not_a_success() -> None:
    with FakeToolServer().running() as executor:
        body = b'{"jsonrpc":"2.0","id":%d,"result":{"resultType":"input_required","content":[]}}'
        executor.on("list_tables", *(Sends(body % number) for number in (1, 2, 3)))
        upstream = McpHttpUpstream(executor.url, era=UpstreamProtocol.STATELESS)
        reply = await upstream.call(
            UpstreamCall(
                tool="list_tables",
                arguments=CanonicalArguments.of({}),
                principal="key",
                session_id="s",
                timeout_s=WAIT_S,
            )
        )
        assert isinstance(reply, Unanswered)
        assert "asks for input" in reply.error.message
        await upstream.aclose()


def _always(body: bytes) -> Any:
    from starlette.responses import Response

    return Response(body, media_type="application/json")
