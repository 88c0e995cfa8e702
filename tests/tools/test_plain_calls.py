"""A call that our gateway makes is answered as the protocol's library answers it, and without the library; any other
request reaches the library as it came."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import httpx2
import pytest
from starlette.responses import PlainTextResponse

from sentinel_rag.contracts.file_tools import FILE_TOOLS
from sentinel_rag.contracts.servers import READERS
from sentinel_rag.gateway.request_body import CanonicalArguments
from sentinel_rag.gateway.upstream import McpHttpUpstream, Returned, UpstreamCall
from sentinel_rag.tools.mcp_frame import FixedAnswers, PlainCalls, ToolAnswer, executor_app, fixed_answers
from sentinel_rag_testing.loopback import serve
from waiting import WAIT_S

TOKEN = "token-of-the-tests"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
BESIDE = {READERS: ["soc"], "traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}
HEADERS = {
    "Authorization": f"Bearer {TOKEN}",
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
    "MCP-Protocol-Version": "2026-07-28",
    "MCP-Method": "tools/call",
    "MCP-Name": "file_list",
}
ANSWERS = {
    "a value of every kind": ToolAnswer(
        {"rows": [[None, True, 1.5, -0.0, 2**70, {"k": None}], ("a", "b")], "none": None}, "two rows"
    ),
    "text of every kind": ToolAnswer({"t": "é \u2028 \x00 \ud800 </script> 𝒳"}, "é \u2028 \ud800"),
    "numbers that JSON lacks": ToolAnswer({"n": [math.nan, {"up": math.inf}, (-math.inf,)]}, "n"),
    "what is beside it": ToolAnswer({}, "", meta={"kept": {"x": None}, "left out": None}),
    "an error": ToolAnswer({"code": "not_found", "field": None}, "There is none.", True),
}


def message(**changes: Any) -> dict[str, Any]:
    params = {"name": "file_list", "arguments": {"path": "ä", "n": 1.0, "none": None}, "_meta": META}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params | changes.pop("params", {}), **changes}


def send(url: str, body: Any, **headers: str) -> httpx2.Response:
    sent = HEADERS | {name.replace("_", "-"): text for name, text in headers.items()}
    content = body if isinstance(body, bytes | Iterator) else json.dumps(body)
    return httpx2.post(f"{url}/mcp", content=content, headers=sent, timeout=WAIT_S)


def in_pieces(body: Any) -> Iterator[bytes]:
    """The same body without a length, which is no call that is answered without the library."""
    yield json.dumps(body).encode()


def test_the_answers_are_those_of_the_protocols_library() -> None:
    """Whole answers, what the tool was given, and what is told of a tool that raises."""
    given: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = []
    answering: list[ToolAnswer] = []

    async def call(name: str, arguments: Mapping[str, Any], meta: Mapping[str, Any]) -> ToolAnswer:
        given.append((name, arguments, dict(meta)))
        if not answering:
            raise RuntimeError("s3cret of the inside")
        return answering[0]

    with serve(executor_app("same", FILE_TOOLS, call, token=TOKEN)) as url:
        for request in (
            message(),
            message(id="a text", params={"arguments": {}}),
            message(params={"_meta": META | BESIDE}),
        ):
            for answer in [*ANSWERS.values(), None]:
                answering[:] = [] if answer is None else [answer]
                given.clear()
                plain, library = send(url, request), send(url, in_pieces(request))
                assert (plain.status_code, plain.headers["content-type"]) == (200, library.headers["content-type"])
                assert plain.json() == library.json()
                assert plain.content.isascii()
                assert given[0] == given[1]
    assert "s3cret" not in plain.text


def test_a_call_does_not_load_the_library() -> None:
    program = """
        import http.client, sys
        from sentinel_rag.tools.files import create_app
        from sentinel_rag_testing.loopback import serve
        token, body, *headers = sys.argv[1:]
        with serve(create_app(None, token=token)) as url:
            connection = http.client.HTTPConnection(url.removeprefix("http://"))
            connection.request("POST", "/mcp", body, dict(header.split("=", 1) for header in headers))
            print(connection.getresponse().read().decode())
            connection.close()
        print("mcp" in sys.modules)
    """
    headers = [f"{name}={text}" for name, text in HEADERS.items()]
    body = json.dumps(message(params={"arguments": {}}))
    command = [sys.executable, "-c", textwrap.dedent(program), TOKEN, body, *headers]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=True)
    answer, loaded = ran.stdout.splitlines()
    assert json.loads(answer)["result"]["structuredContent"] is not None
    assert loaded == "False"


OTHERS: dict[str, Any] = {
    "no JSON": b"{",
    "nothing": b"",
    "nested beyond measure": b"[" * 30_000,
    "a batch": [message()],
    "another protocol": message(jsonrpc="1.0"),
    "no id": message(id=None),
    "a truth as id": message(id=True),
    "another method": message(method="tools/list"),
    "something beside": message(more=1),
    "another tool than in the headers": message(params={"name": "file_read"}),
    "arguments that are none": message(params={"arguments": None}),
    "a list of arguments": message(params={"arguments": []}),
    "a task": message(params={"task": {}}),
    "no envelope": message(params={"_meta": {}}),
    "an envelope that is no object": message(params={"_meta": "x"}),
    "a wish for progress": message(params={"_meta": META | {"progressToken": 1}}),
    "an unknown word in the envelope": message(params={"_meta": META | {"x": 1}}),
    "another version in the envelope": message(
        params={"_meta": META | {"io.modelcontextprotocol/protocolVersion": "2025-11-25"}}
    ),
    "a client without version": message(
        params={"_meta": META | {"io.modelcontextprotocol/clientInfo": {"name": "tests"}}}
    ),
    "a client with a number as name": message(
        params={"_meta": META | {"io.modelcontextprotocol/clientInfo": {"name": 1, "version": "1"}}}
    ),
    "a client that can more": message(
        params={"_meta": META | {"io.modelcontextprotocol/clientCapabilities": {"sampling": {}}}}
    ),
    "more than a call needs": message(params={"arguments": {"path": "x" * 70_000}}),
}
OTHER_HEADERS = [
    {"MCP_Protocol_Version": "2025-11-25"},
    {"MCP_Method": "tools/list"},
    {"MCP_Name": "file_nothing"},
    {"MCP_Name": ""},
    {"MCP_Param_Path": "x"},
    {"Accept": "text/event-stream"},
    {"Content_Type": "text/plain"},
]


def test_any_other_request_goes_to_the_library_as_it_came() -> None:
    seen: list[bytes] = []
    called: list[str] = []

    async def library(scope: Any, receive: Any, send: Any) -> None:
        received, more = b"", True
        while more:
            part = await receive()
            received, more = received + part["body"], part["more_body"]
        seen.append(received)
        await PlainTextResponse("library")(scope, receive, send)

    async def call(name: str, _: Mapping[str, Any], __: Mapping[str, Any]) -> ToolAnswer:
        called.append(name)
        return ToolAnswer({}, "called")

    app = PlainCalls(library, call, ["file_list", "file_read"], {"name": "same", "version": "1"})
    with serve(app) as url:
        for what, body in OTHERS.items():
            assert send(url, body).text == "library", what
            assert seen.pop() == (body if isinstance(body, bytes) else json.dumps(body).encode()), what
        for headers in OTHER_HEADERS:
            assert send(url, message(), **headers).text == "library", headers
        twice = [*HEADERS.items(), ("MCP-Name", "file_list")]
        assert httpx2.post(f"{url}/mcp", content=json.dumps(message()), headers=twice).text == "library"
        assert httpx2.post(f"{url}/other", content=json.dumps(message()), headers=HEADERS).text == "library"
        assert called == []
        for body in (message(), message(params={"_meta": META | BESIDE})):
            assert send(url, body).json()["result"]["content"][0]["text"] == "called"
    assert called == ["file_list", "file_list"]


@pytest.mark.anyio
async def test_all_that_our_gateway_sends_is_answered_without_the_library() -> None:
    """Otherwise each call would be slow again, and nothing else would show it."""

    async def call(name: str, arguments: Mapping[str, Any], meta: Mapping[str, Any]) -> ToolAnswer:
        return ToolAnswer({"tool": name, "arguments": dict(arguments), "readers": meta[READERS]}, "called")

    about = {"name": "same", "version": "1"}
    tool = {"name": "file_list", "description": "", "inputSchema": {"type": "object"}}
    plain = PlainCalls(PlainTextResponse("library", 500), call, ["file_list"], about)
    with serve(FixedAnswers(plain, fixed_answers(about, [tool]))) as url:
        upstream = McpHttpUpstream(f"{url}/mcp", token=TOKEN, is_ours=True)
        try:
            assert [tool.name for tool in await upstream.list_tools(timeout_s=WAIT_S)] == ["file_list"]
            reply = await upstream.call(
                UpstreamCall(
                    tool="file_list",
                    arguments=CanonicalArguments.of({"path": "ä"}),
                    principal="key",
                    session_id="one",
                    timeout_s=WAIT_S,
                    readers=frozenset({"soc"}),
                )
            )
        finally:
            await upstream.aclose()
    assert isinstance(reply, Returned)
    assert reply.value == {"tool": "file_list", "arguments": {"path": "ä"}, "readers": ["soc"]}


@pytest.mark.parametrize("header", ["Authorization", "Host", "Origin"])
def test_a_call_is_let_in_by_the_door_alone(header: str) -> None:
    called: list[str] = []

    async def call(name: str, _: Mapping[str, Any], __: Mapping[str, Any]) -> ToolAnswer:
        called.append(name)
        return ToolAnswer({}, "called")

    with serve(executor_app("same", FILE_TOOLS, call, token=TOKEN)) as url:
        assert send(url, message(), **{header: "http://evil.example"}).status_code in (401, 403, 421)
    assert called == []
