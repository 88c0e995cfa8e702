"""What a call wrote into an incident, read back by another way. The attacker is a hijacked agent: it writes a secret
into a field of an incident (a person approves the change) and reads it in a clean session through a tool that shows
incidents too, or under another name of the incident, hoping that the text comes back as less than it was.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.gateway.policy import load_policy, parse_policy
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway

CONFIG = Path(__file__).resolve().parents[2] / "config"
POLICIES = [CONFIG / "sentinel_config.yaml", CONFIG / "examples" / "own_words.yaml"]
WAYS_BACK = [
    ("query_incidents", {}),
    ("get_incident_detail", {"incident": "14"}),
    ("get_incident_detail", {"incident": "#14"}),
    ("get_threat_summary", {}),
    ("run_kql_query", {"template": "incidents_by_owner"}),
    ("describe_table", {"table": "SecurityIncident", "examples": True}),
]


@pytest.fixture(scope="module", params=POLICIES, ids=lambda path: path.stem)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """A gateway at which a secret was written into incident 14."""
    policy = load_policy(request.param)
    with (
        FakeToolServer().running() as executor,
        running_gateway(policy, tmp_path_factory.mktemp("stored"), executor) as gateway,
    ):
        first = gateway.open_session()
        assert gateway.call("get_alert_events", {"alert_id": "a1"}, session_id=first).status == 200
        change = {"incident": "14", "owner": "SECRET"}
        asked = gateway.call("update_incident", change, session_id=first)
        assert asked.body["reason"] == "approval_required"
        path = f"/v1/approvals/{asked.body['approval_id']}/approve"
        assert gateway.request("POST", path, key=gateway.approver, body=json.dumps({}).encode()).status == 200
        assert gateway.call("update_incident", change, session_id=first).status == 200
        yield gateway


@pytest.mark.requirement("TAINT-6")
@pytest.mark.parametrize(("tool", "arguments"), WAYS_BACK, ids=str)
def test_it_comes_back_as_secret_as_it_was(written: RunningGateway, tool: str, arguments: dict[str, object]) -> None:
    session = written.open_session()
    answer = written.call(tool, arguments, session_id=session)
    assert answer.status == 200
    assert written.context(session) == ("HIGH", "UNTRUSTED")
    audit_id = answer.body["audit_id"]
    intent = next(r for r in written.records() if r.get("audit_id") == audit_id and "label" in r)
    assert intent["label"] == {"sensitivity": "HIGH", "integrity": "UNTRUSTED"}


@pytest.mark.requirement("TAINT-6")
@pytest.mark.parametrize(
    ("tool", "parameter", "server"),
    [
        ("get_incident_detail", "incident", "sentinel"),
        ("query_alerts", "incident", "sentinel"),
        ("search_knowledge_base", "like_incident", "knowledge"),
    ],
)
def test_no_policy_reads_an_incident_by_one_of_its_names(tool: str, parameter: str, server: str) -> None:
    policy = f"""
tools:
  - name: {tool}
    server: {server}
    effect: read
    reads: ["incident/{{{parameter}}}"]
    parameters: [{{name: {parameter}, type: string, required: true}}]
    taint_rules: [{{rule_id: any, condition: "true", taint_level: LOW}}]
"""
    with pytest.raises(ConfigurationError) as refused:
        parse_policy(policy, source="p.yaml")
    assert any("p.yaml:6: reads: an incident has several names" in problem for problem in refused.value.problems)
