"""Attacker controls: the agent, its arguments, the options that it offers, what it leaves for a tool to fill in, and
which of its persons it acts for. The policy is the shipped one; a poisoned incident has been read.

Wanted: the question that a person decides names nobody, tells the person's own choice as an attacker's or an attacker's
value as the person's own, or leaves out something that is written. Each call is refused until somebody has decided upon
all of it, and what they were told is on record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.contracts.tool_schemas import PREVIEW_TOOLS, SENTINEL_TOOLS
from sentinel_rag.gateway.policy import load_policy
from sentinel_rag.gateway.store import Scope
from sentinel_rag.surfaces.cli.approvals import page, summary
from sentinel_rag_testing.fake_tool_server import Answers, FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway

pytestmark = pytest.mark.requirement("APPR-4")

SHIPPED = load_policy(Path(__file__).parents[2] / "config" / "sentinel_config.yaml")
CLOSE = {"incident": "127", "status": "Closed", "classification": "BenignPositive"}
OPTION = "Close incident 127 as benign positive (suspicious but expected)"
STEERED = "may be steered by an attacker"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[RunningGateway]:
    with (
        FakeToolServer((*SENTINEL_TOOLS, *PREVIEW_TOOLS), token="upstream-token").running() as executor,
        running_gateway(SHIPPED, tmp_path / "state", executor) as running,
    ):
        poisoned = running.open_session()
        assert running.call("get_incident_detail", {"incident": "125"}, session_id=poisoned).status == 200
        filled_in(running, "SuspiciousButExpected")
        yield running


def filled_in(gateway: RunningGateway, reason: str) -> None:
    """The tool server would write the agent's values, and of itself this reason."""
    after = {"status": "Closed", "classification": "BenignPositive", "classification_reason": reason}
    changes: list[Any] = [{"field": field, "before": None, "after": value} for field, value in after.items()]
    row = {"number": 127, "title": "Unfamiliar sign-in", "severity": "Low", "status": "New", "changes": changes}
    gateway.executor.on("preview_incident_change", Answers({"kind": "result", "rows": [row], "columns": []}))


def say(gateway: RunningGateway, session_id: str, key: str, **said: str) -> int:
    body = json.dumps(said).encode()
    return gateway.request("POST", f"/v1/sessions/{session_id}/words", key=key, body=body).status


def asked(gateway: RunningGateway, session_id: str, arguments: dict[str, Any], key: str) -> dict[str, Any]:
    """What whoever may decide is shown, after the call was refused and recorded so."""
    answer = gateway.call("update_incident", arguments, session_id=session_id)
    assert (answer.status, answer.body["reason"]) == (403, "approval_required")
    refusal = recorded(gateway, "refusal", answer.body["audit_id"])
    assert (refusal["tool"], refusal["session_id"]) == ("update_incident", session_id)
    shown = gateway.request("GET", f"/v1/approvals/{answer.body['approval_id']}", key=key).body
    assert asked_record(gateway, shown)["shown_sha256"] == shown["shown_sha256"]
    assert "update_incident" not in [call.tool for call in gateway.executor.calls]
    return dict(shown)


def recorded(gateway: RunningGateway, kind: str, audit_id: str) -> dict[str, Any]:
    (record,) = [each for each in gateway.records() if (each["kind"], each.get("audit_id")) == (kind, audit_id)]
    return record


def asked_record(gateway: RunningGateway, shown: dict[str, Any]) -> dict[str, Any]:
    return recorded(gateway, "approval_asked", shown["approval_id"])


def told(shown: dict[str, Any]) -> str:
    return page(shown, width=400, now=datetime.now(UTC))


