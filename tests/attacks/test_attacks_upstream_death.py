"""Attacker controls: when and how a tool server dies, or what it answers.

Wanted: a gateway that hangs, a call that runs twice, an empty success, an answer of one call given to another. Each
ends in a typed error inside the deadline, with an outcome on record, and the server saw the call once.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support import fork_server

from sentinel_rag.audit import Database, Journal, JournalReader
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.policy import Policy, parse_policy
from sentinel_rag.gateway.request_body import CanonicalArguments
from sentinel_rag.gateway.upstream import McpHttpUpstream, Unanswered, UpstreamCall, UpstreamReply, UpstreamTool
from sentinel_rag.gateway.upstream.mcp_messages import UpstreamProtocol
from sentinel_rag_testing.fake_tool_server import SESSIONS, Answers, Dies, FakeToolServer, Waits
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway
from waiting import WAIT_S


@contextmanager
def deaf_server(replies: list[bytes | Callable[[bytes], bytes]]) -> Iterator[tuple[str, list[bytes]]]:
    """Takes one request a connection, sends the next of `replies` and hangs up; only its tools it lists properly."""
    seen: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                request = piece = connection.recv(65_536)
                while piece and (
                    b"\r\n\r\n" not in request or len(request.partition(b"\r\n\r\n")[2]) < _length(request)
                ):
                    request += (piece := connection.recv(65_536))
                if not piece:
                    continue  # the client left before it had said all
                if b'"tools/list"' in request:
                    connection.sendall(_listing(request))
                    continue
                seen.append(request)
                reply = replies.pop(0) if replies else b""
                connection.sendall(reply if isinstance(reply, bytes) else reply(request))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", seen
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def _listing(request: bytes) -> bytes:
    """Says that it ends the connection: else the call may take that in the moment before it is closed."""
    listing = _answer(request, {"tools": [{"name": "list_tables"}]})
    return listing.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)


def _answer(request: bytes, result: dict[str, Any]) -> bytes:
    asked = json.loads(request.partition(b"\r\n\r\n")[2])
    body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def _length(request: bytes) -> int:
    for line in request.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: ping\n\ndata: {",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ],
    ids=["at once", "in the status", "in the body", "in a chunk", "in a stream", "not HTTP", "empty success"],
)
@pytest.mark.requirement("GATE-1")
def test_a_server_that_hangs_up_is_502_and_was_asked_once(
    shipped_policy: Policy, executor: FakeToolServer, tmp_path: Path, reply: bytes
) -> None:
    with deaf_server([reply]) as (url, seen):
        upstream = McpHttpUpstream(url, era=UpstreamProtocol.STATELESS)
        with running_gateway(shipped_policy, tmp_path, executor, upstreams={"sentinel": upstream}) as gateway:
            answer = gateway.call("list_tables", {})
            assert (answer.status, answer.body["reason"]) == (502, "upstream_failed")
            outcome = gateway.last_record()
            assert (outcome["kind"], outcome["status"], outcome["audit_id"]) == (
                "outcome",
                "error",
                answer.body["audit_id"],
            )
        assert len(seen) == 1


def test_a_pooled_connection_that_the_server_closed_is_not_used_again(
    shipped_policy: Policy, executor: FakeToolServer, tmp_path: Path
) -> None:
    def answer(number: int) -> Callable[[bytes], bytes]:
        return lambda request: _answer(request, {"content": [], "structuredContent": {"n": number}})

    with deaf_server([answer(number) for number in (1, 2, 3)]) as (url, seen):
        upstream = McpHttpUpstream(url, era=UpstreamProtocol.STATELESS)
        with running_gateway(shipped_policy, tmp_path, executor, upstreams={"sentinel": upstream}) as gateway:
            for number in (1, 2, 3):
                assert gateway.call("list_tables", {}).body["result"] == {"n": number}
        assert len(seen) == 3


@pytest.mark.anyio
async def test_a_server_that_was_starting_is_asked_again_for_its_protocol() -> None:
    starting = b"HTTP/1.1 503 Starting\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    nothing = CanonicalArguments.of({})
    with deaf_server([starting, starting]) as (url, seen):
        upstream = McpHttpUpstream(url)
        for _ in range(2):
            reply = await upstream.call(
                UpstreamCall(tool="list_tables", arguments=nothing, principal="key", session_id="one", timeout_s=WAIT_S)
            )
            assert isinstance(reply, Unanswered)
            assert (reply.reason, reply.may_have_run) == (Reason.UPSTREAM_FAILED, False)
        await upstream.aclose()
        assert [b"server/discover" in request for request in seen] == [True, True]


def test_a_connection_that_dies_in_the_answer_is_502_and_the_next_call_works(gateway: RunningGateway) -> None:
    gateway.executor.on("list_tables", Dies(), Answers({"rows": []}))
    assert gateway.call("list_tables", {}).status == 502
    assert gateway.call("list_tables", {}).body["result"] == {"rows": []}
    assert len(gateway.executor.calls) == 2


def test_nobody_listening_is_502(shipped_policy: Policy, executor: FakeToolServer, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    upstream = McpHttpUpstream(f"http://127.0.0.1:{port}/mcp")
    with running_gateway(shipped_policy, tmp_path, executor, upstreams={"sentinel": upstream}) as gateway:
        answer = gateway.call("list_tables", {})
        assert (answer.status, answer.body["error"]["code"]) == (502, "unavailable")
        assert answer.body["error"]["retry_possible"]
        assert gateway.request("GET", "/v1/tools", key=gateway.key).body["tools"] == []


@pytest.mark.parametrize(("effect", "code", "retry"), [("read", "unavailable", True), ("write", "internal", False)])
def test_a_call_that_may_have_changed_something_is_not_called_repeatable(
    executor: FakeToolServer, tmp_path: Path, effect: str, code: str, retry: bool
) -> None:
    policy = parse_policy(
        f"tools: [{{name: list_tables, effect: {effect}, "
        'taint_rules: [{rule_id: any, condition: "true", taint_level: LOW}]}]'
    )
    executor.on("list_tables", Dies())
    with running_gateway(policy, tmp_path, executor) as gateway:
        error = gateway.call("list_tables", {}).body["error"]
        assert (error["code"], error["retry_possible"]) == (code, retry)
    assert len(executor.calls) == 1


def test_a_forgotten_session_is_opened_again_and_the_call_runs_once(shipped_policy: Policy, tmp_path: Path) -> None:
    with (
        FakeToolServer(eras=(SESSIONS,)).running() as executor,
        running_gateway(shipped_policy, tmp_path, executor) as gateway,
    ):
        assert gateway.call("list_tables", {}).status == 200
        executor.forget_sessions = 1
        assert gateway.call("list_tables", {}).status == 200
        assert len(executor.calls) == 2
        executor.forget_sessions = 100
        answer = gateway.call("list_tables", {})
        assert (answer.status, answer.body["reason"]) == (502, "upstream_failed")
        assert executor.forget_sessions == 98
        assert gateway.request("GET", "/v1/tools", key=gateway.key).body["tools"] == []
        executor.forget_sessions = 0
        assert gateway.call("list_tables", {}).status == 200
        assert len(executor.calls) == 3


def test_each_gateway_session_has_its_own_upstream_session(shipped_policy: Policy, tmp_path: Path) -> None:
    with (
        FakeToolServer(eras=(SESSIONS,)).running() as executor,
        running_gateway(shipped_policy, tmp_path, executor) as gateway,
    ):
        for session in ("one", "two", "one"):
            assert gateway.call("list_tables", {}, session_id=session).status == 200
        first, second, third = [call.headers["mcp-session-id"] for call in executor.calls]
        assert first == third != second


INTERCEPTOR = """
import sys
from pathlib import Path
from sentinel_rag.gateway.policy import load_policy
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import running_gateway

