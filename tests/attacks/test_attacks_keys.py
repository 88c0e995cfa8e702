"""Attacker controls: every header of a request, and knows the form of a key and the ids of live ones.

Wanted: a route without a key, a route with the wrong scope, a key that was revoked, a key in some other spelling. Each
is 401 or 403 on every route, recorded without the key, and no tool server hears of it.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from sentinel_rag.interceptor.policy import Policy
from sentinel_rag.interceptor.store import KeyStore, Scope
from sentinel_rag.testing.fake_executor import FakeExecutor
from sentinel_rag.testing.running_gateway import RunningGateway, running_gateway

EXECUTE = json.dumps({"session_id": "s", "tool_name": "list_tables", "args": {}}).encode()
ROUTES = [
    ("POST", "/v1/proxy-execute", EXECUTE, Scope.EXECUTE),
    ("GET", "/v1/tools", None, Scope.EXECUTE),
    ("POST", "/v1/sessions", None, Scope.EXECUTE),
    ("DELETE", "/v1/sessions/s", None, Scope.EXECUTE),
    ("GET", "/v1/audit", None, Scope.AUDIT),
    ("GET", "/v1/audit/some-id", None, Scope.AUDIT),
]


@pytest.fixture(scope="module")
def shared_gateway(shipped_policy: Policy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    with (
        FakeExecutor().running() as executor,
        running_gateway(shipped_policy, tmp_path_factory.mktemp("state"), executor) as running,
    ):
        yield running


def wrong_keys(gateway: RunningGateway) -> dict[str, str | None]:
    good = gateway.key
    prefix, key_id, secret = good.split("_")
    revoked, info = gateway.state.keys.create([*Scope])
    gateway.state.keys.revoke(info.key_id)
    return {
        "no key": None,
        "empty": "",
        "text": "secret",
        "right id, wrong secret": f"{prefix}_{key_id}_{'0' * 64}",
        "wrong id, right secret": f"{prefix}_{'0' * 12}_{secret}",
        "hash instead of secret": f"{prefix}_{key_id}_",
        "upper case": good.upper(),
        "blank behind": good + " x",
        "comma": f"{good},{good}",
        "Bearer": f"Bearer {good}",
        "cut": good[:-1],
        "longer": good + "0",
        "revoked": revoked,
        "sql": f"sr_' OR 1=1 --_{secret}",
        "huge": "sr_" + "a" * 5_000,
    }


@pytest.mark.parametrize(("method", "path", "body", "scope"), ROUTES, ids=lambda value: str(value)[:20])
def test_every_route_refuses_every_wrong_key_and_scope(
    shared_gateway: RunningGateway, method: str, path: str, body: bytes | None, scope: Scope
) -> None:
    gateway = shared_gateway
    before = len(gateway.executor.calls)
    for name, key in wrong_keys(gateway).items():
        answer = gateway.request(method, path, key=key, body=body)
        assert (answer.status, answer.body["reason"]) == (401, "unauthenticated"), name
        [entry] = _find(gateway, answer.body["audit_id"])
        assert (entry["kind"], entry["method"]) == ("authentication_failed", method), name
    for other in Scope:
        key = gateway.state.keys.create([other])[0]
        answer = gateway.request(method, path, key=key, body=body)
        if other is scope:
            assert answer.status in (200, 201, 204, 404), other
        else:
            assert (answer.status, answer.body["reason"]) == (403, "missing_scope"), other
            assert _find(gateway, answer.body["audit_id"])[0]["reason"] == "missing_scope"
    ran = len(gateway.executor.calls) - before
    assert ran == (1 if path == "/v1/proxy-execute" else 0)


def test_no_secret_stands_in_the_journal_or_in_the_key_store(shared_gateway: RunningGateway) -> None:
    gateway = shared_gateway
    wrong = "sr_" + "c" * 12 + "_" + "d" * 64
    assert gateway.request("GET", "/v1/tools", key=wrong).status == 401
    folder = gateway.state.database.path.parent
    stored = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
    for key in (gateway.key, gateway.auditor, wrong):
        assert key.encode() not in stored
        assert key.rpartition("_")[2].encode() not in stored


def test_two_key_headers_are_none(shared_gateway: RunningGateway) -> None:
    address = urlsplit(shared_gateway.url)
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(
            f"GET /v1/tools HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: {shared_gateway.key}\r\n"
            f"X-API-Key: {shared_gateway.key}\r\nConnection: close\r\n\r\n".encode()
        )
        assert connection.makefile("rb").readline().split()[1] == b"401"


def test_a_key_changed_by_another_process_counts_at_once(tmp_path: Path) -> None:
    path = tmp_path / "keys.sqlite"
    serving, administration = KeyStore(path), KeyStore(path)
    key, info = administration.create([Scope.AUDIT], name="night shift")
    principal = serving.verify(key)
    assert principal is not None
    assert (principal.key_id, principal.scopes) == (info.key_id, {Scope.AUDIT})
    assert administration.revoke(info.key_id)
    assert not administration.revoke(info.key_id)
    assert not administration.revoke("none-such")
    assert serving.verify(key) is None
    assert serving.known_id(key) is None
    assert [(each.name, each.revoked_at is None) for each in serving.list()] == [("night shift", False)]
    assert path.stat().st_mode & 0o777 == 0o600
    serving.close()
    administration.close()


@pytest.mark.parametrize("path", ["/v1/nothing", "/v1/proxy-execute/", "//v1/tools", "/V1/TOOLS", "/v1/%74ools/x", "/"])
def test_another_form_of_the_url_is_no_route(shared_gateway: RunningGateway, path: str) -> None:
    answer = shared_gateway.request("GET", path)
    assert (answer.status, answer.body["reason"]) == (404, "not_found")


def test_another_method_is_405_in_json(shared_gateway: RunningGateway) -> None:
    for method, path in [("GET", "/v1/proxy-execute"), ("POST", "/v1/audit"), ("PUT", "/healthz")]:
        answer = shared_gateway.request(method, path, key=shared_gateway.key)
        assert (answer.status, answer.body["reason"]) == (405, "method_not_allowed")
        assert answer.headers["allow"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "attacker.example"},
        {"Host": "127.0.0.1.attacker.example"},
        {"Host": "127.0.0.1@attacker.example"},
        {"Host": "attacker.example:80"},
        {"Host": ""},
        {"Host": "2130706433"},
        {"Host": "0.0.0.0"},
        {"Origin": "https://attacker.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1.attacker.example"},
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


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:1", "LOCALHOST", "[::1]:8080"])
def test_our_own_names_are_let_through(shared_gateway: RunningGateway, host: str) -> None:
    assert shared_gateway.request("GET", "/healthz", headers={"Host": host}).body == {"status": "ok"}


def _find(gateway: RunningGateway, audit_id: str) -> list[dict[str, str]]:
    answer = gateway.request("GET", f"/v1/audit/{audit_id}", key=gateway.auditor)
    assert answer.status == 200
    return [found["record"] for found in answer.body["records"]]
