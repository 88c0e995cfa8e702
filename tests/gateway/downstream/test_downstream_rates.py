"""What counts for the rate of a key at its door, and what a call that is held for a person hears meanwhile."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from itertools import islice
from urllib.parse import urlsplit

import pytest
from tests.support.mcp_over_http import SESSIONS, RawMcp

from sentinel_rag.gateway.admission import GatewayLimits
from sentinel_rag.gateway.downstream import tool_calls
from sentinel_rag.gateway.policy import Policy
from sentinel_rag.gateway.policy.model import Rate
from sentinel_rag.gateway.store import Scope
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway

pytestmark = pytest.mark.requirement("GATE-5")
FORM = {"elicitation": {"form": {}}}
JSON = {"Content-Type": "application/json"}
ENDS: Mapping[str, tuple[int, dict[str, str], bytes]] = {
    "an answer that is not accepted": (406, {**JSON, "Accept": "text/html", "Content-Length": "2"}, b"{}"),
    "another type": (415, {"Content-Type": "text/plain", "Content-Length": "2"}, b"{}"),
    "an encoding": (415, {**JSON, "Content-Encoding": "gzip", "Content-Length": "2"}, b"{}"),
    "a size that is too large": (413, {**JSON, "Content-Length": "2000"}, b""),
    "more than it may be": (413, {**JSON, "Transfer-Encoding": "chunked"}, b"7d0\r\n" + b" " * 2_000 + b"\r\n"),
    "a body that does not come": (408, {**JSON, "Content-Length": "9"}, b"{"),
}


@pytest.fixture(scope="module")
def hasty(
    policy: Policy, executor: FakeToolServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningGateway]:
    """A gateway that waits for no body."""
    limits = GatewayLimits(body_bytes=1_000, body_seconds=0.05)
    with running_gateway(policy, tmp_path_factory.mktemp("hasty"), executor, limits=limits) as running:
        yield running


def status_of(gateway: RunningGateway, path: str, key: str, headers: Mapping[str, str], body: bytes) -> int:
    """Of a request that is sent as it stands, whole or not."""
    address = urlsplit(gateway.url)
    told = {"Host": address.netloc, "X-API-Key": key, "Connection": "close", **headers}
    head = "".join(f"{name}: {text}\r\n" for name, text in told.items())
    with socket.create_connection((address.hostname or "", address.port or 0), 60) as raw:
        raw.sendall(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        return int(raw.makefile("rb").readline().split()[1])


@pytest.mark.parametrize("path", ["/mcp", "/v1/proxy-execute", "/v1/look"])
@pytest.mark.parametrize("end", ENDS)
def test_a_request_that_ends_before_its_body_is_read_counts(hasty: RunningGateway, path: str, end: str) -> None:
    """Otherwise whoever sends them without end is never told to wait. What has no room counts for nothing."""
    status, headers, body = ENDS[end]
    if status == 406 and path != "/mcp":
        status = 422  # which accepts are taken is a matter of MCP; here the body is read, and says nothing
    scope = Scope.USER if path == "/v1/look" else Scope.EXECUTE
    key, terms = hasty.state.keys.create([scope], rate=Rate(2, 600.0))
    answered = [status_of(hasty, path, key, headers, body) for _ in range(4)]
    assert answered == [status, status, 429, 429]
    assert hasty.last_record()["key_id"] == terms.key_id


def test_a_request_that_was_counted_before_it_was_refused_counts_once(gateway: RunningGateway) -> None:
    """A notification in a session that is not there: counted for what it is, and then refused."""
    key = gateway.state.keys.create([Scope.EXECUTE], rate=Rate(3, 600.0))[0]
    client = RawMcp(gateway.url, key, SESSIONS, headers={"Mcp-Session-Id": "of-another"})
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert [client.post(told).status for _ in range(4)] == [404, 404, 404, 429]


@pytest.mark.requirement("APPR-1")
def test_a_key_without_room_when_its_approval_comes_is_told_to_wait_and_not_the_old_denial(
    gateway: RunningGateway, executor: FakeToolServer
) -> None:
    key, terms = gateway.state.keys.create([Scope.EXECUTE], rate=Rate(3, 600.0))
    client = RawMcp(gateway.url, key, SESSIONS, FORM).initialized()
    message = client.message("tools/call", {"name": "change", "arguments": {"marker": "no room"}})
    with client.streamed(message) as events:
        question = next(events)
        page = gateway.request("GET", "/v1/approvals?state=pending", key=gateway.approver).body["approvals"]
        [approval] = [each["approval_id"] for each in page if each["key_id"] == terms.key_id]
        decided = gateway.request("POST", f"/v1/approvals/{approval}/approve", key=gateway.approver)
        assert decided.status == 200
        # The third request of the key: there is no room for the call itself any more.
        assert client.post({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}}).status == 202
        result = list(events)[-1]["result"]
    assert result["isError"] is True
    assert result["structuredContent"]["reason"] == "rate_limited"
    assert {"marker": "no room"} not in [call.arguments for call in executor.calls]
    record = gateway.last_record()
    assert (record["kind"], record["reason"]) == ("refusal", "rate_limited")
    shown = gateway.request("GET", f"/v1/approvals/{approval}", key=gateway.approver).body
    assert shown["state"] == "approved", "it waits for the call that has room"


@pytest.mark.parametrize("token", [None, 7])
def test_the_stream_of_a_question_lives_while_nobody_answers(
    gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch, token: int | None
) -> None:
    """A proxy that cuts what is silent for a minute would cancel the call before a person has read the question."""
    monkeypatch.setattr(tool_calls, "BREATH_S", 0.02)
    monkeypatch.setattr(tool_calls, "PROGRESS_S", 0.02)
    client = RawMcp(gateway.url, gateway.key, SESSIONS, FORM).initialized()
    meta = {} if token is None else {"progressToken": token}
    wish = {"name": "change", "arguments": {"marker": f"silent-{token}"}, "_meta": meta}
    with client.lines(client.message("tools/call", wish)) as lines:
        data = (line for line in lines if line.startswith((b"data: ", b":")))
        asked = next(json.loads(line[6:]) for line in data if b"elicitation/create" in line)
        for line in islice(data, 3):
            if token is None:
                assert line == b": waiting"
            else:
                told = json.loads(line[6:])["params"]
                assert (told["progressToken"], told["message"]) == (token, "The user is asked.")
        client.post({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}})
        assert b"approval_required" in list(data)[-1]