executor = FakeToolServer()
executor._url = sys.argv[1]
with running_gateway(load_policy(Path(sys.argv[2])), Path(sys.argv[3]), executor) as gateway:
    print(gateway.url, flush=True)
    gateway.call("query_incidents", {"owner": "me"})
"""


@pytest.mark.requirement("AUD-1")
def test_kill_9_of_the_interceptor_in_a_call_leaves_a_provable_unknown(
    executor: FakeToolServer, tmp_path: Path
) -> None:
    executor.token = None
    release = threading.Event()
    executor.on("query_incidents", Waits(release))
    config = Path(__file__).parents[2] / "config" / "sentinel_config.yaml"
    process = fork_server.Process(
        [sys.executable, "-c", INTERCEPTOR, executor.url, str(config), str(tmp_path)], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline().startswith(b"http")
        assert executor.arrived.acquire(timeout=WAIT_S)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        release.set()
    reader = JournalReader(tmp_path / "journal.sqlite")
    # The tools of the other servers are pinned meanwhile, before or after it.
    (intent,) = [entry for entry in reader.read() if entry.kind == "intent"]
    assert (intent.record["arguments"], intent.outcome) == ({"owner": "me"}, "unknown")
    assert intent.record["context_after"] == {"sensitivity": "MEDIUM", "integrity": "UNTRUSTED"}
    with Database(tmp_path / "journal.sqlite") as database:
        assert Journal(database).interrupted == 1
    assert [entry.kind for entry in reader.find(intent.audit_id)] == ["intent", "outcome"]
    assert reader.verify().intact


class Raises:
    """An upstream that breaks the promise of its port."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def call(self, call: UpstreamCall) -> UpstreamReply:
        raise self.error

    async def list_tools(self, *, timeout_s: float) -> tuple[UpstreamTool, ...]:
        return (UpstreamTool("list_tables", "", {}),)

    def on_tools_changed(self, listener: Callable[[], None]) -> None:
        return None

    async def end_session(self, *, principal: str, session_id: str) -> None:
        return None

    async def aclose(self) -> None:
        return None


@pytest.mark.parametrize("error", [RuntimeError("canary"), asyncio.CancelledError()], ids=["bug", "shutdown"])
def test_a_call_that_ends_in_no_known_way_is_on_record_as_unknown(
    shipped_policy: Policy, executor: FakeToolServer, tmp_path: Path, error: BaseException
) -> None:
    with running_gateway(shipped_policy, tmp_path, executor, upstreams={"sentinel": Raises(error)}) as gateway:
        with contextlib.suppress(http.client.HTTPException, ConnectionError):
            answer = gateway.call("list_tables", {})
            assert answer.status == 500
            assert b"canary" not in answer.content
        intent, outcome = gateway.records()[-2:]
        assert (intent["kind"], outcome["kind"], outcome["status"]) == ("intent", "outcome", "unknown")
        assert intent["audit_id"] == outcome["audit_id"]
