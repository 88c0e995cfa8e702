"""`sentinel mcp`, a process of its own before a gateway on loopback: the same tools on standard input and output."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support import fork_server
from tests.support.fork_server import SENTINEL

from sentinel_rag.gateway.policy import Policy
from sentinel_rag.gateway.store import Scope
from sentinel_rag_testing.fake_tool_server import Answers, FakeToolServer, Waits
from sentinel_rag_testing.loopback import serve
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway
from waiting import WAIT_S

pytestmark = pytest.mark.requirement("GATE-5")
SESSIONS, STATELESS = "2025-11-25", "2026-07-28"


@pytest.fixture(scope="module")
def executor() -> Iterator[FakeToolServer]:
    with FakeToolServer(token="upstream-token").running() as running:
        yield running


@pytest.fixture(scope="module")
def gateway(
    shipped_policy: Policy, executor: FakeToolServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningGateway]:
    with running_gateway(shipped_policy, tmp_path_factory.mktemp("state"), executor) as running:
        yield running


def environment(home: Path, **settings: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SENTINEL_", "AZURE_"))}
    return {**kept, "SENTINEL_HOME": str(home), **settings}


@dataclass(frozen=True)
class Served:
    """The process as the client that started it has it."""

    process: subprocess.Popen[bytes]

    def send(self, *messages: Any) -> None:
        assert self.process.stdin is not None
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """The next message. Whatever is no JSON-RPC on standard output fails the test."""
        assert self.process.stdout is not None
        message: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert message["jsonrpc"] == "2.0"
        return message

    def ask(self, request_id: Any, method: str, params: Any) -> dict[str, Any]:
        self.send(asked(request_id, method, params))
        answer = self.receive()
        assert answer["id"] == request_id
        return answer

    def end(self) -> str:
        """Close its input; what it said to people."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.stdout is not None
        assert self.process.stdout.read() == b""
        assert self.process.wait(WAIT_S) == 0
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()


def asked(request_id: Any, method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


@contextmanager
def serving(home: Path, url: str, key: str) -> Iterator[Served]:
    with fork_server.Process(
        [SENTINEL, "mcp"],
        env=environment(home, SENTINEL_URL=url, SENTINEL_API_KEY=key),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        watchdog = threading.Timer(WAIT_S, process.kill)  # a test that waits for a line that does not come
        watchdog.start()
        try:
            yield Served(process)
        finally:
            watchdog.cancel()
            process.kill()


@pytest.mark.anyio
@pytest.mark.parametrize("era", [SESSIONS, STATELESS])
async def test_the_official_client_gets_the_same_tools_and_results(
    gateway: RunningGateway, executor: FakeToolServer, tmp_path: Path, era: str
) -> None:
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters

    executor.on("query_incidents", Answers({"rows": [{"number": 55, "title": "é\u2028 \\n"}]}))
    key = gateway.state.keys.create([Scope.EXECUTE])[0]  # one that has read nothing yet
    settings = environment(tmp_path, SENTINEL_URL=gateway.url, SENTINEL_API_KEY=key)
    server = StdioServerParameters(command=str(SENTINEL), args=["mcp"], env=settings)
    async with Client(server, mode="legacy" if era == SESSIONS else era) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        result = await client.call_tool("query_incidents", {"limit": 1})
        denied = await client.call_tool("run_kql_query", {"template": "raw_signins"})
    assert {tool["name"] for tool in gateway.request("GET", "/v1/tools", key=gateway.key).body["tools"]} == names
    assert result.structured_content == {"rows": [{"number": 55, "title": "é\u2028 \\n"}]}
    assert result.meta["sentinel-rag/label"] == {"sensitivity": "MEDIUM", "integrity": "UNTRUSTED"}
    assert (denied.is_error, denied.structured_content["reason"]) == (True, "approval_required")


def test_a_session_from_its_opening_to_its_end(
    gateway: RunningGateway, executor: FakeToolServer, tmp_path: Path
) -> None:
    """Progress, cancellation, a question to the client, and everything that is wrong, in one process."""
    release = threading.Event()
    capabilities = {"elicitation": {"form": {}}}
    with serving(tmp_path, gateway.url, gateway.key) as served:
        opened = served.ask(0, "initialize", {"protocolVersion": SESSIONS, "capabilities": capabilities})
        assert opened["result"]["protocolVersion"] == SESSIONS
        served.send({"jsonrpc": "2.0", "method": "notifications/initialized"}, b"", b"  ")
        assert served.ask("1", "ping", {})["result"] == {}

        # What is wrong has an answer, and the next message is read as if nothing had been.
        served.send(b'{"jsonrpc":"2.0","id":2,"method":"ping","method":"ping"}')
        twice = served.receive()
        assert (twice["id"], twice["error"]["code"]) == (2, -32700)
        served.send(b"{")
        assert served.receive()["error"]["code"] == -32700
        served.send(asked(3, "ping", {"long": "x" * 1_100_000}))
        assert "at most 1000000 bytes" in served.receive()["error"]["message"]
        assert served.ask(4, "resources/list", {})["error"]["code"] == -32601

        # A call that is cancelled while another one runs.
        executor.on("list_tables", Waits(release))
        served.send(asked(5, "tools/call", {"name": "list_tables", "_meta": {"progressToken": "p"}}))
        assert served.receive()["params"]["progressToken"] == "p"
        served.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})
        while (message := served.receive()).get("method") == "notifications/progress":
            pass
        assert message["result"]["structuredContent"]["reason"] == "caller_left"
        release.set()

        # The question travels to the client; its answer decides nothing, the approver does.
        needs = {"name": "run_kql_query", "arguments": {"template": "raw_signins"}}
        served.send(asked(6, "tools/call", needs))
        question = served.receive()
        assert question["method"] == "elicitation/create"
        page = gateway.request("GET", "/v1/approvals?state=pending", key=gateway.approver).body["approvals"]
        ids = [each["approval_id"] for each in page]
        [approval_id] = [each for each in ids if each in question["params"]["message"]]
        path = f"/v1/approvals/{approval_id}/approve"
        assert gateway.request("POST", path, key=gateway.approver, body=b"{}").status == 200
        served.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}})
        passed = served.receive()
        assert (passed["id"], passed["result"]["isError"]) == (6, False)
        assert served.end() == ""
    closed = gateway.last_record()
    assert (closed["kind"], closed["change"]) == ("session", "closed")


