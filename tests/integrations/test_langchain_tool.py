"""One tool by itself: what is sent, what comes back for each way a call can end, and what is never repeated."""

from __future__ import annotations

import asyncio
import json
import pickle
import socketserver
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta, timezone
from enum import Enum
from types import ModuleType
from typing import Any

import pytest
from gateway_estate import EstateGateway
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from sentinel_rag.contracts.errors import ConfigurationError, UnavailableError
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.gateway.responses import away_response
from sentinel_rag.integrations.gateway import GatewayConnection, GatewayTool
from sentinel_rag.integrations.gateway.calls import WaitLimits, chosen
from sentinel_rag_testing.fake_tool_server import Answers, AnswersText, Dies, Fails, Waits
from sentinel_rag_testing.loopback import serve
from sentinel_rag_testing.running_gateway import RunningGateway
from waiting import WAIT_S

pytestmark = pytest.mark.requirement("GATE-8")
NOBODY = "http://127.0.0.1:9"


class Severity(Enum):
    HIGH = "High"


@pytest.fixture
def tools(lang: ModuleType, estate: EstateGateway) -> Iterator[dict[str, Any]]:
    with GatewayConnection(estate.url, estate.key) as connection:
        yield {tool.name: tool for tool in lang.load_gateway_tools(gateway=connection)}


@contextmanager
def answering(
    answer: Callable[[Request], Response], bodies: list[Any] | None = None
) -> Iterator[tuple[str, list[Request]]]:
    """A server that is not the gateway, and the requests that it got; their bodies, if they are wanted."""
    got: list[Request] = []

    async def every(request: Request) -> Response:
        got.append(request)
        if bodies is not None and request.method == "POST":
            bodies.append(await request.json())
        return answer(request)

    with serve(Starlette(routes=[Route("/{path:path}", every, methods=["GET", "POST", "DELETE"])])) as url:
        yield url, got


def test_a_direct_call_raises_what_the_source_raises(lang: ModuleType, tools: dict[str, Any]) -> None:
    with pytest.raises(lang.SecurityBlockException) as caught:
        tools["disable_account"]._run(account="eve")
    block = caught.value
    assert str(block) == (
        "Tool 'disable_account' was blocked by a security policy. "
        "Reason: Access denied by security policy. Taint level: LOW"
    )
    assert block.message == "Tool 'disable_account' was blocked by a security policy."
    assert (block.tool_name, block.reason) == (
        "disable_account",
        "Access denied by security policy. Taint level: LOW",
    )
    assert (block.block.reason, block.block.rule_id) == ("approval_required", "disable_account_any")
    assert isinstance(block, lang.ToolException)
    copied = pickle.loads(pickle.dumps(block))
    assert (str(copied), copied.block) == (str(block), block.block)
    assert lang.SecurityBlockException(message="M.", tool_name="t", reason="R").block.approval_id == ""


def test_a_tool_of_a_framework_without_handling_raises(lang: ModuleType, tools: dict[str, Any]) -> None:
    tool = tools["disable_account"].model_copy(update={"handle_tool_error": False})
    with pytest.raises(lang.SecurityBlockException, match="was blocked by a security policy"):
        tool.invoke({"account": "eve"})


def test_arguments_arrive_whole_whatever_their_names(estate: EstateGateway, tools: dict[str, Any]) -> None:
    given = {
        "text": "x",
        "config": "mine",
        "run_manager": "me",
        "self": "I",
        "filter": {"hosts": ["a", "b"], "deep": {"deeper": [1, None, {"é": True}]}},
    }
    tools["find"].invoke(given, {"configurable": {"thread_id": "t"}})
    assert estate.executor.calls[-1].arguments == given


