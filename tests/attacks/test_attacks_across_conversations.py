"""Attacker controls: one conversation of an agent that serves several under one key, and when its caller hangs up.

Wanted: what belongs to another conversation of the same key: the values that its person named, an approval given to it,
its hidden values, its label; or an end to a call of another user. Each try is refused and on record.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from labelled_tools import ROWS, journal_of, labelled_gateway

from sentinel_rag.gateway.store import Scope
from sentinel_rag_testing.fake_tool_server import Answers, Waits
from sentinel_rag_testing.running_gateway import RunningGateway
from waiting import WAIT_S


@pytest.fixture
def labelled(tmp_path: Path) -> Iterator[RunningGateway]:
    with labelled_gateway(tmp_path / "state") as gateway:
        yield gateway


@pytest.mark.requirement("TAINT-5")
def test_what_a_person_named_in_one_conversation_is_not_named_in_another(labelled: RunningGateway) -> None:
    named, other = labelled.open_session(), labelled.open_session()
    labelled.say(named, "comment on incident 14")
    for session in (named, other):
        assert labelled.call("read_incident", {"incident": "14"}, session_id=session).status == 200
    refused = labelled.call("comment", {"incident": "14", "message": "m"}, session_id=other)
    assert (refused.status, refused.body["reason"]) == (403, "sink_label")
    assert labelled.last_record()["audit_id"] == refused.body["audit_id"]
    assert labelled.call("comment", {"incident": "14", "message": "m"}, session_id=named).status == 200


@pytest.mark.requirement("APPR-2")
def test_an_approval_of_one_conversation_lets_no_call_of_another_through(labelled: RunningGateway) -> None:
    asking, other = labelled.open_session(), labelled.open_session()
    for session in (asking, other):
        assert labelled.call("read_secret", {}, session_id=session).status == 200
    asked = labelled.call("isolate", {"host": "ws-01"}, session_id=asking)
    path = f"/v1/approvals/{asked.body['approval_id']}/approve"
    assert labelled.request("POST", path, key=labelled.approver, body=b"{}").status == 200
    refused = labelled.call("isolate", {"host": "ws-01"}, session_id=other)
    assert (refused.status, refused.body["reason"]) == (403, "approval_required")
    assert refused.body["approval_id"] != asked.body["approval_id"]
    refusal = next(r for r in labelled.records() if r.get("audit_id") == refused.body["audit_id"])
    assert (refusal["kind"], refusal["reason"]) == ("refusal", "approval_required")
    assert "isolate" not in {call.tool for call in labelled.executor.calls}
    assert labelled.call("isolate", {"host": "ws-01"}, session_id=asking).status == 200


@pytest.mark.requirement("TAINT-3")
def test_a_handle_and_a_label_of_one_conversation_are_not_in_another(labelled: RunningGateway) -> None:
    labelled.executor.on("read_alert", Answers(ROWS))
    reading, other = labelled.open_session(), labelled.open_session()
    rows = labelled.call("read_alert", {}, session_id=reading).body["result"]["rows"]
    assert labelled.context(other) == ("LOW", "TRUSTED")
    refused = labelled.call("read_public", {"marker": rows[0]["CommandLine"]}, session_id=other)
    assert (refused.status, refused.body["reason"]) == (422, "invalid_argument")
    assert labelled.last_record()["audit_id"] == refused.body["audit_id"]
    shown = labelled.resolve(other, rows[0]["CommandLine"]["$ref"])
    assert (shown.body["values"], shown.body["refused"]) == ({}, [])
    assert [call.tool for call in labelled.executor.calls] == ["read_alert"]


def test_a_caller_that_hangs_up_ends_no_call_of_another_and_leaves_an_outcome(tmp_path: Path) -> None:
    release = threading.Event()
    with labelled_gateway(tmp_path / "state") as gateway, ThreadPoolExecutor(1) as pool:
        other = gateway.state.keys.create([Scope.EXECUTE], name="other")[0]
        gateway.executor.on("read_public", Waits(release, {"n": 1}))
        held = pool.submit(gateway.call, "read_public", {}, session_id="theirs", key=other)
        assert gateway.executor.arrived.acquire(timeout=WAIT_S)
        leaving = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=WAIT_S)
        body = json.dumps({"session_id": "mine", "tool_name": "read_public", "args": {"marker": "left"}})
        leaving.request(
            "POST", "/v1/proxy-execute", body, {"X-API-Key": gateway.key, "Content-Type": "application/json"}
        )
        assert gateway.executor.arrived.acquire(timeout=WAIT_S)
        leaving.close()
        assert gateway.call("search", {"query": "x"}, session_id="third", key=other).status == 200
        release.set()
        answer = held.result()
        assert (answer.status, answer.body["result"]) == (200, {"n": 1})
    records = journal_of(tmp_path / "state")
    [left] = [r for r in records if r["kind"] == "intent" and r["arguments"] == {"marker": "left"}]
    [outcome] = [r for r in records if r["kind"] == "outcome" and r["audit_id"] == left["audit_id"]]
    # A read for which nobody waits is stopped; it may have ended before that was heard.
    assert outcome["status"] == "success" or outcome["reason"] == "caller_left"
