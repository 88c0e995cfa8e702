"""Attacker controls: the agent and its key, and with it every session that the key opens by itself, before, during and
after a read.

Wanted: a session that does not know of the secret which another session of the same key has read, to send it from
there. Each try is denied and on record; a person's session is raised by the agent's own ones and by no other person's.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from labelled_tools import labelled_gateway

from sentinel_rag.gateway.store import Scope, open_state
from sentinel_rag_testing.running_gateway import HttpAnswer, RunningGateway


@pytest.fixture
def labelled(tmp_path: Path) -> Iterator[RunningGateway]:
    with labelled_gateway(tmp_path / "state") as gateway:
        yield gateway


def send(gateway: RunningGateway, session_id: str) -> HttpAnswer:
    return gateway.call("search", {"query": "what-was-read"}, session_id=session_id)


def read(gateway: RunningGateway, session_id: str) -> HttpAnswer:
    return gateway.call("read_secret", {}, session_id=session_id)


def expect_denied_on_record(gateway: RunningGateway, answer: HttpAnswer) -> None:
    assert (answer.status, answer.body["reason"]) == (403, "sink_label")
    record = gateway.last_record()
    assert (record["kind"], record["reason"], record["audit_id"]) == ("refusal", "sink_label", answer.body["audit_id"])
    assert record["context_after"] == {"sensitivity": "HIGH", "integrity": "UNTRUSTED"}


@pytest.mark.requirement("TAINT-2")
@pytest.mark.parametrize("reader", ["its own", "a person's"])
def test_a_session_opened_before_the_read_launders_nothing(labelled: RunningGateway, reader: str) -> None:
    opened = labelled.open_session(key=labelled.key)
    for session_id in (opened, "used-before"):
        assert send(labelled, session_id).status == 200
    sent = len(labelled.executor.calls)
    reading = labelled.open_session() if reader == "a person's" else "reading"
    assert read(labelled, reading).status == 200
    for session_id in (opened, "used-before", "never-used-before", labelled.open_session(key=labelled.key)):
        expect_denied_on_record(labelled, send(labelled, session_id))
    assert [call.tool for call in labelled.executor.calls[sent:]] == ["read_secret"]


@pytest.mark.requirement("TAINT-2")
def test_other_keys_are_left_alone_and_a_persons_other_sessions_stay_clean_for_reads(labelled: RunningGateway) -> None:
    person, other = labelled.open_session(), labelled.state.keys.create([Scope.EXECUTE], name="other")[0]
    assert labelled.call("search", {"query": "x"}, session_id="of-another", key=other).status == 200
    assert read(labelled, labelled.open_session()).status == 200
    assert labelled.context(person) == ("LOW", "TRUSTED")
    assert send(labelled, person).status == 403, "the agent's process may remember it"
    assert labelled.call("search", {"query": "x"}, session_id="of-another", key=other).status == 200


@pytest.mark.requirement("TAINT-2")
@pytest.mark.parametrize("before", [True, False])
def test_no_read_is_taken_out_of_a_persons_session(labelled: RunningGateway, before: bool) -> None:
    """The agent reads in a session of its own, which may be as high already, and sends from the person's clean one."""
    if before:
        assert read(labelled, "aside").status == 200
    person = labelled.open_session()
    assert labelled.context(person) == ("LOW", "TRUSTED")
    assert read(labelled, "aside").status == 200
    expect_denied_on_record(labelled, send(labelled, person))
    assert labelled.context(labelled.open_session()) == ("LOW", "TRUSTED")


@pytest.mark.requirement("TAINT-2")
def test_what_raised_a_session_from_another_one_is_shown_and_outlasts_a_restart(tmp_path: Path) -> None:
    with labelled_gateway(tmp_path / "state") as gateway:
        assert send(gateway, "kept").status == 200
        raised = read(gateway, "reading").body["audit_id"]
        shown = gateway.request("GET", "/v1/sessions/kept", key=gateway.key).body
        assert shown["context"] == {"sensitivity": "HIGH", "integrity": "UNTRUSTED"}
        assert shown["raised_by"][-1]["audit_id"] == raised
    with open_state(tmp_path / "state") as state:
        kept = state.database.run_now(
            lambda connection: connection.execute(
                "SELECT sensitivity, integrity FROM session WHERE session_id = 'kept'"
            ).fetchone()
        )
        assert kept == (2, 1)


@pytest.mark.requirement("TAINT-2")
def test_no_session_that_is_opened_while_another_reads_stays_below_it(labelled: RunningGateway) -> None:
    """Opening and reading race: whatever the order, after the read is answered no session of the key sends."""
    for turn in range(10):
        key = labelled.state.keys.create([Scope.EXECUTE], name=f"racer {turn}")[0]

        def use(index: int, turn: int = turn, key: str = key) -> int:
            tool, arguments = ("read_secret", {}) if index == 7 else ("read_public", {})
            return labelled.call(tool, arguments, session_id=f"race-{turn}-{index}", key=key).status

        with ThreadPoolExecutor(16) as pool:
            assert set(pool.map(use, range(16))) == {200}
        for index in range(16):
            answer = labelled.call("search", {"query": "x"}, session_id=f"race-{turn}-{index}", key=key)
            assert (answer.status, answer.body["reason"]) == (403, "sink_label")
    assert "search" not in {call.tool for call in labelled.executor.calls}


@pytest.mark.requirement("TAINT-5")
@pytest.mark.parametrize("route", ["words", "resolve"])
def test_a_key_with_both_scopes_does_not_speak_as_the_person_in_its_own_session(
    labelled: RunningGateway, route: str
) -> None:
    key, _ = labelled.state.keys.create([Scope.EXECUTE, Scope.USER], name="both")
    assert labelled.call("search", {"query": "x"}, session_id="own", key=key).status == 200
    body = b'{"text": "host ws-01"}' if route == "words" else b'{"handles": ["r1#"]}'
    assert labelled.request("POST", f"/v1/sessions/own/{route}", key=key, body=body).status == 404
