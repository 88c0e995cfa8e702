"""One server, three clients, the same values: our client over HTTP, our client over pipes, and the official SDK's.

The server is built with the SDK and returns every kind of result. Each client reads each of them over each transport,
in both eras and, over HTTP, in both forms of answer; what the SDK's client reads is the reference for the other two.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
import reference_mcp_server as reference
from reference_mcp_server import IMAGE, LARGE, LINK, RESOURCE, UNICODE, VALUE

from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.gateway.request_body import CanonicalArguments
from sentinel_rag.gateway.upstream import (
    Launch,
    McpHttpUpstream,
    McpStdioUpstream,
    Returned,
    ToolFailed,
    Unanswered,
    Upstream,
    UpstreamCall,
    UpstreamReply,
)
from sentinel_rag.gateway.upstream.mcp_messages import UpstreamProtocol
from sentinel_rag_testing.loopback import serve
from waiting import WAIT_S

pytestmark = pytest.mark.filterwarnings("ignore:The .* capability is deprecated")

SCRIPT = Path(reference.__file__)

TEXT = {"type": "text"}
EXPECTED: dict[str, Any] = {
    "structured": VALUE,
    "structured_alone": VALUE,
    "structured_and_more": {**VALUE, "_mcp_content": [{**TEXT, "text": "Read the manual."}]},
    "structured_and_image": {**VALUE, "_mcp_content": [IMAGE]},
    "wrapped_scalar": {"result": 7},
    "wrapped_text": {"result": "00713"},
    "wrapped_array": {"result": [1, "b"]},
    "text": "00713",
    "two_texts": [{**TEXT, "text": "one"}, {**TEXT, "text": "two"}],
    "image": [IMAGE],
    "resource": [RESOURCE],
    "link": [LINK],
    "empty": None,
    "unicode": UNICODE,
    "large": {"rows": [LARGE]},
}
"""What the gate gets for each tool."""

STATELESS_ONLY: dict[str, Any] = {
    "scalar": 7,
    "array": [1, 2],
    "array_and_more": {"structuredContent": [1, 2], "_mcp_content": [{**TEXT, "text": "more"}]},
}


@dataclass(frozen=True)
class Served:
    """Where the reference server listens, or how it is started, and the era in which to speak."""

    era: UpstreamProtocol
    url: str = ""

    @asynccontextmanager
    async def ours(self, folder: Path) -> AsyncIterator[Upstream]:
        upstream: Upstream
        if self.url:
            upstream = McpHttpUpstream(self.url, era=self.era)
        else:
            upstream = McpStdioUpstream(Launch((sys.executable, str(SCRIPT)), {}, folder), era=self.era)
        try:
            yield upstream
        finally:
            await upstream.aclose()

    @asynccontextmanager
    async def official(self) -> AsyncIterator[Any]:
        from mcp.client.client import Client
        from mcp.client.stdio import StdioServerParameters
        from mcp.client.streamable_http import streamable_http_client

        server: Any = StdioServerParameters(command=sys.executable, args=[str(SCRIPT)])
        if self.url:
            server = streamable_http_client(self.url, max_sse_event_size=None)  # its default refuses 1 MB
        async with Client(server, mode="legacy" if self.era is UpstreamProtocol.SESSIONS else self.era.value) as client:
            yield client


WAYS = [(transport, era) for transport in ("http-json", "http-stream", "stdio") for era in UpstreamProtocol]


@pytest.fixture(scope="module", params=WAYS, ids=lambda way: f"{way[0]}-{way[1]}")
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    transport, era = request.param
    if transport == "stdio":
        yield Served(era)
        return
    with serve(reference.build().streamable_http_app(json_response=transport == "http-json")) as url:
        yield Served(era, f"{url}/mcp")


@pytest.fixture(scope="module")
async def upstream(served: Served, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Upstream]:
    """Our client, connected once: over pipes each connection starts a server."""
    async with served.ours(tmp_path_factory.mktemp("pipes")) as connected:
        yield connected


@dataclass(frozen=True)
class Reference:
    """What the SDK's client read of one way: its tools, each result by tool, and the failure."""

    tools: dict[str, Any]
    results: dict[str, Any]
    failed: Any


@pytest.fixture(scope="module")
async def reading(served: Served) -> Reference:
    """All of it over one connection: over pipes each starts a server."""
    async with served.official() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        results = {tool: await client.call_tool(tool, {}) for tool in wanted_of(served)}
        return Reference(tools, results, await client.call_tool("fails", {}))


def wanted_of(served: Served) -> dict[str, Any]:
    return {**EXPECTED, **(STATELESS_ONLY if served.era is UpstreamProtocol.STATELESS else {})}


