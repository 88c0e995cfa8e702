"""Attacker controls: the key header, and reads the files of the state folder.

Wanted: a key from what is stored, a key given twice, one that another process has ended, another method of a route.
`test_attacks_routes.py` tries every wrong key at every route.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from sentinel_rag.gateway.policy import Policy
from sentinel_rag.gateway.store import KeyStore, Scope
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway

EXECUTE = json.dumps({"session_id": "s", "tool_name": "list_tables", "args": {}}).encode()


@pytest.fixture(scope="module")
def shared_gateway(shipped_policy: Policy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    with (
        FakeToolServer().running() as executor,
        running_gateway(shipped_policy, tmp_path_factory.mktemp("state"), executor) as running,
    ):
        yield running


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
    assert [(each.name, each.revoked_at is None) for each in serving.list()] == [("night shift", False)]
    assert path.stat().st_mode & 0o777 == 0o600
    serving.close()
    administration.close()


def test_another_method_is_405_in_json(shared_gateway: RunningGateway) -> None:
    for method, path in [("GET", "/v1/proxy-execute"), ("POST", "/v1/audit"), ("PUT", "/healthz")]:
        answer = shared_gateway.request(method, path, key=shared_gateway.key)
        assert (answer.status, answer.body["reason"]) == (405, "method_not_allowed")
        assert answer.headers["allow"]
