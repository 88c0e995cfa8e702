"""Attacker controls: what each file of `bypass_corpus/` says; wanted is what it says there too.

Every entry is an attack with its benign twin, as data: a call (`tool`, `args`), or a body byte for byte (`body`,
`body_base64`, `body_parts`), with headers, method and path where they matter. The attack is sent to a real gateway over
HTTP: it is answered as `expected`, its record says the same, and nothing reaches the tool server. The twin looks alike
and is let through; what the tool server got is `forwarded`.
"""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from sentinel_rag.audit import JournalReader
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.gateway.policy import Policy, parse_policy
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import HttpAnswer, RunningGateway, running_gateway
from waiting import WAIT_S

CORPUS = Path(__file__).parent / "bypass_corpus"
FAMILIES = {
    file.stem: yaml.load(file.read_text(), Loader=yaml.CSafeLoader)  # a safe loader in C
    for file in sorted(CORPUS.glob("*.yaml"))
}
WITHOUT_RECORD = ("not_found", "method_not_allowed")
"""No key was asked for: nothing is at such a route, so nothing was refused to anybody."""


@dataclass(frozen=True)
class Doors:
    """A gateway with a tool server of its own for each family, made when it is first asked for."""

    folder: Path
    closing: ExitStack
    opened: dict[str, RunningGateway] = field(default_factory=dict)

    def of(self, family: str) -> RunningGateway:
        if family not in self.opened:
            policy = parse_policy(FAMILIES[family]["policy"])
            executor = self.closing.enter_context(FakeToolServer(served_tools(policy)).running())
            gateway = running_gateway(policy, self.folder / family, executor)
            self.opened[family] = self.closing.enter_context(gateway)
        return self.opened[family]


def served_tools(policy: Policy) -> Iterator[ToolSchema]:
    for tool in policy.tools.values():
        properties = {name: {"type": parameter.type.kind.value} for name, parameter in tool.parameters.items()}
        yield ToolSchema(tool.name, tool.description, {"type": "object", "properties": properties})


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    with ExitStack() as closing:
        yield Doors(tmp_path_factory.mktemp("corpus"), closing)


def body_of(request: dict[str, Any]) -> bytes | None:
    if "body" in request:
        return str(request["body"]).encode()
    if "body_base64" in request:
        return base64.b64decode(request["body_base64"])
    if "body_parts" in request:
        return "".join(
            part if isinstance(part, str) else part["text"] * part["times"] for part in request["body_parts"]
        ).encode()
    if "tool" in request:
        return json.dumps({"session_id": "s", "tool_name": request["tool"], "args": request["args"]}).encode()
    return None


def send(gateway: RunningGateway, request: dict[str, Any]) -> HttpAnswer:
    headers = request.get("headers", [["Content-Type", "application/json"], ["X-API-Key", "{key}"]])
    key = gateway.key
    body = body_of(request)
    address = urlsplit(gateway.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=WAIT_S)
    try:
        names = {name.lower() for name, _ in headers}
        path = request.get("path", "/v1/proxy-execute").replace("{key}", key)
        connection.putrequest(request.get("method", "POST"), path, skip_host="host" in names, skip_accept_encoding=True)
        for name, value in headers:
            connection.putheader(name, value.replace("{key}", key).replace("{KEY}", key.upper()))
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        response = connection.getresponse()
        content = response.read()
        return HttpAnswer(response.status, {name.lower(): text for name, text in response.getheaders()}, content)
    finally:
        connection.close()


@pytest.mark.requirement("GATE-6")
@pytest.mark.parametrize("family", FAMILIES)
def test_each_attack_is_denied_on_record_and_not_sent(doors: Doors, family: str, subtests: pytest.Subtests) -> None:
    for entry in FAMILIES[family]["entries"]:
        with subtests.test(entry["name"]):
            denied_on_record_and_not_sent(doors.of(family), entry)


def denied_on_record_and_not_sent(gateway: RunningGateway, entry: dict[str, Any]) -> None:
    expected = entry["expected"]
    before = len(gateway.executor.calls)
    answer = send(gateway, entry["attack"])
    assert (answer.status, answer.body["reason"]) == (expected["status"], expected["reason"]), answer.content
    assert answer.body.get("rule_id") == expected.get("rule_id")
    assert len(gateway.executor.calls) == before
    if expected["reason"] not in WITHOUT_RECORD:
        records = [found.record for found in JournalReader(gateway.state.database.path).find(answer.body["audit_id"])]
        assert [record["reason"] for record in records] == [expected["reason"]]
        assert records[0].get("rule_id") == expected.get("rule_id")
        assert records[0].get("http_status", expected["status"]) == expected["status"]


@pytest.mark.parametrize("family", FAMILIES)
def test_each_benign_twin_is_let_through(doors: Doors, family: str, subtests: pytest.Subtests) -> None:
    gateway = doors.of(family)
    for entry in FAMILIES[family]["entries"]:
        with subtests.test(entry["name"]):
            before = len(gateway.executor.calls)
            answer = send(gateway, entry["benign"])
            assert answer.status == 200, answer.content
            assert len(gateway.executor.calls) == before + 1
            if "forwarded" in entry:
                assert gateway.executor.calls[-1].arguments == entry["forwarded"]


def test_the_corpus_is_large_and_its_twins_differ_from_the_attacks() -> None:
    entries = [entry for document in FAMILIES.values() for entry in document["entries"]]
    assert len(entries) >= 300
    assert all(entry["attack"] != entry["benign"] for entry in entries)
    attacks = [json.dumps(entry["attack"], sort_keys=True) for entry in entries]
    assert len(set(attacks)) > len(attacks) - 10, "a few are asked under two policies"
    for document in FAMILIES.values():
        assert document["attacker_controls"]
        assert document["wants"]