async def run(upstream: Upstream, tool: str, arguments: dict[str, Any] | None = None) -> UpstreamReply:
    canonical = CanonicalArguments.of(arguments or {})
    return await upstream.call(
        UpstreamCall(tool=tool, arguments=canonical, principal="key", session_id="one", timeout_s=WAIT_S)
    )


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.requirement("GATE-4")
async def test_every_kind_of_result_arrives_whole_and_as_the_sdk_reads_it(
    served: Served, upstream: Upstream, reading: Reference
) -> None:
    wanted = wanted_of(served)
    for tool, value in wanted.items():
        reply = await run(upstream, tool)
        assert isinstance(reply, Returned), tool
        assert reply.value == value, tool
        assert msgspec.json.decode(reply.encoded) == value, tool
        assert reply.rows == (len(value["rows"]) if isinstance(value, dict) and "rows" in value else None)
    for tool, value in wanted.items():
        result = reading.results[tool]
        blocks = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content]
        assert value == reduced(result.structured_content, blocks, value), tool


def reduced(structured: Any, blocks: list[Any], ours: Any) -> Any:
    """What the SDK's client read, put together as ours documents it; `ours` tells only whether blocks were kept."""
    if structured is None:
        if not blocks:
            return None
        return blocks[0]["text"] if len(blocks) == 1 and blocks[0]["type"] == "text" else blocks
    kept = ours.get("_mcp_content") if isinstance(ours, dict) else None
    if kept is None:
        assert all(block["type"] == "text" for block in blocks)
        return structured
    assert kept == [block for block in blocks if block in kept]
    assert [block for block in blocks if block["type"] != "text"] == [
        block for block in kept if block["type"] != "text"
    ]
    whole = structured if isinstance(structured, dict) else {"structuredContent": structured}
    return {**whole, "_mcp_content": kept}


@pytest.mark.anyio
async def test_failures_are_typed_in_every_way(served: Served, upstream: Upstream, reading: Reference) -> None:
    failed = await run(upstream, "fails")
    assert isinstance(failed, ToolFailed)
    assert (failed.error.code, failed.error.message) == (QueryErrorCode.INTERNAL, "no such row")
    unknown = await run(upstream, "not_there")
    assert isinstance(unknown, Unanswered)
    assert "-32602" in unknown.error.message
    assert isinstance(await run(upstream, "text"), Returned)
    assert (reading.failed.is_error, reading.failed.content[0].text) == (True, "no such row")


@pytest.mark.anyio
async def test_tools_are_described_as_the_sdk_reads_them(
    served: Served, upstream: Upstream, reading: Reference
) -> None:
    official = reading.tools
    ours = {tool.name: tool for tool in await upstream.list_tools(timeout_s=WAIT_S)}
    assert ours.keys() == official.keys()
    for name, tool in ours.items():
        described = official[name].model_dump(mode="json", by_alias=True, exclude_none=True)
        assert (tool.description, tool.input_schema) == (described.get("description", ""), described["inputSchema"])
        assert (tool.output_schema, tool.annotations) == (described.get("outputSchema"), described.get("annotations"))
    assert ours["echo"].annotations == {"readOnlyHint": True}


@pytest.mark.anyio
async def test_arguments_that_a_server_wants_in_headers_are_there_too(served: Served, upstream: Upstream) -> None:
    given: list[dict[str, Any]] = [
        {"city": "Berlin", "open": True, "place": {"floor": 12}},
        {"city": " Zürich\n", "open": False},
        {"city": "=?base64?QQ==?="},
        {"city": "", "place": {}},
        {},
    ]
    await upstream.list_tools(timeout_s=WAIT_S)
    for arguments in given:
        reply = await run(upstream, "headed", arguments)
        assert isinstance(reply, Returned), (arguments, reply)
        assert reply.value == arguments


@pytest.mark.anyio
async def test_progress_and_log_lines_are_let_pass_and_a_changed_list_is_heard(
    served: Served, upstream: Upstream
) -> None:
    heard: list[str] = []
    upstream.on_tools_changed(lambda: heard.append("changed"))
    reply = await run(upstream, "progress")
    assert isinstance(reply, Returned)
    assert reply.value == "done"
    if (
        not served.url and served.era is UpstreamProtocol.SESSIONS
    ):  # the other ways have no stream on which it would come
        assert heard == ["changed"]


@pytest.mark.anyio
async def test_questions_of_the_server_are_refused(served: Served, upstream: Upstream) -> None:
    reply = await run(upstream, "asks")
    assert isinstance(reply, Returned)
    assert reply.value == "elicitation: refused, sampling: refused"
    if not served.url or served.era is UpstreamProtocol.STATELESS:  # else it goes on a stream that we do not open
        reply = await run(upstream, "asks_roots")
        assert isinstance(reply, Returned)
        assert reply.value == "roots: refused"


@pytest.mark.anyio
async def test_concurrent_calls_get_their_own_answers(served: Served, upstream: Upstream) -> None:
    import anyio

    answers: dict[int, Any] = {}

    async def one(number: int) -> None:
        tool = "large" if number % 10 == 0 else "echo"
        answers[number] = await run(upstream, tool, {"text": f"call {number}"})

    async with anyio.create_task_group() as group:
        for number in range(40):
            group.start_soon(one, number)
    for number, reply in answers.items():
        assert isinstance(reply, Returned)
        if number % 10:
            assert reply.value["text"] == f"call {number}"
        else:
            assert reply.value == {"rows": [LARGE]}