def test_values_of_programs_get_one_json_form(estate: EstateGateway, tools: dict[str, Any]) -> None:
    moment = datetime(2024, 7, 2, 11, 45, tzinfo=timezone(timedelta(hours=2)))
    tools["find"].invoke(
        {
            "text": "x",
            "since": moment,
            "severity": Severity.HIGH,
            "limit": None,
            "config": None,
            "filter": {"hosts": ("b", "a"), "deep": {"day": date(2024, 7, 2), "utc": datetime(2024, 7, 2, tzinfo=UTC)}},
        }
    )
    # A null of what is not required means that it is left out, whatever the schema says.
    assert estate.executor.calls[-1].arguments == {
        "text": "x",
        "since": "2024-07-02T09:45:00Z",
        "severity": "High",
        "filter": {"hosts": ["b", "a"], "deep": {"day": "2024-07-02", "utc": "2024-07-02T00:00:00Z"}},
    }


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"text": "x", "since": datetime(2024, 7, 2)}, "A time without a time zone is not sent"),
        ({"text": "x", "filter": {"deep": {"n": float("nan")}}}, "no JSON form"),
        ({"text": "x", "filter": {"deep": {"n": object()}}}, "A value of type object has no JSON form."),
        ({"text": "\ud800"}, "half of a surrogate pair"),
        ("two things that only a person can tell apart\x00", ""),
    ],
    ids=["naive", "nan", "object", "surrogate", "text"],
)
def test_what_cannot_be_sent_is_a_text_and_no_exception(tools: dict[str, Any], arguments: Any, told: str) -> None:
    text = tools["find"].invoke(arguments)
    assert text.startswith("Result: SYSTEM_ERROR: " if told else "{")
    assert told in text


def test_a_text_in_place_of_arguments_is_the_only_required_one(estate: EstateGateway, tools: dict[str, Any]) -> None:
    assert json.loads(tools["send_mail"].invoke("hello"))["arguments"] == {"text": "hello"}
    assert json.loads(tools["find"].invoke('{"text": "x", "limit": 2}'))["arguments"] == {"text": "x", "limit": 2}


def test_a_wrong_argument_is_told_with_what_is_allowed(estate: EstateGateway, tools: dict[str, Any]) -> None:
    assert "limit" in (text := tools["find"].invoke({"text": "x", "limit": "many"}))
    assert text.startswith("Result: SYSTEM_ERROR: ")
    error = QueryError(
        code=QueryErrorCode.INVALID_ARGUMENT, message="Unknown severity.", field="severity", allowed=("Low", "High")
    )
    estate.executor.on("find", Fails(error))
    assert "Unknown severity. Allowed: Low, High." in tools["find"].invoke({"text": "x"})


def test_a_text_result_is_told_as_it_is(estate: EstateGateway, tools: dict[str, Any]) -> None:
    estate.executor.on("find", AnswersText(("line one\nline two",)))
    assert tools["find"].invoke({"text": "x"}) == "line one\nline two"


def test_a_call_that_reads_is_sent_again_after_the_wait_that_was_asked_for(
    estate: EstateGateway, tools: dict[str, Any]
) -> None:
    throttled = Fails(QueryError(code=QueryErrorCode.THROTTLED, message="Too much.", retry_after_s=1.0))
    estate.executor.on("find", throttled, Answers({"found": 1}))
    assert json.loads(tools["find"].invoke({"text": "x"})) == {"found": 1}
    assert len(estate.executor.calls) == 2


def test_a_longer_wait_is_told_instead_of_waited_for(estate: EstateGateway, tools: dict[str, Any]) -> None:
    estate.executor.on("find", Fails(QueryError(code=QueryErrorCode.THROTTLED, message="Too much.", retry_after_s=900)))
    message = tools["find"].invoke({"type": "tool_call", "id": "c", "name": "find", "args": {"text": "x"}})
    assert message.content.startswith("Result: SYSTEM_ERROR: Too much.")
    assert message.artifact["reason"] == "rate_limited"
    assert len(estate.executor.calls) == 1


def test_a_write_whose_server_dies_is_sent_once_and_not_called_safe(
    estate: EstateGateway, tools: dict[str, Any]
) -> None:
    estate.executor.on("add_note", Dies())
    message = tools["add_note"].invoke({"type": "tool_call", "id": "c", "name": "add_note", "args": {"text": "x"}})
    assert message.content.startswith("Result: SYSTEM_ERROR: ")
    assert "It may have taken effect: look before you call again." in message.content
    assert message.artifact["may_have_run"] is True
    assert len(estate.executor.calls) == 1


