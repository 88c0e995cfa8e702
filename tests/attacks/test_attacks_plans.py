"""Attacker controls: the agent, after the session has read a text that hijacks it, and everything that a tool returns.

Wanted: more from a plan than the person committed to: a step twice, other arguments, a step for something else, a plan
made after the read, or by the agent itself. Each try is denied and on record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from labelled_tools import labelled_gateway

from sentinel_rag_testing.fake_tool_server import Answers
from sentinel_rag_testing.running_gateway import HttpAnswer, RunningGateway

pytestmark = pytest.mark.requirement("TAINT-5")

STEPS = [
    {"tool": "read_public", "args": {"marker": "list"}},
    {"tool": "isolate", "args": {"host": "ws-01"}},
    {"tool": "search", "args": {"query": {"$slot": {}}}},
]


@pytest.fixture
def labelled(tmp_path: Path) -> Iterator[RunningGateway]:
    with labelled_gateway(tmp_path / "state") as gateway:
        yield gateway


def commit(gateway: RunningGateway, session: str, steps: Any = STEPS, *, key: str | None = None) -> HttpAnswer:
    body = json.dumps({"steps": steps}).encode()
    return gateway.request("POST", f"/v1/sessions/{session}/plan", key=key or gateway.user, body=body)


def hijacked(gateway: RunningGateway) -> str:
    """A session with the plan, in which the agent has read what hijacks it."""
    session = gateway.open_session()
    assert commit(gateway, session).body == {"steps": 3}
    assert gateway.call("read_secret", {}, session_id=session).status == 200
    return session


def expect_denied(gateway: RunningGateway, answer: HttpAnswer) -> None:
    assert (answer.status, answer.body["reason"]) in ((403, "approval_required"), (403, "sink_label"))
    record = gateway.last_record()
    assert (record["kind"], record["audit_id"]) == ("refusal", answer.body["audit_id"])


def test_a_step_passes_once_and_the_record_says_whose_it_was(labelled: RunningGateway) -> None:
    session = hijacked(labelled)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: labelled.call("isolate", {"host": "ws-01"}, session_id=session), range(4)))
    assert sorted(answer.status for answer in answers) == [200, 403, 403, 403]
    assert [call.tool for call in labelled.executor.calls] == ["read_secret", "isolate"]
    [intent] = [each for each in labelled.records() if each["kind"] == "intent" and each["tool"] == "isolate"]
    [named] = intent["flow"]["named"]
    assert (named["parameter"], named["kind"], named["by"]) == ("host", "planned", "plan")
    [committed] = [each for each in labelled.records() if each.get("source") == "plan"]
    assert [json.loads(each["text"])["tool"] for each in committed["values"]] == ["read_public", "isolate", "search"]
    expect_denied(labelled, labelled.call("isolate", {"host": "ws-01"}, session_id=session))


def test_no_other_argument_and_no_open_slot_is_the_persons(labelled: RunningGateway) -> None:
    session = hijacked(labelled)
    expect_denied(labelled, labelled.call("isolate", {"host": "dc-01"}, session_id=session))
    expect_denied(labelled, labelled.call("search", {"query": "what was read"}, session_id=session))
    other = labelled.open_session()
    assert labelled.call("read_secret", {}, session_id=other).status == 200
    expect_denied(labelled, labelled.call("isolate", {"host": "ws-01"}, session_id=other))


def test_a_plan_comes_from_the_person_before_anything_is_read_and_once(labelled: RunningGateway) -> None:
    session = labelled.open_session()
    assert commit(labelled, session, key=labelled.key).status == 403
    assert labelled.call("read_public", {}, session_id=session).status == 200
    late = commit(labelled, session)
    assert (late.status, late.body["reason"]) == (409, "conflict")
    session = labelled.open_session()
    assert commit(labelled, session).status == 200
    assert commit(labelled, session, [{"tool": "isolate", "args": {"host": "dc-01"}}]).status == 409
    wrong = commit(labelled, labelled.open_session(), [{"tool": "isolat", "args": {}}])
    assert (wrong.status, wrong.body["reason"]) == (422, "invalid_argument")


def test_two_processes_of_one_folder_let_a_step_pass_once(labelled: RunningGateway, tmp_path: Path) -> None:
    session = hijacked(labelled)
    # Another gateway's process has let the step pass; this one has not heard of it.
    labelled.state.database.run_now(
        lambda connection: connection.execute(
            "INSERT INTO named_value VALUES (?, 'passed', '1', 'plan')",
            [session],
        )
    )
    expect_denied(labelled, labelled.call("isolate", {"host": "ws-01"}, session_id=session))
    assert [call.tool for call in labelled.executor.calls] == ["read_secret"]


def test_of_two_plans_at_once_one_is_taken_and_none_in_part(labelled: RunningGateway) -> None:
    plans = [[{"tool": "isolate", "args": {"host": f"ws-{number}"}}] * 3 for number in range(6)]
    session = labelled.open_session()
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda steps: commit(labelled, session, steps), plans))
    assert sorted(answer.status for answer in answers) == [200] + [409] * 5
    assert len([each for each in labelled.records() if each.get("source") == "plan"]) == 1
    named = labelled.request("GET", f"/v1/sessions/{session}", key=labelled.user).body["named"]
    assert len(named) == 3

    # Another gateway's process takes a plan, or reads, and this one has not heard of it.
    for statement in (
        "INSERT INTO named_value VALUES (?, 'planned', '{}', 'plan')",
        "UPDATE session SET sensitivity = 1 WHERE session_id = ?",
    ):
        other = labelled.open_session()
        assert labelled.say(other, "host ws-01") == [("host", "ws-01")]
        labelled.state.database.run_now(lambda connection, s=statement, o=other: connection.execute(s, [o]))
        refused = commit(labelled, other, plans[0])
        assert (refused.status, refused.body["reason"]) == (409, "conflict")
    crowded = labelled.open_session()
    for start in range(0, 2_000, 400):
        labelled.say(crowded, " ".join(f"10.{start // 400}.{number // 200}.{number % 200}" for number in range(400)))
    full = commit(labelled, crowded, plans[0])
    assert (full.status, full.body["reason"]) == (409, "conflict")
    assert "names too much" in full.body["detail"]


def test_no_slot_tells_the_person_a_hidden_value(labelled: RunningGateway) -> None:
    """The person may not be cleared for what is hidden; what a session names is told without a clearance."""
    rows = {"rows": [{"Name": "one", "CommandLine": "canary-7f"}]}
    by_name = {"take": "/CommandLine", "starts_with": "one", "at": "/Name"}
    for slot in (by_name, {"starts_with": "can", "at": "/CommandLine", "take": "/Name"}):
        labelled.executor.on("read_alert", Answers(rows))
        session = labelled.open_session()
        steps = [
            {"tool": "read_alert", "args": {"alert": "a"}},
            {"tool": "isolate", "args": {"host": {"$slot": {"of": 0, "rows": "/rows", **slot}}}},
        ]
        assert commit(labelled, session, steps).status == 200
        assert labelled.call("read_alert", {"alert": "a"}, session_id=session).status == 200
        told = labelled.request("GET", f"/v1/sessions/{session}", key=labelled.user)
        assert [each["kind"] for each in told.body["named"] if each["kind"] == "chosen"] == []
        assert "canary" not in json.dumps(told.body)
