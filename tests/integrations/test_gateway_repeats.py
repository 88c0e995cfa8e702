"""When an adapter sends a call again, before a gateway whose policy changes and over a line that breaks."""

from __future__ import annotations

import http.client
import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from gateway_estate import ESTATE_TOOLS, POLICY

from sentinel_rag.contracts.labels import BOTTOM
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.contracts.tool_calls import Deny, Reason
from sentinel_rag.gateway.policy import Policy, parse_policy
from sentinel_rag.gateway.responses import Completed, DeniedCall, NotCompleted, Outcome, away_response, outcome_response
from sentinel_rag.integrations.gateway import Blocked, GatewayCall, GatewayConnection, NotRun, Ran
from sentinel_rag.integrations.gateway.answers import HttpReply, NoReply
from sentinel_rag.integrations.gateway.calls import GatewayConversations, Pause, Send, WaitLimits, calling
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway
from waiting import WAIT_S

pytestmark = pytest.mark.requirement("GATE-8")
READS = parse_policy(POLICY)
AS_A_WRITE = "effect: write\n    accepts: {sensitivity: HIGH, integrity: UNTRUSTED}"
WRITES = parse_policy(POLICY.replace("Finds events.\n    effect: read", f"Finds events.\n    {AS_A_WRITE}"))


class Reloaded:
    """A source of policies that a test reloads."""

    def __init__(self) -> None:
        self.current: Policy = READS


@pytest.fixture
def policies() -> Reloaded:
    return Reloaded()


@pytest.fixture
def gateway(policies: Reloaded, tmp_path: Path) -> Iterator[RunningGateway]:
    with (
        FakeToolServer(ESTATE_TOOLS, token="t").running() as executor,
        running_gateway(READS, tmp_path, executor, policies=lambda _: policies) as running,
    ):
        yield running


@contextmanager
def breaking(url: str, on_break: Callable[[], None] = lambda: None) -> Iterator[str]:
    """The gateway behind a line that ends amid each result of a call, and lets everything else through."""
    address = urlsplit(url)

    class Relay(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            method, path, _ = self.rfile.readline().decode().split()
            headers = http.client.parse_headers(self.rfile)
            body = self.rfile.read(int(headers.get("Content-Length", 0)))
            behind = http.client.HTTPConnection(address.hostname or "", address.port, timeout=WAIT_S)
            sent = {name: text for name, text in headers.items() if name.lower() not in ("host", "connection")}
            behind.request(method, path, body, sent)
            answer = behind.getresponse()
            content = answer.read()
            behind.close()
            whole = not (path == "/v1/proxy-execute" and answer.status == 200)
            if not whole:
                on_break()
            head = f"HTTP/1.1 {answer.status} X\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
            self.wfile.write(head.encode() + (content if whole else content[:1]))

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Relay) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def find(connection: GatewayConnection, effect: str) -> NotRun:
    answer = connection.call(GatewayCall("find", {"text": "x"}, effect)).answer
    assert isinstance(answer, NotRun), answer
    return answer


def test_a_tool_that_a_reload_made_a_writing_one_is_sent_once(gateway: RunningGateway, policies: Reloaded) -> None:
    """The tool's object is older than the reload: it still believes that the tool reads."""
    with breaking(gateway.url) as url, GatewayConnection(url, gateway.key) as connection:
        [tool] = [tool for tool in connection.tools() if tool.name == "find"]
        assert find(connection, tool.effect).may_have_run
        assert len(gateway.executor.calls) == 3, "what reads is repeated"
        policies.current = WRITES
        for sent in (4, 5):
            answer = find(connection, tool.effect)
            assert (answer.may_have_run, "look before you call again" in answer.next_step) == (True, True)
            assert len(gateway.executor.calls) == sent
        refused = [record for record in gateway.records() if record["kind"] == "refusal"]
        assert [record["reason"] for record in refused] == ["conflict"], "it is asked once and then known"
        policies.current = READS
        connection.tools()
        assert find(connection, tool.effect).may_have_run
        assert len(gateway.executor.calls) == 8, "a new listing says that it reads again"


def test_a_reload_between_a_call_and_its_repeat_ends_the_repeats(gateway: RunningGateway, policies: Reloaded) -> None:
    def reload() -> None:
        policies.current = WRITES

    with breaking(gateway.url, reload) as url, GatewayConnection(url, gateway.key) as connection:
        answer = find(connection, "read")
    assert "look before you call again" in answer.next_step
    assert len(gateway.executor.calls) == 1


