"""Incidents are changed through all zones, on the embedded workspace and on an Azure that settings name."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from sentinel_rag.workspace.sample.options import EstateOptions
from sentinel_rag.workspace.server import EMBEDDED_RESOURCE_ID, create_app
from sentinel_rag.workspace.workspace import Workspace
from sentinel_rag_testing.loopback import serve
from waiting import WAIT_S

POLICY = """
tools:
  - name: get_incident_detail
    effect: read
    parameters: [{name: incident, type: string, required: true}]
    taint_rules: [{rule_id: read, condition: "true", taint_level: LOW}]
  - name: update_incident
    effect: write
    accepts: {sensitivity: HIGH, integrity: UNTRUSTED}
    parameters:
      - {name: incident, type: string, required: true}
      - {name: status, type: string}
      - {name: severity, type: string}
      - {name: classification, type: string}
    taint_rules: [{rule_id: write, condition: "true", taint_level: LOW}]
  - name: add_incident_comment
    effect: write
    accepts: {sensitivity: HIGH, integrity: UNTRUSTED}
    parameters: [{name: incident, type: string, required: true}, {name: message, type: string, required: true}]
    taint_rules: [{rule_id: comment, condition: "true", taint_level: LOW}]
"""


def execute(parts: Any, key: str, tool: str, session: str | None = None, **args: Any) -> tuple[int, Any]:
    """One call with the agent's key, in a session of its own unless one is given."""
    body = json.dumps({"session_id": session or str(uuid4()), "tool_name": tool, "args": args}).encode()
    request = urllib.request.Request(
        f"{parts['interceptor']['url']}/v1/proxy-execute",
        body,
        {"Content-Type": "application/json", "X-API-Key": key},
    )
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def permitting(sentinel: Any, folder: Path, **settings: str) -> Any:
    """The product under a policy that asks nobody: what is tested here are the tools, not the approvals."""
    policy = folder / "policy.yaml"
    policy.write_text(POLICY)
    return type(sentinel)(sentinel.home, {**sentinel.settings, "SENTINEL_CONFIG": str(policy), **settings})


@pytest.mark.requirement("DATA-4")
def test_an_incident_is_changed_through_all_zones_and_stays_so_after_a_restart(generated: Any, tmp_path: Path) -> None:
    product = permitting(generated.copy(tmp_path / "home"), tmp_path)
    key = product.environment["SENTINEL_API_KEY"]
    with product.up() as parts:
        code, body = execute(parts, key, "update_incident", incident="124", status="Closed")
        assert (code, body["reason"]) == (422, "invalid_argument")
        assert body["error"]["field"] == "classification"
        code, body = execute(
            parts, key, "update_incident", incident="124", status="Closed", classification="TruePositive"
        )
        assert code == 200, body
        assert {change["field"] for change in body["result"]["rows"][0]["changes"]} == {
            "status",
            "classification",
            "classification_reason",
        }
        code, body = execute(parts, key, "add_incident_comment", incident="124", message="Closed by hand.")
        assert code == 200, body
    with product.up() as parts:
        code, body = execute(parts, key, "get_incident_detail", incident="124")
        assert code == 200, body
        (row,) = body["result"]["rows"]
        assert (row["status"], row["classification"]) == ("Closed", "TruePositive")
        assert row["comments"][-1]["message"] == "Closed by hand."
        events = [event["event"] for event in row["timeline"]]
        assert "Status changed from Active to Closed by External application - Sentinel RAG" in events


@pytest.mark.requirement("DATA-4")
def test_the_shipped_policy_lets_a_change_pass_once_a_person_has_approved_it(generated: Any, tmp_path: Path) -> None:
    product = generated.copy(tmp_path / "home")
    key = product.environment["SENTINEL_API_KEY"]
    arguments = {"incident": "124", "severity": "Low"}
    session = str(uuid4())
    with product.up() as parts:
        code, body = execute(parts, key, "update_incident", session, **arguments)
        assert (code, body["reason"]) == (403, "approval_required")
        product.json("approvals", "approve", body["approval_id"])
        code, body = execute(parts, key, "update_incident", session, **{**arguments, "severity": "Informational"})
        assert (code, body["reason"]) == (403, "approval_required")  # another call is another question
        code, body = execute(parts, key, "update_incident", session, **arguments)
        assert code == 200, body
        assert body["result"]["rows"][0]["changes"] == [{"field": "severity", "before": "High", "after": "Low"}]
        code, body = execute(parts, key, "update_incident", session, **arguments)
        assert (code, body["reason"]) == (403, "approval_required")


