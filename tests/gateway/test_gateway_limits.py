"""Each bound of the gateway has its own status, reason and record, and what is within it goes on."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from sentinel_rag.gateway.admission import GatewayLimits
from sentinel_rag.gateway.gate.running import InFlight
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.gateway.policy.model import Rate
from sentinel_rag.gateway.store import Scope
from sentinel_rag_testing.fake_tool_server import Answers, FakeToolServer, Waits
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway
from waiting import WAIT_S

POLICY = """
tools:
  - name: list_tables
    effect: read
    taint_rules: [{rule_id: any, condition: "true", taint_level: LOW}]
  - name: query_incidents
    effect: read
    rate: {calls: 2, seconds: 600}
    taint_rules: [{rule_id: any_incident, condition: "true", taint_level: LOW}]
  - name: query_alerts
    effect: read
    timeout_s: 1
    taint_rules: [{rule_id: any_alert, condition: "true", taint_level: LOW}]
"""


@contextmanager
def limited(folder: Path, limits: GatewayLimits) -> Iterator[RunningGateway]:
    with (
        FakeToolServer().running() as executor,
        running_gateway(parse_policy(POLICY), folder, executor, limits=limits) as gateway,
    ):
        yield gateway


def raw(gateway: RunningGateway, *parts: bytes) -> tuple[int, dict[str, Any]]:
    address = urlsplit(gateway.url)
    with socket.create_connection((address.hostname, address.port), timeout=WAIT_S) as connection:
        for part in parts:
            connection.sendall(part)
        with connection.makefile("rb") as reader:
            status = int(reader.readline().split()[1])
            length = 0
            while (header := reader.readline()) not in (b"\r\n", b""):
                if header.lower().startswith(b"content-length:"):
                    length = int(header.partition(b":")[2])
            return status, json.loads(reader.read(length))


def head(gateway: RunningGateway, *lines: str) -> bytes:
    own = ("POST /v1/proxy-execute HTTP/1.1", "Host: 127.0.0.1", f"X-API-Key: {gateway.key}")
    return "\r\n".join([*own, *lines, "", ""]).encode()


@pytest.mark.requirement("GATE-7")
def test_a_key_over_its_rate_is_429_with_the_seconds_to_wait(tmp_path: Path) -> None:
    with limited(tmp_path, GatewayLimits(key_rate=Rate(3, 600.0))) as gateway:
        fast = gateway.state.keys.create([Scope.EXECUTE], name="fast", rate=Rate(50, 600.0))[0]
        assert [gateway.call("list_tables", {}).status for _ in range(3)] == [200, 200, 200]
        before = len(gateway.executor.calls)
        for method, path in (("GET", "/v1/tools"), ("POST", "/v1/proxy-execute")):
            answer = gateway.request(method, path, key=gateway.key)
            assert (answer.status, answer.body["reason"]) == (429, "rate_limited")
            assert 1 <= int(answer.headers["retry-after"]) <= 600
            record = gateway.last_record()
            assert (record["kind"], record["reason"], record["http_status"]) == ("request_refused", "rate_limited", 429)
            assert record["audit_id"] == answer.body["audit_id"]
        assert len(gateway.executor.calls) == before
        assert [gateway.call("list_tables", {}, session_id="f", key=fast).status for _ in range(5)] == [200] * 5
        assert gateway.request("GET", "/v1/audit", key=gateway.auditor).status == 200


def test_bodies_that_are_none_count_too(tmp_path: Path) -> None:
    with limited(tmp_path, GatewayLimits(key_rate=Rate(3, 600.0))) as gateway:
        statuses = [gateway.request("POST", "/v1/proxy-execute", key=gateway.key, body=b"{").status for _ in range(5)]
        assert statuses == [422, 422, 422, 429, 429]


@pytest.mark.requirement("GATE-7")
@pytest.mark.parametrize("way", ["unknown tool", "another's session", "closed session", "tool over its rate"])
def test_no_call_that_leaves_a_record_escapes_the_rate_of_its_key(tmp_path: Path, way: str) -> None:
    """Else an agent could fill the journal with refusals, 16 KB of arguments each, as fast as it sends them."""
    tool, session_id = ("query_incidents" if way == "tool over its rate" else "list_tables"), "mine"
    with limited(tmp_path, GatewayLimits(key_rate=Rate(6, 600.0))) as gateway:
        gateway.executor.on("query_incidents", Answers({}))
        if way == "another's session":
            other = gateway.state.keys.create([Scope.EXECUTE])[0]
            assert gateway.call("list_tables", {}, session_id="theirs", key=other).status == 200
            session_id = "theirs"
        if way == "closed session":
            session_id = gateway.open_session(key=gateway.key)
            assert gateway.request("DELETE", f"/v1/sessions/{session_id}", key=gateway.key).status == 204
        if way == "unknown tool":
            tool = "no_such_tool"
        for _ in range(10):
            last = gateway.call(tool, {}, session_id=session_id)
        assert (last.status, last.body["reason"]) == (429, "rate_limited")
        kinds = [record["kind"] for record in gateway.records()]
        assert kinds[-1] == "request_refused", "it ends at the door, where records have a budget"
        assert kinds.count("refusal") <= 6


@pytest.mark.requirement("GATE-7")
def test_a_tool_over_its_rate_is_429_for_that_key_and_that_tool(tmp_path: Path) -> None:
    with limited(tmp_path, GatewayLimits()) as gateway:
        gateway.executor.on("query_incidents", Answers({}))
        assert [gateway.call("query_incidents", {}).status for _ in range(2)] == [200, 200]
        refused = gateway.call("query_incidents", {})
        assert (refused.status, refused.body["reason"]) == (429, "rate_limited")
        assert 1 <= int(refused.headers["retry-after"]) <= 600
        record = gateway.last_record()
        assert (record["kind"], record["reason"], record["tool"]) == ("refusal", "rate_limited", "query_incidents")
        assert gateway.call("list_tables", {}).status == 200
        other = gateway.state.keys.create([Scope.EXECUTE])[0]
        assert gateway.call("query_incidents", {}, session_id="other", key=other).status == 200


@pytest.mark.requirement("GATE-7")
@pytest.mark.parametrize(("in_all", "per_key", "same_key"), [(2, 10, False), (10, 2, True)])
def test_calls_in_flight_are_bounded_in_all_and_for_a_key(
    tmp_path: Path, in_all: int, per_key: int, same_key: bool
) -> None:
    release = threading.Event()
    limits = GatewayLimits(calls_in_flight=in_all, calls_in_flight_per_key=per_key)
    with limited(tmp_path, limits) as gateway, ThreadPoolExecutor(4) as pool:
        keys = [gateway.state.keys.create([Scope.EXECUTE])[0] for _ in range(3)]
        gateway.executor.on("list_tables", Waits(release), Waits(release), Answers({}))
        try:
            held = [
                pool.submit(
                    gateway.call, "list_tables", {}, session_id=f"s{number}", key=keys[0 if same_key else number]
                )
                for number in range(2)
            ]
            for _ in held:
                assert gateway.executor.arrived.acquire(timeout=WAIT_S)
            refused = gateway.call("list_tables", {}, session_id="s0", key=keys[0])
            assert (refused.status, refused.body["reason"]) == (503, "overloaded")
            assert int(refused.headers["retry-after"]) >= 1
            assert gateway.last_record()["reason"] == "overloaded"
            third = gateway.call("list_tables", {}, session_id="s2", key=keys[2]).status
            assert third == (200 if same_key else 503)
        finally:
            release.set()
        assert [each.result().status for each in held] == [200, 200]
        assert gateway.call("list_tables", {}, session_id="s0", key=keys[0]).status == 200


@pytest.mark.requirement("GATE-7")
def test_sessions_of_a_key_are_bounded_and_an_agent_takes_no_room_from_its_person(tmp_path: Path) -> None:
    with limited(tmp_path, GatewayLimits(sessions_per_key=3)) as gateway:
        assert [gateway.call("list_tables", {}, session_id=f"s{number}").status for number in range(3)] == [200] * 3
        refused = gateway.call("list_tables", {}, session_id="s3")
        assert (refused.status, refused.body["reason"]) == (429, "rate_limited")
        assert int(refused.headers["retry-after"]) >= 1
        assert (gateway.last_record()["kind"], gateway.last_record()["reason"]) == ("refusal", "rate_limited")
        opened = gateway.request("POST", "/v1/sessions", key=gateway.key)
        assert (opened.status, opened.body["reason"]) == (429, "rate_limited")
        assert int(opened.headers["retry-after"]) >= 1
        assert gateway.last_record()["audit_id"] == opened.body["audit_id"]
        assert gateway.request("DELETE", "/v1/sessions/s0", key=gateway.key).status == 204
        assert gateway.call("list_tables", {}, session_id="s3").status == 429  # closing and opening gives no room
        assert gateway.call("list_tables", {}, session_id="s1").status == 200
        assert [gateway.request("POST", "/v1/sessions", key=gateway.user).status for _ in range(4)] == [201] * 3 + [429]


def test_places_are_given_back_and_leave_nothing_behind() -> None:
    places = InFlight(GatewayLimits(calls_in_flight=2, calls_in_flight_per_key=1))
    for number in range(1_000):
        key_id = f"key-{number}"
        assert places.refusal(key_id) is None
        places.enter(key_id)
        assert places.refusal(key_id) is not None
        assert places.refusal("another") is None
        places.leave(key_id)
    assert len(places) == 0
    assert not places._of_key


def test_a_body_over_the_bound_is_413_declared_or_in_chunks_and_no_more_of_it_is_read(tmp_path: Path) -> None:
    with limited(tmp_path, GatewayLimits(body_bytes=10_000)) as gateway:
        large = b'{"session_id":"s","tool_name":"list_tables","args":{"a":"' + b"a" * 200_000 + b'"}}'
        declared = head(gateway, "Content-Type: application/json", "Content-Length: 9000000000")
        chunked = head(gateway, "Content-Type: application/json", "Transfer-Encoding: chunked")
        for parts in ((declared, b"{"), (chunked, b"30d40\r\n" + large[:200_000])):  # neither body ever ends
            status, body = raw(gateway, *parts)
            assert (status, body["reason"]) == (413, "too_large")
            record = gateway.last_record()
            assert (record["kind"], record["http_status"]) == ("request_refused", 413)
            assert (record["audit_id"], record["route"]) == (body["audit_id"], "/v1/proxy-execute")
        just = b'{"session_id":"s","tool_name":"list_tables","args":{}}'
        just += b" " * (10_000 - len(just))
        assert gateway.request("POST", "/v1/proxy-execute", key=gateway.key, body=just).status == 200
        assert gateway.request("POST", "/v1/proxy-execute", key=gateway.key, body=just + b" ").status == 413


def test_a_slow_body_is_408_and_another_media_type_415_on_record(tmp_path: Path) -> None:
    with limited(tmp_path, GatewayLimits(body_seconds=0.1)) as gateway:
        status, body = raw(gateway, head(gateway, "Content-Type: application/json", "Content-Length: 100"), b"{")
        assert (status, body["reason"]) == (408, "malformed_body")
        assert (gateway.last_record()["http_status"], gateway.last_record()["audit_id"]) == (408, body["audit_id"])
        answer = gateway.request(
            "POST", "/v1/proxy-execute", key=gateway.key, body=b"{}", headers={"Content-Type": "text/plain"}
        )
        assert (answer.status, answer.body["reason"]) == (415, "unsupported_media_type")
        assert gateway.last_record()["audit_id"] == answer.body["audit_id"]


def test_a_connection_that_ends_within_a_body_is_on_record_and_harms_nobody(tmp_path: Path) -> None:
    with limited(tmp_path, GatewayLimits()) as gateway:
        address = urlsplit(gateway.url)
        with socket.create_connection((address.hostname, address.port)) as connection:
            connection.sendall(head(gateway, "Content-Type: application/json", "Content-Length: 100") + b"{")
        assert gateway.call("list_tables", {}).status == 200
        for _ in range(1_000):  # the record follows the end of the connection, which nobody here can wait for
            if any(record["kind"] == "request_refused" for record in gateway.records()):
                break
        refused = [record for record in gateway.records() if record["kind"] == "request_refused"]
        assert [(record["http_status"], record["reason"]) for record in refused] == [(400, "malformed_body")]


def test_a_tool_over_its_deadline_is_504(tmp_path: Path) -> None:
    release = threading.Event()
    with limited(tmp_path, GatewayLimits()) as gateway:
        gateway.executor.on("query_alerts", Waits(release))
        answer = gateway.call("query_alerts", {})
        release.set()
        assert (answer.status, answer.body["reason"]) == (504, "upstream_timeout")


def test_a_flood_of_refusals_is_counted_and_not_written_one_by_one(tmp_path: Path) -> None:
    import http.client

    with limited(tmp_path, GatewayLimits()) as gateway:
        address = urlsplit(gateway.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=WAIT_S)
        without_record = 0
        for _ in range(1_500):
            connection.request("GET", "/healthz", headers={"Host": "attacker.example"})
            response = connection.getresponse()
            without_record += "audit_id" not in json.loads(response.read())
            assert response.status == 421
        connection.close()
        assert without_record > 100
        written = gateway.state.database.run_now(
            lambda found: found.execute("SELECT count(*) FROM journal WHERE kind = 'request_refused'").fetchone()[0]
        )
        assert written == 1_500 - without_record
