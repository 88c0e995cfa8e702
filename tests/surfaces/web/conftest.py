"""The web surface over a gateway whose policy hides a field, asks a person for one tool and denies another."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from running_web import RunningWeb, running_web

from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.gateway.policy.loading import PolicyArchive, PolicyBook
from sentinel_rag.gateway.store import State, new_audit_id
from sentinel_rag_testing.fake_tool_server import Answers, FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway

POLICY = """
tools:
  - name: read_alert
    effect: read
    parameters: []
    output_labels:
      - {path: /rows/*/CommandLine, sensitivity: HIGH, integrity: UNTRUSTED}
    exposure:
      - {path: /rows/*/CommandLine, mode: hide}
    taint_rules: [{rule_id: read_alert_any, condition: "true", taint_level: LOW}]
  - name: read_sealed
    effect: read
    parameters: []
    taint_rules: [{rule_id: read_sealed_asks, condition: "true", taint_level: HIGH, requires_approval: true}]
  - name: isolate
    effect: write
    parameters: [{name: host, type: string, required: true, attest: host}]
    taint_rules: [{rule_id: isolate_asks, condition: "true", taint_level: LOW, requires_approval: true}]
  - name: label
    effect: write
    parameters: [{name: host, type: string, required: true, attest: host}]
    taint_rules: [{rule_id: label_asks, condition: "true", taint_level: LOW, confirm: asker}]
  - name: forbidden
    effect: write
    parameters: []
    taint_rules: [{rule_id: forbidden_deny, condition: "true", taint_level: LOW, deny: true}]
"""
HIDDEN = "powershell -enc SECRET admin"
ROWS = {"rows": [{"Host": "ws-01", "CommandLine": HIDDEN}], "total": 1}


@pytest.fixture(scope="module")
def web_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    folder = tmp_path_factory.mktemp("web")
    file = folder / "policy.yaml"
    file.write_text(POLICY)
    policy = parse_policy(POLICY, source="web")

    def book(state: State) -> PolicyBook:
        archive = PolicyArchive(folder / "policies")
        return PolicyBook(file, archive=archive, record=state.journal.append, new_id=new_audit_id)

    schemas = [
        ToolSchema(tool.name, "", {"type": "object", "properties": {name: {} for name in tool.parameters}})
        for tool in policy.tools.values()
    ]
    with (
        FakeToolServer(schemas, token="t").running() as executor,
        running_gateway(policy, folder / "state", executor, policies=book) as running,
    ):
        executor.on("read_alert", Answers(ROWS))
        yield running


@pytest.fixture(scope="module")
def web(web_gateway: RunningGateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWeb]:
    """The surface, shared by the tests of a file; each uses accounts of its own."""
    with running_web(web_gateway, tmp_path_factory.mktemp("surface")) as running:
        yield running