@pytest.mark.parametrize("status", [429, 503, 500])
def test_no_write_is_repeated_whatever_answers(lang: ModuleType, status: int) -> None:
    """Whoever answers is no gateway, and asks to be called again."""
    with (
        answering(lambda _: PlainTextResponse("later", status, headers={"Retry-After": "0"})) as (url, got),
        GatewayConnection(url, "k" * 20) as connection,
    ):
        tool = lang.SentinelSecureTool(
            name="add_note", description="", gateway=connection, effect="write", session_id="s-1"
        )
        text = tool.invoke({"text": "x"})
        assert text.startswith(f"Result: SYSTEM_ERROR: The answer with status {status} is not the gateway's.")
        assert ("It may have taken effect" in text) is (status >= 500)
        assert len(got) == 1
        reading = tool.model_copy(update={"effect": "read"})
        reading.invoke({"text": "x"})
        assert len(got) == (2 if status == 500 else 4)


@pytest.mark.parametrize("effect", ["read", "write"])
def test_a_call_whose_outcome_could_not_be_recorded_is_sent_once_and_not_called_safe(
    lang: ModuleType, effect: str
) -> None:
    """The gateway's own 503 for a call that ran; `read` is what the tool was when it was listed."""
    with (
        answering(lambda _: away_response(may_have_run=True)) as (url, got),
        GatewayConnection(url, "k" * 20) as connection,
    ):
        tool = lang.SentinelSecureTool(
            name="add_note", description="", gateway=connection, effect=effect, session_id="s-1"
        )
        message = tool.invoke({"type": "tool_call", "id": "c", "name": "add_note", "args": {"text": "x"}})
    assert message.content.endswith("It may have taken effect: look before you call again.")
    assert "Wait a moment" not in message.content
    assert message.artifact["may_have_run"] is True
    assert len(got) == 1


@contextmanager
def breaking() -> Iterator[tuple[str, list[bytes]]]:
    """A server that ends each connection amid the answer, and what it was sent."""
    got: list[bytes] = []

    class Breaking(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            got.append(self.request.recv(65_536))
            self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Breaking) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", got
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(("effect", "sent"), [("read", 3), ("write", 1), ("external", 1)])
def test_a_broken_line_is_tried_again_by_what_reads_alone(lang: ModuleType, effect: str, sent: int) -> None:
    with breaking() as (url, got), GatewayConnection(url, "k" * 20) as connection:
        tool = lang.SentinelSecureTool(name="find", description="", gateway=connection, effect=effect, session_id="s-1")
        text = tool.invoke({"text": "x"})
    assert text.startswith("Result: SYSTEM_ERROR: The connection to the gateway broke amid the answer.")
    assert ("It may have taken effect" in text) is (effect != "read")
    assert len(got) == sent


@pytest.mark.parametrize("way", ["blocking", "waiting"])
def test_a_call_that_takes_too_long_is_a_text_and_not_repeated(
    lang: ModuleType, estate: EstateGateway, way: str
) -> None:
    release = threading.Event()
    estate.executor.on("find", Waits(release))
    tool = lang.SentinelSecureTool(
        name="find", description="", gateway=GatewayConnection(estate.url, estate.key, timeout_s=0.5), effect="read"
    )

    async def waiting() -> str:
        async with tool.gateway:
            return str(await tool.ainvoke({"text": "x"}))

    try:
        text = asyncio.run(waiting()) if way == "waiting" else tool.invoke({"text": "x"})
    finally:
        release.set()
        tool.gateway.close()
    assert text.startswith("Result: SYSTEM_ERROR: The gateway did not answer within 0.5 seconds.")
    assert len(estate.executor.calls) <= 1


