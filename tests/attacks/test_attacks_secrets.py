"""Attacker controls: requests that are refused at the door in every way there is, and reads all that comes of them.

Wanted: a key, the pepper, the credential of a tool server, the webhook's secret, or what a caller sent in its headers
or its body, in an answer, a header of an answer, a log line or the journal. Canaries stand in all of them.
`test_attacks_denial_bodies.py` does the same behind the gate.
"""

from __future__ import annotations

import json
import logging
import socket
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from whole_gateway import WEBHOOK, whole_gateway

from sentinel_rag.gateway.admission import GatewayLimits
from sentinel_rag.gateway.policy.model import Rate
from sentinel_rag.gateway.store import KeyStore, Scope
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway
from waiting import WAIT_S

TOKEN = "canary-upstream-token-4711"  # planted to be looked for
SENT = "canary-of-the-caller"

HEADERS = {
    "Authorization": f"Bearer {SENT}",
    "Cookie": f"session={SENT}",
    "User-Agent": SENT,
    "X-Forwarded-For": SENT,
    "X-Sentinel-Signature": f"t=1,v1={SENT}",
}
CALL = json.dumps({"session_id": SENT, "tool_name": SENT, "args": {SENT: SENT}}).encode()


def drive(gateway: RunningGateway) -> tuple[list[tuple[int, bytes]], list[str]]:
    """Status and everything of each answer, and the keys that were used."""
    keys = gateway.state.keys
    revoked, info = keys.create([*Scope])
    keys.revoke(info.key_id)
    expired = keys.create([*Scope], expires_in=timedelta(microseconds=1))[0]
    old, rotated = keys.create([*Scope])
    new = keys.rotate(rotated.key_id)
    assert new is not None
    slow = keys.create([*Scope], rate=Rate(1, 600.0))[0]
    everything = keys.create([*Scope], for_key="agent")[0]
    wrong = f"sr_{rotated.key_id}_{'ab' * 32}"
    used = [revoked, expired, old, new[0], slow, everything, wrong, gateway.key, gateway.auditor]
    requests: list[tuple[str, str, str | None, bytes | None, dict[str, str]]] = [
        ("POST", "/v1/proxy-execute", key, CALL, {}) for key in (None, *used[:3], wrong, SENT, "sr_" + SENT)
    ]
    requests += [
        ("GET", f"/v1/{SENT}", everything, None, {}),
        ("PUT", "/v1/tools", everything, None, {}),
        ("GET", f"/v1/audit?after={SENT}", everything, None, {}),
        ("GET", f"/v1/audit/{SENT}", everything, None, {}),
        ("GET", f"/v1/sessions/{SENT}", everything, None, {}),
        ("GET", f"/v1/approvals/{SENT}", everything, None, {}),
        ("GET", f"/v1/approvals?state={SENT}", everything, None, {}),
        ("POST", f"/v1/approvals/{SENT}/approve", everything, b'{"comment":"' + SENT.encode() + b'"}', {}),
        ("POST", f"/v1/approvals/{SENT}/decision", None, CALL, {}),
        ("POST", f"/v1/pins/{SENT}/{SENT}", everything, b'{"sha256":"' + SENT.encode() + b'"}', {}),
        ("POST", f"/v1/sessions/{SENT}/words", everything, b'{"text":"' + SENT.encode() + b'"}', {}),
        ("POST", "/v1/proxy-execute", gateway.auditor, CALL, {}),
        ("POST", "/v1/proxy-execute", everything, SENT.encode(), {}),
        ("POST", "/v1/proxy-execute", everything, CALL, {"Content-Type": SENT}),
        ("POST", "/v1/proxy-execute", everything, CALL, {"Content-Encoding": SENT}),
        ("POST", "/v1/proxy-execute", everything, CALL + b" " * 30_000, {}),
        ("GET", "/healthz", everything, None, {"Host": f"{SENT}.example"}),
        ("GET", "/healthz", everything, None, {"Origin": f"http://{SENT}.example"}),
        ("GET", "/healthz?" + SENT * 1_000, everything, None, {}),
        ("GET", "/healthz", everything, None, {f"X-{number}": SENT for number in range(120)}),
        ("GET", "/v1/tools", slow, None, {}),
        ("GET", "/v1/tools", slow, None, {}),
        ("POST", "/v1/policy/reload", gateway.key, None, {}),
    ]
    answers = []
    for method, path, key, body, headers in requests:
        answer = gateway.request(method, path, key=key, body=body, headers={**HEADERS, **headers})
        answers.append((answer.status, answer.content + json.dumps(dict(answer.headers)).encode()))
    address = urlsplit(gateway.url)
    for lines in (
        f"GET http://{SENT}.example/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        f"{SENT}\r\n\r\n",
        f"GET / HTTP/1.1\r\nX-A: {SENT * 5_000}",
        f"POST /v1/proxy-execute HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: {everything}\r\n"
        f"Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{SENT[:5]}",
    ):
        with closing(socket.create_connection((address.hostname, address.port), timeout=WAIT_S)) as connection:
            connection.sendall(lines.encode())
            content = b"".join(iter(lambda wire=connection: wire.recv(65_536), b"")) if "POST" not in lines else b""
            if not content:
                content = connection.recv(65_536)
            answers.append((int(content.split()[1]), content))
    return answers, used


@pytest.mark.requirement("GATE-1")
def test_no_refusal_at_the_door_tells_what_was_sent_or_what_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    limits = GatewayLimits(body_bytes=20_000, body_seconds=0.2)
    with (
        FakeToolServer(token=TOKEN).running() as executor,
        whole_gateway(tmp_path, executor, limits=limits) as gateway,
    ):
        answers, used = drive(gateway)
        journal = b"".join(file.read_bytes() for file in tmp_path.glob("journal*"))
        stored = b"".join(file.read_bytes() for file in tmp_path.glob("keys.sqlite*"))
    statuses = {status for status, _ in answers}
    assert statuses >= {400, 401, 403, 404, 405, 408, 409, 413, 414, 415, 421, 422, 429, 431}
    assert not {status for status in statuses if status >= 500}
    pepper = (tmp_path / "keys.pepper").read_text().strip()
    secrets = [TOKEN, WEBHOOK.secret, pepper, *(key.rpartition("_")[2] for key in used)]
    inside = [str(tmp_path), executor.url, "Traceback", "sentinel_rag", ".py", "sqlite"]
    for status, content in answers:
        text = content.decode()
        assert [word for word in (*secrets, *inside, SENT) if word in text] == [], (status, text[:500])
    logs = caplog.text + "".join(capfd.readouterr())
    assert [word for word in (*secrets, SENT) if word in logs] == []
    for word in secrets:
        assert word.encode() not in journal
        assert word.encode() not in stored


def test_a_key_store_that_cannot_be_read_is_503_without_its_name(tmp_path: Path) -> None:
    with FakeToolServer().running() as executor, whole_gateway(tmp_path, executor) as gateway:
        key = gateway.key
        with closing(KeyStore(tmp_path / "keys.sqlite")) as other:
            other.create([Scope.AUDIT])
        with closing(sqlite3.connect(tmp_path / "keys.sqlite")) as file:
            file.execute("DROP TABLE secret")
        answer = gateway.request("GET", "/v1/tools", key=key)
        assert (answer.status, answer.body["reason"]) == (503, "overloaded")
        assert not {"sqlite", "secret", str(tmp_path)} & set(answer.content.decode().split())
        assert len(executor.calls) == 0