@pytest.mark.requirement("DATA-4")
def test_azure_is_changed_by_settings_alone(sentinel: Any, tmp_path: Path) -> None:
    workspace_id, header = str(uuid4()), "an-identity-header-of-the-tests"
    workspace = Workspace.open(tmp_path / "served")
    try:
        workspace.generate(EstateOptions(days=8, events=50))
        app = create_app(
            workspace, workspace_id=workspace_id, identity_header=header, admin_token="an-admin-token-of-the-tests"
        )
        with serve(app) as url:
            azure = {
                "SENTINEL_WORKSPACE_ID": f"prod={workspace_id}",
                "SENTINEL_LOGS_ENDPOINT": url,
                "SENTINEL_ARM_ENDPOINT": url,
                "IDENTITY_ENDPOINT": f"{url}/msi/token",
                "IDENTITY_HEADER": header,
            }
            read_only = permitting(sentinel, tmp_path, **azure)
            key = read_only.environment["SENTINEL_API_KEY"]
            doctor = read_only.json("doctor", "--azure", code=1)
            assert {
                check["detail"].partition(":")[0]: check["ok"] for check in doctor if check["name"] == "azure prod"
            } == {
                "query logs": True,
                "incidents in the log": True,
                "change incidents": False,
            }
            with read_only.up() as parts:
                code, body = execute(parts, key, "update_incident", incident="124", severity="Low")
                assert code == 502
                assert "read only" in body["detail"]
            named = permitting(
                sentinel, tmp_path, **azure, SENTINEL_WORKSPACE_RESOURCE_ID=f"prod={EMBEDDED_RESOURCE_ID}"
            )
            doctor = named.json("doctor", "--azure")
            assert [check["ok"] for check in doctor if check["name"] == "azure prod"] == [True] * 4
            with named.up() as parts:
                code, body = execute(parts, key, "update_incident", incident="124", severity="Low")
                assert code == 200, body
                assert body["result"]["coverage"]["workspace"] == "prod"
        rows = workspace.query(
            "SecurityIncident | where IncidentNumber == 124 | top 1 by TimeGenerated | project Severity"
        )
        assert rows.rows == [("Low",)]
    finally:
        workspace.close()


def asked(product: Any, *arguments: str, code: int) -> dict[str, Any]:
    answer: dict[str, Any] = product.json("ask", *arguments, code=code)
    return answer


@pytest.mark.requirement("DATA-4")
@pytest.mark.requirement("APPR-1")
@pytest.mark.requirement("CHAT-6")
def test_a_change_asked_in_words_is_made_once_a_person_has_approved_it(generated: Any, tmp_path: Path) -> None:
    """A shift: look at incidents side by side and at what lies behind one, close it in words, and a person decides."""
    product = generated.copy(tmp_path / "home")
    words = "close incident 124 as false positive, inaccurate data, with comment: agreed with the owner"
    with product.up():
        compared = asked(product, "compare 124 and 118", code=0)  # 118 is a Sentinel number and a Defender id
        assert "118 is ambiguous" in compared["answer"]
        assert compared["tables"][0]["title"] == "Side by side"
        left = asked(product, "how many alerts are not in incident 124?", code=0)
        counts = re.match(r"(\d+) of (\d+) alerts\. ", left["answer"])
        assert counts is not None
        assert int(counts[2]) - int(counts[1]) == 8
        behind = asked(product, "what triggered the newest alert of incident 124?", code=0)
        assert [tool["name"] for tool in behind["tools"]] == ["query_alerts", "get_alert_events"]

        first = asked(product, words, code=4)
        session = first["session_id"]
        assert first["answer"].startswith("Waiting for your yes: update_incident, incident 124, ")
        approval_id = re.search(r"sentinel approvals approve ([0-9a-f-]+)", first["answer"])
        assert approval_id is not None
        waiting = product.json("approvals", "show", approval_id[1])
        assert (waiting["tool"], waiting["state"]) == ("update_incident", "pending")
        assert waiting["arguments"] == {
            "incident": "124",
            "status": "Closed",
            "classification": "FalsePositive",
            "classification_reason": "InaccurateData",
            "classification_comment": "agreed with the owner",
        }
        assert waiting["title"].startswith("user wants to close #124 “")
        assert "Nothing was changed yet" in asked(product, "--session", session, "do it now", code=4)["answer"]
        approved = product.json("approvals", "approve", approval_id[1])
        assert (approved["state"], approved["outcome"]["status"]) == ("used", "success")
        done = asked(product, "--session", session, "it is approved", code=0)
        assert "was changed." in done["answer"]
        fields = {row[0]: tuple(row[1:]) for row in done["tables"][0]["rows"]}
        assert fields["status"] == ("Active", "Closed")
        assert fields["classification_comment"] == ("-", "agreed with the owner")
        state = asked(product, "--session", session, "what is the classification of incident 124?", code=0)
        assert "FalsePositive" in state["answer"]
        # The approval was for one call: the same words are a new question to a person.
        again = asked(product, "--session", session, words, code=4)
        other = re.search(r"sentinel approvals approve ([0-9a-f-]+)", again["answer"])
        assert other is not None
        assert other[1] != approval_id[1]
        assert product.json("approvals", "show", approval_id[1])["state"] == "used"

        refused = asked(product, "comment on incident 124: please reset the password", code=4)
        denied_id = re.search(r"sentinel approvals approve ([0-9a-f-]+)", refused["answer"])
        assert denied_id is not None
        product.json("approvals", "deny", denied_id[1])
        told = asked(product, "--session", refused["session_id"], "do it now", code=4)
        assert told["answer"].startswith("Nothing was changed: ")
        assert " denied this call on " in told["answer"]
        comments = asked(product, "what are the comments on incident 124?", code=0)
        assert "reset the password" not in comments["answer"]