@pytest.mark.parametrize(
    "answer",
    [
        PlainTextResponse("<html>sign in</html>"),
        JSONResponse(["result"]),
        JSONResponse({"status": "success"}),
        Response(b'{"result": ', media_type="application/json"),
        Response(b"[" * 100_000, media_type="application/json"),
        Response(status_code=302, headers={"Location": "http://127.0.0.1:9/elsewhere"}),
        JSONResponse({"detail": ["not", "a", "text"]}, status_code=422),
        JSONResponse({"detail": 7, "error": "no object"}, status_code=418),
    ],
    ids=["html", "list", "no result", "half", "deep", "redirect", "detail", "teapot"],
)
def test_what_is_not_the_gateways_answer_is_a_text(lang: ModuleType, answer: Response) -> None:
    with answering(lambda _: answer) as (url, _), GatewayConnection(url, "k" * 20) as connection:
        tool = lang.SentinelSecureTool(name="find", description="", gateway=connection, effect="read", session_id="s-1")
        text = tool.invoke({"text": "x"})
    assert text.startswith("Result: SYSTEM_ERROR: ")
    assert "Check that SENTINEL_URL is the gateway" in text


def test_a_403_without_the_gateways_form_is_a_block_all_the_same(lang: ModuleType) -> None:
    with (
        answering(lambda _: PlainTextResponse("no", 403)) as (url, _),
        GatewayConnection(url, "k" * 20) as connection,
    ):
        tool = lang.SentinelSecureTool(name="find", description="", gateway=connection, session_id="s-1")
        with pytest.raises(lang.SecurityBlockException, match="Tool 'find' was blocked by a security policy"):
            tool._run(text="x")


def test_a_gateway_that_is_away_does_not_end_the_conversation(lang: ModuleType) -> None:
    with GatewayConnection(NOBODY, "k" * 20, patience=WaitLimits(repeats=0)) as connection:
        tool = lang.SentinelSecureTool(name="find", description="", gateway=connection, effect="read")
        assert tool.invoke({"text": "x"}) == (
            f"Result: SYSTEM_ERROR: The gateway at {NOBODY} cannot be reached. "
            "Start it with `sentinel up`, or check SENTINEL_URL."
        )
        with pytest.raises(UnavailableError, match="cannot be reached"):
            lang.load_gateway_tools(gateway=connection)


def test_a_wrong_key_is_a_text_in_a_call_and_an_error_when_tools_are_loaded(
    lang: ModuleType, estate: EstateGateway
) -> None:
    with GatewayConnection(estate.url, "sr_000000000000_" + "0" * 64) as connection:
        tool = lang.SentinelSecureTool(name="find", description="", gateway=connection)
        assert "Check SENTINEL_API_KEY" in (text := tool.invoke({"text": "x"}))
        assert text.startswith("Result: SYSTEM_ERROR: ")
        with pytest.raises(ConfigurationError) as refused:
            lang.load_gateway_tools(gateway=connection)
        assert "SENTINEL_API_KEY" in refused.value.next_step
    assert RunningGateway.records(estate)[-1]["kind"] == "authentication_failed"
    assert estate.executor.calls == []


def test_a_key_that_may_not_execute_is_told_so(lang: ModuleType, estate: EstateGateway) -> None:
    with GatewayConnection(estate.url, estate.auditor) as connection:
        tool = lang.SentinelSecureTool(name="find", description="", gateway=connection, session_id="s-1")
        assert "[missing_scope]" in tool.invoke({"text": "x"})
        with pytest.raises(ConfigurationError, match="scope"):
            lang.load_gateway_tools(gateway=connection)


def test_a_closed_session_runs_nothing_and_the_next_call_has_a_new_one(
    estate: EstateGateway, tools: dict[str, Any]
) -> None:
    tools["find"].invoke({"text": "1"})
    [session] = {record["session_id"] for record in estate.records() if record["kind"] == "intent"}
    estate.request("DELETE", f"/v1/sessions/{session}", key=estate.key)
    assert tools["find"].invoke({"text": "2"}).startswith("Result: SYSTEM_ERROR: ")
    assert json.loads(tools["find"].invoke({"text": "3"}))["arguments"] == {"text": "3"}
    assert [call.arguments["text"] for call in estate.executor.calls] == ["1", "3"]


