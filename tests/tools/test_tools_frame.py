"""What tool servers share: the fixed answers are the library's, the door is closed, the first callers all get in."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import pytest
from mcp.client.session import ClientSession  # a test has no start-up to keep short
from mcp.client.streamable_http import streamable_http_client  # the same
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp

from sentinel_rag.contracts.file_tools import FILE_TOOLS
from sentinel_rag.knowledge.stores import LocalStore
from sentinel_rag.tools.files import create_app as files_app
from sentinel_rag.tools.knowledge import KnowledgeBase, OpenedStore
from sentinel_rag.tools.knowledge import create_app as knowledge_app
from sentinel_rag.tools.mcp_frame import FixedAnswers, Hints, ToolAnswer, executor_app
from sentinel_rag.tools.web import WebOptions
from sentinel_rag.tools.web import create_app as web_app
from sentinel_rag_testing.loopback import serve
from waiting import WAIT_S

pytestmark = pytest.mark.anyio

TOKEN = "token-of-the-tests"


def nothing_known() -> OpenedStore:
    folder = tempfile.TemporaryDirectory()
    store = LocalStore(Path(folder.name) / "knowledge.db")

    def close() -> None:
        store.close()
        folder.cleanup()

    return OpenedStore(store, None, close=close)


APPS: dict[str, Callable[[], ASGIApp]] = {
    "files": lambda: files_app(None, token=TOKEN),
    "web": lambda: web_app(WebOptions(), token=TOKEN),
    "knowledge": lambda: knowledge_app(KnowledgeBase(nothing_known), token=TOKEN),
}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


async def nothing(_: str, __: Any, ___: Any) -> ToolAnswer:
    return ToolAnswer({}, "nothing")


def post(url: str, method: str, body: Any, **headers: str) -> httpx2.Response:
    sent = {
        "Authorization": f"Bearer {TOKEN}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": "2026-07-28",
        "MCP-Method": method,
        **{name.replace("_", "-"): text for name, text in headers.items()},
    }
    content = body if isinstance(body, bytes | Iterator) else json.dumps(body)
    return httpx2.post(f"{url}/mcp", content=content, headers=sent, timeout=WAIT_S)


def in_pieces(body: Any) -> Iterator[bytes]:
    """The same body without a length, which is no request that is answered without the library."""
    yield json.dumps(body).encode()


def question(method: str, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": {"_meta": META}, **more}


@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
def test_the_fixed_answers_are_those_of_the_protocols_library(method: str) -> None:
    hints = Hints(read_only=False, destructive=True, idempotent=False, open_world=True)
    app = executor_app("same", FILE_TOOLS, nothing, token=TOKEN, hints=lambda _: hints)
    with serve(app) as url:
        answers = [post(url, method, question(method)), post(url, method, in_pieces(question(method)))]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
    assert answers[0].headers["content-type"] == answers[1].headers["content-type"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"[" * 30_000,
        question("server/discover"),
        question("tools/list", jsonrpc="1.0"),
        question("tools/list", id=None),
        question("tools/list", id=True),
        question("tools/list", id={"a": 1}),
        question("tools/list", params={"cursor": "x"}),
        question("tools/list", params=[]),
        [question("tools/list")],
        b" " * 70_000 + json.dumps(question("tools/list")).encode(),
    ],
    ids=lambda body: str(body)[:60],
)
async def test_any_other_question_goes_on_as_it_came(body: Any) -> None:
    seen: list[bytes] = []

    async def library(scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        received = message["body"]
        while message["more_body"]:
            message = await receive()
            received += message["body"]
        seen.append(received)
        await PlainTextResponse("library")(scope, receive, send)

    app: ASGIApp = FixedAnswers(library, {"tools/list": {"tools": []}})
    with serve(app) as url:
        answer = await anyio.to_thread.run_sync(lambda: post(url, "tools/list", body))
    assert answer.text == "library"
    assert seen == [body if isinstance(body, bytes) else json.dumps(body).encode()]


@pytest.mark.parametrize("headers", [{"MCP_Protocol_Version": "2025-11-25"}, {"MCP_Method": "tools/call"}])
def test_another_protocol_or_method_is_the_librarys(headers: dict[str, str]) -> None:
    with serve(FixedAnswers(PlainTextResponse("library"), {"tools/list": {}})) as url:
        assert post(url, "tools/list", question("tools/list"), **headers).text == "library"


@pytest.mark.parametrize("name", APPS)
@pytest.mark.parametrize("method", ["server/discover", "tools/list", "tools/call"])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Host": "evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
    ],
    ids=["token", "host", "origin"],
)
def test_nobody_learns_anything_without_the_token_and_from_elsewhere(
    name: str, method: str, headers: dict[str, str], status: int
) -> None:
    with serve(APPS[name]()) as url:
        answer = post(url, method, question(method), **headers)
        health = httpx2.get(f"{url}/healthz")
    assert answer.status_code == status
    assert "file_read" not in answer.text
    assert "web_search" not in answer.text
    assert "search_knowledge_base" not in answer.text
    assert health.json() == {"status": "ok", "server": name}


@pytest.mark.parametrize("name", APPS)
async def test_the_first_callers_all_get_an_answer_while_the_library_loads(name: str) -> None:
    tool = {"files": "file_list", "web": "web_search", "knowledge": "search_knowledge_base"}[name]
    arguments = {"files": {}, "web": {"query": "panda"}, "knowledge": {"query": "ransomware"}}[name]
    answers: list[Any] = []

    async def one(url: str) -> None:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=WAIT_S) as http,
            streamable_http_client(f"{url}/mcp", http_client=http) as streams,
            ClientSession(streams[0], streams[1]) as client,
        ):
            await client.initialize()
            answers.append(await client.call_tool(tool, arguments))

    with serve(APPS[name]()) as url:
        async with anyio.create_task_group() as group:
            for _ in range(6):
                group.start_soon(one, url)
    assert len(answers) == 6
    assert not any(answer.is_error for answer in answers)


async def test_a_tools_fault_is_told_by_an_id_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    from sentinel_rag.tools.web.fetching import PageFetcher
    from sentinel_rag.tools.web.web_tools import WebTools

    class Broken:
        async def search(self, query: str, *, limit: int) -> Any:
            raise RuntimeError("s3cret of the inside")

        async def close(self) -> None: ...

    answer = await WebTools(Broken(), PageFetcher()).call("web_search", {"query": "x"})
    assert answer.is_error
    assert answer.value["code"] == "internal"
    assert "s3cret" not in json.dumps(answer.value)
    assert "s3cret" in caplog.text
