"""The agent's wire against a real loopback server: every answer of a gateway becomes one of three outcomes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sentinel_rag.agent.gateway_client import HttpToolGateway
from sentinel_rag.agent.tool_runs import RetryOnce
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.contracts.tool_calls import Denied, Failed, Reason, Succeeded, ToolCall
from sentinel_rag_testing.loopback import serve
from sentinel_rag_testing.scripted_gateway import failure, rows_result
from waiting import WAIT_S

pytestmark = pytest.mark.anyio
CALL = ToolCall("c1", "session-1", "query_incidents", {"status": "Open", "limit": 5})


class Gateway:
    """A stand-in for the gateway's HTTP face: gives one response and keeps what it was sent."""

    def __init__(self, respond: Callable[[], Response]) -> None:
        self._respond = respond
        self.seen: list[tuple[dict[str, Any], str]] = []
        self.app = Starlette(routes=[Route("/v1/proxy-execute", self._execute, methods=["POST"])])

    async def _execute(self, request: Request) -> Response:
        self.seen.append((json.loads(await request.body()), request.headers.get("x-api-key", "")))
        return self._respond()


async def outcome_of(respond: Callable[[], Response]) -> tuple[Any, Gateway]:
    gateway = Gateway(respond)
    with serve(gateway.app) as url:
        async with HttpToolGateway(url + "/", "the-key", timeout_s=WAIT_S) as client:
            return await client.execute(CALL), gateway


@pytest.mark.requirement("GATE-1")
async def test_a_result_comes_back_whole_and_the_call_goes_out_as_agreed() -> None:
    result = rows_result([{"number": 40, "title": "Ünïcode"}], total=7)
    outcome, gateway = await outcome_of(
        lambda: JSONResponse({"result": result.to_dict(), "status": "success", "audit_id": "a-9"})
    )
    assert outcome == Succeeded(CALL, result, "a-9")
    body = {"session_id": "session-1", "tool_name": "query_incidents", "args": {"status": "Open", "limit": 5}}
    assert gateway.seen == [(body, "the-key")]


async def test_a_denial_keeps_sentence_reason_rule_and_record() -> None:
    body = {
        "detail": "Access denied by security policy. Taint level: HIGH",
        "status": "denied",
        "reason": "rule_denies",
        "rule_id": "incidents.deny",
        "audit_id": "a-1",
    }
    outcome, _ = await outcome_of(lambda: JSONResponse(body, status_code=403))
    assert outcome == Denied(CALL, Reason.RULE_DENIES, body["detail"], "incidents.deny", "a-1")


async def test_a_typed_error_of_the_tool_arrives_as_it_was() -> None:
    error = failure(QueryErrorCode.INVALID_ARGUMENT, "limit must be at most 100.", "Use a smaller limit.")
    body = {"detail": error.message, "status": "error", "reason": "invalid_argument", "audit_id": "a-2"}
    outcome, _ = await outcome_of(lambda: JSONResponse({**body, "error": error.to_dict()}, status_code=422))
    assert outcome == Failed(CALL, error, "a-2")


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, QueryErrorCode.INVALID_ARGUMENT),
        (401, QueryErrorCode.ACCESS_DENIED),
        (404, QueryErrorCode.ACCESS_DENIED),
        (409, QueryErrorCode.ACCESS_DENIED),
        (413, QueryErrorCode.INVALID_ARGUMENT),
        (422, QueryErrorCode.INVALID_ARGUMENT),
        (429, QueryErrorCode.THROTTLED),
        (500, QueryErrorCode.INTERNAL),
        (502, QueryErrorCode.UNAVAILABLE),
        (503, QueryErrorCode.UNAVAILABLE),
        (504, QueryErrorCode.TIMEOUT),
        (418, QueryErrorCode.PROTOCOL),
    ],
)
async def test_every_other_status_is_a_failure_with_a_next_step(status: int, code: QueryErrorCode) -> None:
    outcome, _ = await outcome_of(
        lambda: JSONResponse({"detail": "No.", "status": "error"}, status_code=status, headers={"Retry-After": "2"})
    )
    assert isinstance(outcome, Failed)
    assert outcome.error.code is code
    assert outcome.error.message == "No."
    assert outcome.error.next_step
    assert outcome.error.retry_after_s == 2


