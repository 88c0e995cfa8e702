"""Attacker controls: a page in the analyst's browser, every byte of the request line, and every header.

Wanted: a request that the browser sends for another host and that counts here (DNS rebinding, a cross-site form), a
route under a spelling for which nobody asks for the key, a header that changes who is asked or who asked.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from sentinel_rag.app.serving import check_reach
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.gateway.admission import GatewayLimits
from sentinel_rag.gateway.policy import Policy
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway
from waiting import WAIT_S

EXECUTE = json.dumps({"session_id": "s", "tool_name": "list_tables", "args": {}}).encode()


@pytest.fixture(scope="module")
def shared_gateway(shipped_policy: Policy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    with (
        FakeToolServer(token="upstream-token").running() as executor,
        running_gateway(shipped_policy, tmp_path_factory.mktemp("state"), executor) as running,
    ):
        yield running


def raw(gateway: RunningGateway, request: bytes) -> tuple[int, Any]:
    """Status and JSON of the answer to exactly these bytes; 0 where there is none."""
    address = urlsplit(gateway.url)
    with socket.create_connection((address.hostname, address.port), timeout=WAIT_S) as connection:
        connection.sendall(request)
        with connection.makefile("rb") as reader:
            line = reader.readline()
            length = 0
            while (header := reader.readline()) not in (b"\r\n", b""):
                if header.lower().startswith(b"content-length:"):
                    length = int(header.partition(b":")[2])
            return (int(line.split()[1]), json.loads(reader.read(length) or b"null")) if line else (0, None)


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "attacker.example"},
        {"Host": "127.0.0.1.attacker.example"},
        {"Host": "127.0.0.1@attacker.example"},
        {"Host": "attacker.example@127.0.0.1"},
        {"Host": "attacker.example:80"},
        {"Host": "127.0.0.1:80:80"},
        {"Host": "127.0.0.1:port"},
        {"Host": "127.0.0.1:999999"},
        {"Host": "127.0.0.1."},
        {"Host": "localhost."},
        {"Host": "localhost.localdomain"},
        {"Host": "127.0.0.1/"},
        {"Host": "127.0.0.1, attacker.example"},
        {"Host": "127.1"},
        {"Host": "0x7f000001"},
        {"Host": "017700000001"},
        {"Host": "2130706433"},
        {"Host": "127.0.0.2"},
        {"Host": "0.0.0.0"},
        {"Host": "[::]"},
        {"Host": "::1"},
        {"Host": "[::ffff:127.0.0.1]"},
        {"Host": "[::1%25lo]"},
        {"Host": "[::1]attacker.example"},
        {"Host": ""},
        {"Host": " "},
        {"Origin": "https://attacker.example"},
        {"Origin": "null"},
        {"Origin": "file://"},
        {"Origin": ""},
        {"Origin": "127.0.0.1"},
        {"Origin": "https://127.0.0.1.attacker.example"},
        {"Origin": "http://127.0.0.1@attacker.example"},
        {"Origin": "http://127.0.0.1:80@attacker.example"},
        {"Origin": "http://localhost.attacker.example:80"},
        {"Origin": "http://127.0.0.1/http://attacker.example"},
        {"Origin": "http://127.0.0.1 http://attacker.example"},
    ],
    ids=str,
)
def test_a_request_for_another_host_or_from_a_foreign_page_reaches_no_route(
    shared_gateway: RunningGateway, headers: dict[str, str]
) -> None:
    before = len(shared_gateway.executor.calls)
    answer = shared_gateway.request("POST", "/v1/proxy-execute", key=shared_gateway.key, body=EXECUTE, headers=headers)
    assert (answer.status, answer.body["reason"]) == (421, "misdirected")
    assert len(shared_gateway.executor.calls) == before
    record = shared_gateway.last_record()
    assert (record["kind"], record["reason"], record["http_status"]) == ("request_refused", "misdirected", 421)
    assert (record["audit_id"], record["key_id"]) == (answer.body["audit_id"], None)
    assert not any(value and value in json.dumps(record) for value in headers.values() if "attacker" in value)


@pytest.mark.parametrize(
    "head",
    [
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.0\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: attacker.example\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: attacker.example\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\nOrigin: http://attacker.example\r\n\r\n",
        b"GET http://attacker.example/healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET http://127.0.0.1/healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    ],
    ids=repr,
)
def test_a_request_for_no_host_or_for_two_is_421(shared_gateway: RunningGateway, head: bytes) -> None:
    status, body = raw(shared_gateway, head)
    assert (status, body["reason"]) == (421, "misdirected")


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "127.0.0.1"},
        {"Host": "localhost:1"},
        {"Host": "LOCALHOST"},
        {"Host": "[::1]:8080"},
        {"Origin": "http://127.0.0.1:3000"},
        {"Origin": "https://localhost"},
    ],
    ids=str,
)
def test_our_own_names_are_let_through(shared_gateway: RunningGateway, headers: dict[str, str]) -> None:
    assert shared_gateway.request("GET", "/healthz", headers=headers).body == {"status": "ok"}


@pytest.mark.parametrize(
    "path",
    [
        *("/v1/nothing", "/v1/proxy-execute/", "//v1/tools", "/v1//tools", "/V1/TOOLS", "/v1/tools/", "/v1/tools;x=1"),
        *("/v1/./tools", "/v1/../v1/tools", "/v1/%2e/tools", "/v1/%2e%2e/v1/tools", "/healthz/../v1/tools"),
        *("/healthz/%2e%2e/v1/tools", "/healthz%2f..%2fv1%2ftools", "/%2fv1/tools", "/v1%2ftools/x", "/v1\\tools"),
        *(
            "/v1/tools%00",
            "/v1/tools%20",
            "/v1/tools%0a",
            "/v1/tools%0d%0a",
            "/v1/%74ools/x",
            "/v1/tools.json",
            "/v1/t%C3%B4ols",
            "/",
        ),
        *("/v1/%ff", "/v1/%", "/v1/%zz", "/v1/%u0074ools", "/v1/tools%23", "/v1/tools%3fx", "/api/v1/tools"),
    ],
)
def test_another_spelling_of_a_url_is_no_route(shared_gateway: RunningGateway, path: str) -> None:
    for key in (None, shared_gateway.key):
        answer = shared_gateway.request("GET", path, key=key)
        assert (answer.status, answer.body["reason"]) == (404, "not_found")


@pytest.mark.parametrize("path", ["/v1/%74ools", "/%76%31/tools", "/v1/tools?", "/v1%2Ftools", "/v1/sessions/a%2Fb"])
def test_a_spelling_that_is_a_route_asks_for_the_key(shared_gateway: RunningGateway, path: str) -> None:
    assert shared_gateway.request("GET", path).status in (401, 404)
    assert shared_gateway.request("GET", path, headers={"X-API-Key": "sr_none"}).status in (401, 404)


def test_no_header_sends_a_request_to_another_route_or_hides_who_sent_it(shared_gateway: RunningGateway) -> None:
    forged = {
        "X-Original-URL": "/v1/tools",
        "X-Rewrite-URL": "/v1/tools",
        "X-Forwarded-Prefix": "/v1/tools",
        "X-Forwarded-Host": "attacker.example",
        "X-Forwarded-For": "203.0.113.9",
        "X-Forwarded-Proto": "https",
        "Forwarded": "for=203.0.113.9;host=attacker.example",
        "X-Real-IP": "203.0.113.9",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
    }
    assert shared_gateway.request("GET", "/healthz", headers=forged).body == {"status": "ok"}
    refused = shared_gateway.request("GET", "/v1/tools", headers=forged)
    assert refused.status == 401
    record = shared_gateway.last_record()
    assert (record["audit_id"], record["client"]) == (refused.body["audit_id"], "127.0.0.1")
    assert "203.0.113.9" not in json.dumps(record)


def test_no_header_of_the_caller_reaches_a_tool_server(shared_gateway: RunningGateway) -> None:
    sent = {
        "Authorization": "Bearer canary-of-the-caller",
        "Cookie": "session=canary-of-the-caller",
        "Mcp-Session-Id": "canary-of-the-caller",
        "Mcp-Method": "canary-of-the-caller",
        "X-Forwarded-For": "canary-of-the-caller",
        "Traceparent": "canary-of-the-caller",
        "Baggage": "canary=canary-of-the-caller",
        "X-Canary": "canary-of-the-caller",
        "User-Agent": "canary-of-the-caller",
        "Accept-Language": "canary-of-the-caller",
        "Content-Type": "application/json; charset=canary-of-the-caller",
    }
    answer = shared_gateway.request("POST", "/v1/proxy-execute", key=shared_gateway.key, body=EXECUTE, headers=sent)
    assert answer.status == 200
    call = shared_gateway.executor.calls[-1]
    assert "canary" not in json.dumps(dict(call.headers)) + call.body.decode()
    assert shared_gateway.key not in json.dumps(dict(call.headers)) + call.body.decode()
    assert call.headers["authorization"] == "Bearer upstream-token"


def test_urls_and_heads_out_of_measure_have_their_own_status_and_record(shared_gateway: RunningGateway) -> None:
    limits = GatewayLimits()
    too_long = "/healthz?" + "a" * limits.url_bytes
    many = {f"X-{number}": "x" for number in range(limits.header_count)}
    large = {"X-Large": "x" * limits.header_bytes}
    for path, headers, status in [(too_long, {}, 414), ("/healthz", many, 431), ("/healthz", large, 431)]:
        answer = shared_gateway.request("GET", path, headers=headers)
        assert (answer.status, answer.body["reason"]) == (status, "too_large")
        record = shared_gateway.last_record()
        assert (record["audit_id"], record["http_status"]) == (answer.body["audit_id"], status)
    just = "/healthz?" + "a" * (limits.url_bytes - len("/healthz"))
    assert shared_gateway.request("GET", just).status == 200


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")])
def test_a_zone_does_not_serve_where_other_machines_reach_it(family: socket.AddressFamily, address: str) -> None:
    try:
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.bind((address, 0))
    except OSError:
        pytest.skip("this machine has no such address")
    with listener, pytest.raises(UsageError, match="other machines") as refused:
        check_reach(listener)
    assert refused.value.next_step
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as own:
        own.bind(("127.0.0.1", 0))
        check_reach(own)
