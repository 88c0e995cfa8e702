"""A caller that closes the connection amid a call (Ctrl-C, a killed agent): what reads is stopped, what may change
something goes on to its end, and the audit tells how both ended."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag_testing.fake_tool_server import FakeToolServer, Waits
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway

pytestmark = [pytest.mark.requirement("GATE-4"), pytest.mark.requirement("CHAT-14")]
POLICY = """
tools:
  - name: read_rows
    effect: read
    taint_rules: [{rule_id: any_rows, condition: "true", taint_level: LOW}]
  - name: close_incident
    effect: write
    taint_rules: [{rule_id: any_change, condition: "true", taint_level: LOW}]
"""
MOST_LOOKS = 3_000
"""The record follows the end of the connection, which nobody here can wait for; each look is a request of its own."""


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[RunningGateway]:
    schemas = [ToolSchema(name, "", {"type": "object"}) for name in ("read_rows", "close_incident")]
    with (
        FakeToolServer(schemas, token="t").running() as executor,
        running_gateway(parse_policy(POLICY), tmp_path, executor) as running,
    ):
        yield running


@contextmanager
def called(gateway: RunningGateway, tool: str) -> Iterator[None]:
    """The call is at the tool server within the block; its connection is closed at the end of it."""
    address = urlsplit(gateway.url)
    body = json.dumps({"session_id": "session-0001", "tool_name": tool, "args": {}}).encode()
    head = (
        f"POST /v1/proxy-execute HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: {gateway.key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(head.encode() + body)
        seen(gateway, "intent", tool)
        yield


def seen(gateway: RunningGateway, kind: str, tool: str = "") -> dict[str, Any]:
    """The first record of that kind, once it is there."""
    for _ in range(MOST_LOOKS):
        for record in gateway.records():
            if record["kind"] == kind and (not tool or record["tool"] == tool):
                return record
    raise AssertionError(f"no {kind}: {gateway.records()}")


def test_a_call_that_reads_is_stopped_and_the_audit_says_that_nobody_waited(gateway: RunningGateway) -> None:
    never = threading.Event()
    gateway.executor.on("read_rows", Waits(never))
    with called(gateway, "read_rows"):
        pass
    outcome = seen(gateway, "outcome")
    assert (outcome["status"], outcome["reason"]) == ("error", "caller_left")
    assert outcome["audit_id"] == seen(gateway, "intent")["audit_id"]
    assert outcome.get("result_sha256") is None
    never.set()
    assert gateway.call("read_rows", {}).status == 200  # the slot of the call is free, and the session goes on


def test_a_call_that_may_change_something_goes_on_and_its_result_is_recorded(gateway: RunningGateway) -> None:
    goes_on = threading.Event()
    gateway.executor.on("close_incident", Waits(goes_on))
    with called(gateway, "close_incident"):
        pass
    assert not [record for record in gateway.records() if record["kind"] == "outcome"]
    goes_on.set()
    outcome = seen(gateway, "outcome")
    assert (outcome["status"], outcome["reason"]) == ("success", None)
    assert outcome["result_sha256"]


def test_a_caller_that_waits_gets_its_result(gateway: RunningGateway) -> None:
    assert [gateway.call("read_rows", {}).status for _ in range(3)] == [200, 200, 200]
    assert [record["status"] for record in gateway.records() if record["kind"] == "outcome"] == ["success"] * 3
