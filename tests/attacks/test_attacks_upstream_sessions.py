"""Attacker controls: one of several users of the same tool server, or what a server with sessions answers.

Wanted: another user's upstream session, an end to another user's call, a success where the server has forgotten what
it was told, an answer that belongs to another call, a result that was cut on the way.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.policy import Policy
from sentinel_rag.gateway.request_body import CanonicalArguments
from sentinel_rag.gateway.store import Scope
from sentinel_rag.gateway.upstream import (
    McpHttpUpstream,
    Returned,
    Unanswered,
    UpstreamCall,
    UpstreamProtocol,
    UpstreamReply,
)
from sentinel_rag_testing.fake_tool_server import SESSIONS, Answers, AnswersText, FakeToolServer, Sends, Waits
from sentinel_rag_testing.loopback import serve
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway
from waiting import WAIT_S


async def ask(
    upstream: McpHttpUpstream, tool: str, *, principal: str = "key", session: str = "one", timeout_s: float = 30
) -> UpstreamReply:
    nothing = CanonicalArguments.of({})
    return await upstream.call(
        UpstreamCall(tool=tool, arguments=nothing, principal=principal, session_id=session, timeout_s=timeout_s)
    )


@pytest.mark.anyio
async def test_no_upstream_session_serves_two_principals_even_under_one_name() -> None:
    with FakeToolServer(eras=(SESSIONS,)).running() as executor:
        upstream = McpHttpUpstream(executor.url)
        async with anyio.create_task_group() as group:
            for principal in ("anna", "ben", "anna", "ben"):
                group.start_soon(lambda who: ask(upstream, "list_tables", principal=who), principal)
        for principal in ("anna", "ben"):
            await ask(upstream, "list_tables", principal=principal)
        await upstream.aclose()
        *_, anna, ben = [call.headers["mcp-session-id"] for call in executor.calls]
        assert anna != ben
        assert {call.headers["mcp-session-id"] for call in executor.calls} == {anna, ben}


def test_closing_a_session_ends_its_upstream_session_and_no_other(shipped_policy: Policy, tmp_path: Path) -> None:
    with (
        FakeToolServer(eras=(SESSIONS,)).running() as executor,
        running_gateway(shipped_policy, tmp_path, executor) as gateway,
    ):
        other = gateway.state.keys.create([Scope.EXECUTE], name="other")[0]
        gateway.call("list_tables", {}, session_id="mine")
        gateway.call("list_tables", {}, session_id="theirs", key=other)
        mine, theirs = [call.headers["mcp-session-id"] for call in executor.calls]
        assert gateway.request("DELETE", "/v1/sessions/theirs", key=gateway.key).status == 404
        assert executor.ended_sessions == []
        assert gateway.request("DELETE", "/v1/sessions/mine", key=gateway.key).status == 204
        assert executor.ended_sessions == [mine]
        assert gateway.call("list_tables", {}, session_id="theirs", key=other).status == 200
        assert executor.calls[-1].headers["mcp-session-id"] == theirs


@pytest.mark.anyio
async def test_giving_up_one_call_names_that_call_and_harms_no_other() -> None:
    release = threading.Event()
    with FakeToolServer(eras=(SESSIONS,)).running() as executor:
        executor.on("list_tables", Waits(release, {"n": 1}))
        executor.on("query_alerts", Waits(release, {"n": 2}))
        upstream = McpHttpUpstream(executor.url)
        kept: list[Any] = []

        async def keep(principal: str) -> None:
            kept.append(await ask(upstream, "query_alerts", principal=principal))

        async with anyio.create_task_group() as group:
            group.start_soon(keep, "key")
            group.start_soon(keep, "another")
            while len(executor.calls) < 2:
                await anyio.sleep(0.001)
            late = await ask(upstream, "list_tables", timeout_s=1)
            assert isinstance(late, Unanswered)
            assert (late.reason, late.may_have_run) == (Reason.UPSTREAM_TIMEOUT, True)
            release.set()
        assert [reply.value for reply in kept] == [{"n": 2}, {"n": 2}]
        given_up = json.loads(executor.calls[2].body)["id"]
        session = executor.calls[2].headers["mcp-session-id"]
        cancelled = [note for note in executor.notifications if note["method"] == "notifications/cancelled"]
        assert [(note["params"]["requestId"], note["session"]) for note in cancelled] == [(given_up, session)]
        await upstream.aclose()


def slow_to_open(release: threading.Event) -> Starlette:
    """A server that opens its first session at once and each further one only after `release`."""
    opened: list[str] = []

    async def receive(request: Request) -> Response:
        message = await request.json()
        if "id" not in message:
            return Response(status_code=202)
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}}
        if message["method"] != "initialize":
            return JSONResponse(answer)
        if opened:
            await anyio.to_thread.run_sync(release.wait, WAIT_S)
        opened.append(f"session-{len(opened)}")
        return JSONResponse(answer, headers={"Mcp-Session-Id": opened[-1]})

    return Starlette(routes=[Route("/mcp", receive, methods=["POST"])])


@pytest.mark.anyio
async def test_one_owners_slow_opening_keeps_nobody_else() -> None:
    release = threading.Event()
    with serve(slow_to_open(release)) as url:
        upstream = McpHttpUpstream(f"{url}/mcp", era=UpstreamProtocol.SESSIONS)
        assert isinstance(await ask(upstream, "list_tables", principal="ben"), Returned)
        async with anyio.create_task_group() as group:
            waiting: list[UpstreamReply] = []

            async def wait() -> None:
                waiting.append(await ask(upstream, "list_tables", principal="anna", timeout_s=0.2))
                release.set()

            group.start_soon(wait)
            while not release.is_set():
                assert isinstance(await ask(upstream, "list_tables", principal="ben"), Returned)
        (late,) = waiting
        assert isinstance(late, Unanswered)
        assert (late.reason, late.may_have_run) == (Reason.UPSTREAM_TIMEOUT, False)
        await upstream.aclose()


def wrong_about_sessions(known: set[str], calls: list[str]) -> Starlette:
    """A server that answers 400 where the protocol wants 404; clearing `known` is its restart."""

    async def receive(request: Request) -> Response:
        message = await request.json()
        if "id" not in message:
            return Response(status_code=202)
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}}
        if message["method"] == "initialize":
            session = f"session-{len(calls)}-{len(known)}"
            known.add(session)
            return JSONResponse(answer, headers={"Mcp-Session-Id": session})
        calls.append(message["method"])
        if request.headers["mcp-session-id"] not in known:
            error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "no valid session"}}
            return JSONResponse(error, status_code=400)
        return JSONResponse(answer)

    return Starlette(routes=[Route("/mcp", receive, methods=["POST"])])


@pytest.mark.anyio
async def test_a_restarted_server_that_misstates_it_fails_one_call_and_not_all() -> None:
    known: set[str] = set()
    calls: list[str] = []
    with serve(wrong_about_sessions(known, calls)) as url:
        upstream = McpHttpUpstream(f"{url}/mcp", era=UpstreamProtocol.SESSIONS)
        assert isinstance(await ask(upstream, "list_tables"), Returned)
        known.clear()
        lost = await ask(upstream, "list_tables")
        assert isinstance(lost, Unanswered)
        assert (lost.reason, lost.may_have_run) == (Reason.UPSTREAM_FAILED, True)
        assert isinstance(await ask(upstream, "list_tables"), Returned)
        assert calls == ["tools/call"] * 3
        await upstream.aclose()


WRONG_SUCCESSES = [
    Sends(b"", status=202),
    Sends(b"", status=200),
    Sends(b'{"jsonrpc": "2.0", "id": %d, "result": {}}'),
    Sends(b'{"jsonrpc": "2.0", "id": %d, "result": null}'),
    Sends(b'{"jsonrpc": "2.0", "id": %d, "result": {"content": "text"}}'),
    Sends(b'{"jsonrpc": "2.0", "id": 900%d, "result": {"content": []}}'),
    Sends(b'{"jsonrpc": "2.0", "id": "%d", "result": {"content": []}}'),
    Sends(b'{"jsonrpc": "2.0", "result": {"content": []}}'),
    Sends(b'[{"jsonrpc": "2.0", "id": %d, "result": {"content": []}}]'),
    Sends(b'data: {"jsonrpc": "2.0", "id": 900%d, "result": {"content": []}}\n\n', content_type="text/event-stream"),
    Sends(b"<html>200 OK</html>", content_type="text/html"),
]


@pytest.mark.parametrize("answer", WRONG_SUCCESSES, ids=lambda answer: answer.body.decode()[:60])
def test_a_200_that_is_no_result_of_this_call_is_502(
    executor: FakeToolServer, shipped_policy: Policy, tmp_path: Path, answer: Sends
) -> None:
    upstream = McpHttpUpstream(executor.url, token=executor.token)
    with running_gateway(shipped_policy, tmp_path, executor, upstreams={"sentinel": upstream}) as gateway:
        assert gateway.call("query_alerts", {}).status == 200
        following = json.loads(executor.calls[-1].body)["id"] + 1
        body = answer.body % following if b"%d" in answer.body else answer.body
        executor.on("list_tables", Sends(body, answer.status, answer.content_type))
        refused = gateway.call("list_tables", {})
        assert (refused.status, refused.body["reason"]) == (502, "upstream_failed")
        assert json.loads(executor.calls[-1].body)["id"] == following
        assert (gateway.last_record()["kind"], gateway.last_record()["status"]) == ("outcome", "error")
        assert [call.tool for call in executor.calls] == ["query_alerts", "list_tables"]


def test_an_error_inside_a_200_is_no_success(gateway: RunningGateway) -> None:
    gateway.executor.on("list_tables", AnswersText(("the table is gone",), is_error=True))
    answer = gateway.call("list_tables", {})
    assert (answer.status, answer.body["status"], answer.body["error"]["message"]) == (
        502,
        "error",
        "the table is gone",
    )
    assert gateway.last_record()["status"] == "error"


def test_a_result_of_three_megabytes_arrives_whole(gateway: RunningGateway) -> None:
    rows = [{"n": number, "text": "é" * 250} for number in range(1_500)]
    gateway.executor.on("list_tables", Answers({"rows": rows}))
    answer = gateway.call("list_tables", {})
    assert answer.body["result"] == {"rows": rows}
    assert gateway.last_record()["rows"] == 1_500


def test_no_header_of_the_caller_goes_upstream(gateway: RunningGateway) -> None:
    body = json.dumps({"session_id": "session-1", "tool_name": "list_tables", "args": {}}).encode()
    sent = {
        "Authorization": "Bearer canary",
        "Cookie": "session=canary",
        "Mcp-Session-Id": "canary",
        "Mcp-Method": "canary",
        "X-Forwarded-For": "canary",
        "Traceparent": "canary",
    }
    answer = gateway.request("POST", "/v1/proxy-execute", key=gateway.key, body=body, headers=sent)
    assert answer.status == 200
    (call,) = gateway.executor.calls
    assert "canary" not in str(call.headers) + call.body.decode()
    assert gateway.key not in str(call.headers) + call.body.decode()
    assert set(call.headers) <= {
        *("host", "authorization", "content-type", "content-length", "accept", "accept-encoding", "user-agent"),
        *("mcp-protocol-version", "mcp-method", "mcp-name"),
    }
    assert call.headers["authorization"] == f"Bearer {gateway.executor.token}"