@pytest.mark.requirement("GATE-1")
@pytest.mark.parametrize(
    ("tool", "if_effect", "status"),
    [
        ("find", "read", 200),
        ("find", None, 200),
        ("find", "write", 409),
        ("add_note", "read", 409),
        ("add_note", "write", 200),
        ("send_mail", "write", 409),
        ("find", "none", 422),
        ("find", ["read"], 422),
        ("find", 1, 422),
    ],
)
def test_the_gateway_runs_a_call_only_if_its_tool_has_the_effect(
    gateway: RunningGateway, tool: str, if_effect: object, status: int
) -> None:
    wish = {"session_id": "s", "tool_name": tool, "args": {"text": "x"}, "if_effect": if_effect}
    answer = gateway.request("POST", "/v1/proxy-execute", key=gateway.key, body=json.dumps(wish).encode())
    assert answer.status == status
    assert len(gateway.executor.calls) == (status == 200)
    if status != 200:
        record = gateway.last_record()
        assert (record["kind"], record["audit_id"]) == ("refusal", answer.body["audit_id"])
        assert record["reason"] == answer.body["reason"] == ("conflict" if status == 409 else "malformed_body")


THROTTLED = QueryError(code=QueryErrorCode.THROTTLED, message="Too often.", retry_after_s=7)
ASKED = DeniedCall(Deny(Reason.APPROVAL_REQUIRED, BOTTOM, "r"), "a", approval_id="p-1")


def reply(outcome: Outcome) -> HttpReply:
    """As the gateway answers it."""
    response = outcome_response(outcome)
    return HttpReply(
        response.status_code, {name.lower(): text for name, text in response.headers.items()}, response.body
    )


AWAY = away_response(may_have_run=False)
NOT_NOW: dict[str, HttpReply | NoReply] = {
    "the tool's rate": reply(NotCompleted(Reason.RATE_LIMITED, "Too often.", "a", THROTTLED)),
    "the key's rate": HttpReply(429, {"retry-after": "7"}, b'{"detail": "Too often.", "reason": "rate_limited"}'),
    "no place": reply(NotCompleted(Reason.OVERLOADED, "Full.", "a")),
    "its database is away": HttpReply(AWAY.status_code, {"retry-after": "5"}, AWAY.body),
    "it is started again": NoReply("Away.", "Wait.", sent=False),
}


@pytest.mark.parametrize("effect", ["write", "read"])
@pytest.mark.parametrize("name", NOT_NOW)
def test_a_gateway_without_room_is_a_pause_for_who_waits_for_a_person(name: str, effect: str) -> None:
    """The rate of the tool that is looked after must not end the wait for its approval."""
    call = GatewayCall("disable_account", {}, effect, session_id="s", approval_wait_s=60)
    exchange = calling(call, GatewayConversations(), WaitLimits(repeats=0), set())
    assert isinstance(next(exchange), Send)
    first = exchange.send(reply(ASKED))
    assert first == Pause(1.0)
    assert isinstance(exchange.send(None), Send)
    pause = exchange.send(NOT_NOW[name])
    assert isinstance(pause, Pause)
    assert pause.seconds >= (7 if "rate" in name else 1)
    assert isinstance(exchange.send(None), Send)
    with pytest.raises(StopIteration) as ended:
        exchange.send(reply(Completed(b'{"done": true}', "a-2")))
    assert ended.value.value.answer == Ran({"done": True}, "a-2")


def test_a_wait_that_ends_in_a_pause_tells_of_the_approval_that_waits_still() -> None:
    call = GatewayCall("disable_account", {}, "write", session_id="s", approval_wait_s=1)
    exchange = calling(call, GatewayConversations(), WaitLimits(), set())
    next(exchange)
    exchange.send(reply(ASKED))
    exchange.send(None)
    with pytest.raises(StopIteration) as ended:
        exchange.send(NOT_NOW["the tool's rate"])
    answer = ended.value.value.answer
    assert isinstance(answer, Blocked)
    assert answer.waits_for_a_person


def test_a_line_that_breaks_amid_a_look_ends_the_wait() -> None:
    """Whether the approved call ran is not known then."""
    call = GatewayCall("disable_account", {}, "write", session_id="s", approval_wait_s=60)
    exchange = calling(call, GatewayConversations(), WaitLimits(), set())
    next(exchange)
    exchange.send(reply(ASKED))
    exchange.send(None)
    with pytest.raises(StopIteration) as ended:
        exchange.send(NoReply("Broke.", "Call again.", sent=True))
    assert ended.value.value.answer.next_step == "It may have taken effect: look before you call again."