def test_the_sources_request_is_sent_and_the_callers_trace_goes_along(lang: ModuleType) -> None:
    from opentelemetry import trace
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

    bodies: list[Any] = []
    span = NonRecordingSpan(SpanContext(0xABC, 0xDEF, is_remote=False, trace_flags=TraceFlags(1)))
    with (
        answering(lambda _: JSONResponse({"result": 1, "status": "success"}), bodies) as (url, got),
        GatewayConnection(url, "k" * 20) as connection,
    ):
        tool = lang.SentinelSecureTool(name="find", description="", gateway=connection, session_id="s-1")
        with trace.use_span(span):
            tool.invoke({"text": "x"})
        tool.invoke({"text": "x"})
    calls = [request for request in got if request.method == "POST"]
    assert [request.url.path for request in calls] == ["/v1/proxy-execute"] * 2
    assert bodies[0] == {"session_id": "s-1", "tool_name": "find", "args": {"text": "x"}}
    assert calls[0].headers["traceparent"] == f"00-{0xABC:032x}-{0xDEF:016x}-01"
    assert "traceparent" not in calls[1].headers
    assert {request.headers["x-api-key"] for request in got} == {"k" * 20}


def test_address_and_key_come_from_the_environment_and_the_key_is_shown_nowhere(
    lang: ModuleType, estate: EstateGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENTINEL_URL", estate.url + "/")
    monkeypatch.setenv("SENTINEL_API_KEY", estate.key)
    monkeypatch.setenv("HTTP_PROXY", NOBODY)
    tool = lang.SentinelSecureTool(name="find", description="Finds.")
    assert json.loads(tool.invoke({"text": "x"}))["arguments"] == {"text": "x"}
    assert [each.name for each in lang.load_gateway_tools(names=["find"])] == ["find"]
    shown = f"{tool!r} {tool} {tool.gateway!r} {tool.model_dump()}"
    assert estate.key not in shown
    with pytest.raises(ConfigurationError, match="does not offer nothing"):
        lang.load_gateway_tools(names=["nothing"])
    tool.gateway.close()


@pytest.mark.parametrize(
    ("url", "key", "told"),
    [
        ("", "k" * 20, "SENTINEL_URL"),
        ("127.0.0.1:8787", "k" * 20, "SENTINEL_URL"),
        ("ftp://127.0.0.1", "k" * 20, "SENTINEL_URL"),
        ("http://me:secret@127.0.0.1", "k" * 20, "SENTINEL_URL"),
        ("http://[::1", "k" * 20, "SENTINEL_URL"),
        (NOBODY, "", "SENTINEL_API_KEY"),
        (NOBODY, "kéy", "SENTINEL_API_KEY"),
        (NOBODY, "key\n", "SENTINEL_API_KEY"),
    ],
)
def test_an_address_or_key_that_cannot_be_one_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, url: str, key: str, told: str
) -> None:
    monkeypatch.delenv("SENTINEL_URL", raising=False)
    monkeypatch.delenv("SENTINEL_API_KEY", raising=False)
    with pytest.raises(ConfigurationError) as refused:
        GatewayConnection(url, key)
    assert told in refused.value.next_step + str(refused.value)
    assert "secret" not in f"{refused.value}{refused.value.next_step}"


def test_a_forked_process_does_not_share_its_parents_connection(estate: EstateGateway) -> None:
    """Web servers fork workers after the tools were loaded; an answer must not reach another worker's user."""
    script = """
import json, os, sys
from sentinel_rag.integrations.gateway import GatewayCall, GatewayConnection
connection = GatewayConnection(sys.argv[1], sys.argv[2])
connection.tools()
before = id(connection._client)
child = os.fork()
who = "parent" if child else "child"
for number in range(5):
    called = connection.call(GatewayCall("find", {"text": f"{who} {number}"}, "read"))
    assert called.answer.result["arguments"]["text"] == f"{who} {number}", called
if child:
    assert id(connection._client) == before
    connection.close()
    sys.exit(os.waitpid(child, 0)[1])
os._exit(int(id(connection._client) == before))
"""
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", script, estate.url, estate.key],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert done.returncode == 0, done.stderr
    assert len(estate.executor.calls) == 10


def test_a_tool_whose_name_no_model_takes_is_left_out_and_named(caplog: pytest.LogCaptureFixture) -> None:
    offered = [GatewayTool(name, "", {"type": "object", "properties": {}}) for name in ("fine", "not.fine", "é")]
    assert [tool.name for tool in chosen(offered, None)] == ["fine"]
    assert "'not.fine' is left out" in caplog.text