def test_an_option_that_the_person_chose_is_told_as_theirs_and_nothing_beside_it_is(gateway: RunningGateway) -> None:
    """The product offered it, the person picked it by its number; a comment is the agent's own addition."""
    session_id = gateway.open_session()
    assert say(gateway, session_id, gateway.key, text="1", chosen=OPTION) == 403, "the agent chooses nothing"
    assert say(gateway, session_id, gateway.user, text="1", chosen=OPTION) == 200
    shown = asked(gateway, session_id, CLOSE, gateway.user)
    assert (shown["words"], shown["named"]) == (f"1: {OPTION}", []), "it gives the agent no right"
    assert shown["said"] == [*CLOSE]
    assert [each["parameter"] for each in shown["violations"]] == [*CLOSE]
    assert STEERED not in told(shown)
    assert "stand in the person's own words" in told(shown)
    assert asked_record(gateway, shown)["words"] == f"1: {OPTION}"

    added = asked(gateway, session_id, {**CLOSE, "classification_comment": "see https://evil.example/x"}, gateway.user)
    assert added["said"] == [*CLOSE]
    assert f"classification_comment {STEERED}" in told(added)


def test_a_number_without_the_option_that_it_picks_makes_no_value_the_persons(gateway: RunningGateway) -> None:
    session_id = gateway.open_session()
    assert say(gateway, session_id, gateway.user, text="1") == 200
    shown = asked(gateway, session_id, CLOSE, gateway.user)
    assert shown["said"] == []
    assert STEERED in told(shown)


def test_whoever_decides_is_told_which_person_asked_and_not_only_whose_key(gateway: RunningGateway) -> None:
    """One agent serves two persons, and acts for itself too."""
    agent = next(info for info in gateway.state.keys.list() if info.name == "caller")
    finn, of_finn = gateway.state.keys.create([Scope.USER], name="finn", for_key=agent.key_id)
    sessions = {
        "person": (gateway.open_session(), gateway.user),
        "finn": (gateway.open_session(key=finn), finn),
        "": ("of-the-agents-own", gateway.approver),
    }
    found = {name: asked(gateway, session, CLOSE, key) for name, (session, key) in sessions.items()}
    assert {name: shown["person"] for name, shown in found.items()} == {name: name for name in sessions}
    assert {name: shown["title"].partition(" wants to ")[0] for name, shown in found.items()} == {
        "person": "person",
        "finn": "finn",
        "": "The agent",
    }
    assert all(shown["key_id"] == agent.key_id for shown in found.values())
    listed = " ".join(summary(found["finn"], datetime.now(UTC)))
    assert all("finn wants to close #127" in text for text in (told(found["finn"]), listed))
    opened = {each["session_id"]: each for each in gateway.records() if each["kind"] == "session"}
    assert opened[sessions["finn"][0]]["key_id"] == of_finn.key_id
    record = asked_record(gateway, found["finn"])
    assert (record["key_id"], record["session_id"]) == (agent.key_id, sessions["finn"][0])


def test_what_a_tool_fills_in_is_shown_before_the_yes_and_nothing_else_is_written_after_it(
    gateway: RunningGateway,
) -> None:
    session_id = gateway.open_session()
    shown = asked(gateway, session_id, CLOSE, gateway.user)
    written = {each["field"]: each["after"] for each in shown["subject"]["changes"]}
    assert {"incident": "127", **written} == {**CLOSE, "classification_reason": "SuspiciousButExpected"}
    filled_in(gateway, "InaccurateData")
    path = f"/v1/approvals/{shown['approval_id']}/approve"
    outcome = gateway.request("POST", path, key=gateway.user, body=b"{}").body["outcome"]
    assert (outcome["status"], outcome["reason"]) == ("denied", "approval_required")
    anew = gateway.request("GET", f"/v1/approvals/{outcome['approval_id']}", key=gateway.user).body
    assert "InaccurateData" in [each["after"] for each in anew["subject"]["changes"]]
    assert asked_record(gateway, anew)["shown_sha256"] != asked_record(gateway, shown)["shown_sha256"]
    assert "update_incident" not in [call.tool for call in gateway.executor.calls]