@pytest.mark.parametrize(
    "response",
    [
        Response("<html>bad gateway</html>", 502, media_type="text/html"),
        Response("", 200),
        Response(b"\xff\xfe", 200),
        Response("[1]", 200),
        Response("[" * 100_000, 200),
        JSONResponse({"status": "success"}),
        JSONResponse({"result": {"rows": []}, "status": "success"}),
        JSONResponse({"result": {**rows_result([]).to_dict(), "rows": [1]}, "status": "success"}),
        JSONResponse({"result": {**rows_result([]).to_dict(), "summary": None}, "status": "success"}),
        JSONResponse({"result": {**rows_result([]).to_dict(), "coverage": {}}, "status": "success"}),
        Response(status_code=302, headers={"Location": "http://192.0.2.1/"}),
    ],
)
async def test_what_is_not_the_gateways_answer_is_a_failure_and_never_an_empty_result(response: Response) -> None:
    outcome, _ = await outcome_of(lambda: response)
    assert isinstance(outcome, Failed)
    assert outcome.error.next_step
    assert outcome.error.code in (QueryErrorCode.PROTOCOL, QueryErrorCode.UNAVAILABLE)


async def test_nobody_listening_says_how_to_start_the_gateway() -> None:
    async with HttpToolGateway("http://127.0.0.1:9", "k") as client:
        outcome = await client.execute(CALL)
    assert isinstance(outcome, Failed)
    assert outcome.error.code is QueryErrorCode.UNAVAILABLE
    assert "sentinel up" in outcome.error.next_step


async def test_an_address_that_is_none_is_told() -> None:
    async with HttpToolGateway("not an address", "k") as client:
        outcome = await client.execute(CALL)
    assert isinstance(outcome, Failed)
    assert "SENTINEL_URL" in outcome.error.next_step


async def test_a_gateway_that_does_not_answer_is_a_time_out() -> None:
    async def hang(request: Request) -> Response:
        await anyio.sleep(30)
        return Response()

    with serve(Starlette(routes=[Route("/v1/proxy-execute", hang, methods=["POST"])])) as url:
        async with HttpToolGateway(url, "k", timeout_s=0.3) as client:
            outcome = await client.execute(CALL)
    assert isinstance(outcome, Failed)
    assert outcome.error.code is QueryErrorCode.TIMEOUT


async def test_a_value_that_cannot_be_sent_is_refused_before_sending() -> None:
    async with HttpToolGateway("http://127.0.0.1:9", "k") as client:
        outcome = await client.execute(ToolCall("c", "s", "query_alerts", {"entity": "\ud800"}))
    assert isinstance(outcome, Failed)
    assert outcome.error.code is QueryErrorCode.INVALID_ARGUMENT


@pytest.mark.requirement("CHAT-13")
@pytest.mark.parametrize(
    ("statuses", "requests"),
    [([503, 200], 2), ([503, 503, 200], 2), ([504, 200], 1), ([422, 200], 1), ([403, 200], 1)],
)
async def test_only_what_may_succeed_later_is_tried_again_and_once(statuses: list[int], requests: int) -> None:
    left = list(statuses)

    def respond() -> Response:
        status = left.pop(0)
        if status == 200:
            return JSONResponse({"result": rows_result([]).to_dict(), "status": "success"})
        return JSONResponse({"detail": "Busy.", "status": "error", "reason": "overloaded"}, status_code=status)

    gateway = Gateway(respond)
    with serve(gateway.app) as url:
        async with HttpToolGateway(url, "k") as client:
            outcome = await RetryOnce(client).execute(CALL)
    assert len(gateway.seen) == requests
    assert isinstance(outcome, Succeeded) == (statuses[requests - 1] == 200)


async def test_a_long_wait_is_not_waited_for() -> None:
    gateway = Gateway(lambda: JSONResponse({"detail": "Slow down."}, status_code=429, headers={"Retry-After": "60"}))
    with serve(gateway.app) as url:
        async with HttpToolGateway(url, "k") as client:
            outcome = await RetryOnce(client).execute(CALL)
    assert len(gateway.seen) == 1
    assert isinstance(outcome, Failed)
    assert outcome.error.retry_after_s == 60