def test_a_request_that_ends_takes_no_other_ones_cancellation_with_it(
    gateway: RunningGateway, executor: FakeToolServer, tmp_path: Path
) -> None:
    """Two requests under one id, which nobody forbids without sessions: one is answered, the other cancelled."""
    first, second = threading.Event(), threading.Event()
    meta = {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    with serving(tmp_path, gateway.url, gateway.key) as served:
        executor.on("list_tables", Waits(first), Waits(second))
        before = len(executor.calls)
        call = asked(5, "tools/call", {"name": "list_tables", "_meta": meta})
        served.send(call, call)
        while len(executor.calls) < before + 2:
            served.ask("d", "server/discover", {"_meta": meta})
        first.set()
        assert served.receive()["id"] == 5
        served.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})
        while gateway.last_record().get("reason") != "caller_left":
            served.ask("d", "server/discover", {"_meta": meta})
        second.set()
        assert served.end() == ""


def test_without_sessions_a_cancelled_call_has_no_answer(
    gateway: RunningGateway, executor: FakeToolServer, tmp_path: Path
) -> None:
    release = threading.Event()
    meta = {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    with serving(tmp_path, gateway.url, gateway.key) as served:
        executor.on("list_tables", Waits(release))
        call = {"name": "list_tables", "_meta": {**meta, "progressToken": "p"}}
        served.send(asked(5, "tools/call", call))
        assert served.receive()["method"] == "notifications/progress"
        served.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})
        discovered = served.ask("d", "server/discover", {"_meta": meta})
        assert STATELESS in discovered["result"]["supportedVersions"]
        while gateway.last_record().get("reason") != "caller_left":
            served.ask("d", "server/discover", {"_meta": meta})
        release.set()
        # Names that are no plain text for a header arrive as they are: it is the policy that does not know them.
        for name in ("größe", " blank ", "=?base64?x?="):
            refused = served.ask(name, "tools/call", {"name": name, "_meta": meta})
            assert refused["result"]["structuredContent"]["reason"] == "unknown_tool"
            assert gateway.last_record()["requested_tool"] == name
        assert served.end() == ""


def test_a_wrong_key_and_a_gateway_that_is_away_are_told_to_the_client(gateway: RunningGateway, tmp_path: Path) -> None:
    with serving(tmp_path, gateway.url, "sr_000000000000_wrong-secret") as served:
        refused = served.ask(1, "initialize", {"protocolVersion": SESSIONS})
        assert refused["error"]["message"] == "A valid key is required, as a bearer token or in X-API-Key."
        assert refused["error"]["data"]["reason"] == "unauthenticated"
        assert served.end() == ""
    with serving(tmp_path, "http://127.0.0.1:9", gateway.key) as served:
        away = served.ask(1, "initialize", {"protocolVersion": SESSIONS})
        assert away["error"]["message"] == "The gateway did not answer; run: sentinel status"
        assert served.end() == ""


def test_a_gateway_that_dies_in_its_answer_ends_no_wait_without_a_word(tmp_path: Path) -> None:
    """Each request gets an error, whether the answer was to be one message or a stream."""

    async def dying(scope: Any, receive: Any, send: Any) -> None:
        kind = b"text/event-stream" if b"/list" in (await receive())["body"] else b"application/json"
        headers = [(b"content-type", kind), (b"transfer-encoding", b"chunked")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        part = (
            b'data: {"jsonrpc":"2.0","method":"notifications/progress"}\n\ndata: {"json' if b"event" in kind else b"{"
        )
        await send({"type": "http.response.body", "body": part, "more_body": True})
        raise SystemError("the gateway dies")

    with serve(dying) as url, serving(tmp_path, url, "k" * 20) as served:
        served.send(asked(1, "tools/list", {}))
        assert served.receive()["method"] == "notifications/progress"
        for request_id in (1, 2):
            if request_id == 2:
                served.send(asked(2, "ping", {}))
            died = served.receive()
            assert (died["id"], died["error"]["code"]) == (request_id, -32603)
        assert served.end() == ""


@pytest.mark.parametrize(
    ("arguments", "settings", "said"),
    [
        (["--workspace", "x"], {"SENTINEL_URL": "http://127.0.0.1:9", "SENTINEL_API_KEY": "k" * 20}, "has its own"),
        (
            [],
            {"SENTINEL_URL": "http://127.0.0.1:9", "SENTINEL_APPROVER_KEY": "k" * 20},
            "sentinel keys create --name my-editor --scope execute",
        ),
        (["--workspace", "nosuch"], {}, "There is no workspace 'nosuch'"),
    ],
)
def test_what_cannot_be_served_is_said_to_people_and_not_on_the_wire(
    tmp_path: Path,
    clean_environment: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    settings: dict[str, str],
    said: str,
) -> None:
    from sentinel_rag.surfaces.cli import main

    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert main(["mcp", *arguments]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""
