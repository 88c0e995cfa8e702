"""Attacker controls: the agent and what its process remembers from one of its person's sessions to the next.

No tool of this policy says `across_sessions`: it is the default of all that writes or sends. Wanted: a secret that was
read for one question leaves with the search of another question, which the person opened and which has read nothing;
or it is spelled by which of the person's own wishes is searched for, and how often. Each try is denied and on record,
and a replay of the record says the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.contracts.tool_calls import Deny, ToolSchema
from sentinel_rag.gateway.flow.judging import facts_of, judge
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.gateway.store import Scope
from sentinel_rag.gateway.store.sessions import REMEMBERED
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import HttpAnswer, RunningGateway, running_gateway

POLICY_TEXT = """
tools:
  - name: read_secret
    effect: read
    parameters: []
    taint_rules: [{rule_id: read_any, condition: "true", taint_level: HIGH}]
  - name: search
    effect: external
    named_limit: 2
    parameters: [{name: query, type: string, required: true, attest: [sought, quoted]}]
    taint_rules: [{rule_id: search_any, condition: "true", taint_level: LOW}]
  - name: ping
    effect: external
    parameters: []
    taint_rules: [{rule_id: ping_any, condition: "true", taint_level: LOW}]
  - name: note
    effect: write
    parameters: [{name: text, type: string, required: true}]
    taint_rules: [{rule_id: note_any, condition: "true", taint_level: LOW}]
  - name: ask_first
    effect: external
    parameters: [{name: query, type: string, required: true}]
    taint_rules: [{rule_id: ask_any, condition: "true", taint_level: LOW, offers_approval: true}]
"""
POLICY = parse_policy(POLICY_TEXT)
SECRET = {"sensitivity": "HIGH", "integrity": "UNTRUSTED"}


@contextmanager
def open_gateway(
    folder: Path, text: str = POLICY_TEXT, *, clock: Clock = utc_now, memory: timedelta = REMEMBERED
) -> Iterator[RunningGateway]:
    policy = parse_policy(text)
    schemas = [
        ToolSchema(tool.name, "", {"type": "object", "properties": {name: {} for name in tool.parameters}})
        for tool in policy.tools.values()
    ]
    with (
        FakeToolServer(schemas, token="upstream-token").running() as executor,
        running_gateway(policy, folder / "state", executor, clock=clock, memory=memory) as running,
    ):
        yield running


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[RunningGateway]:
    with open_gateway(tmp_path) as running:
        yield running


def search(gateway: RunningGateway, session_id: str, query: str) -> HttpAnswer:
    return gateway.call("search", {"query": query}, session_id=session_id)


def read_for_another_question(gateway: RunningGateway) -> None:
    assert gateway.call("read_secret", {}, session_id=gateway.open_session()).status == 200


def expect_denied_on_record(gateway: RunningGateway, answer: HttpAnswer, memory: Any = SECRET) -> None:
    assert (answer.status, answer.body["reason"]) == (403, "sink_label")
    record = gateway.last_record()
    assert (record["kind"], record["reason"], record["audit_id"]) == ("refusal", "sink_label", answer.body["audit_id"])
    assert record["flow"].get("memory") == memory
    again = judge(POLICY, POLICY.tools[record["tool"]], record["arguments"], facts_of(record))
    assert isinstance(again.decision, Deny)


@pytest.mark.requirement("TAINT-2")
def test_what_was_read_for_one_question_does_not_leave_with_the_search_of_the_next(gateway: RunningGateway) -> None:
    kept = gateway.open_session()
    read_for_another_question(gateway)
    for session_id in (gateway.open_session(), kept):
        gateway.say(session_id, "Look at incident 7. What is phishing?")
        assert gateway.context(session_id) == ("LOW", "TRUSTED")
        for query in ("HALYARD-77", "SEFMWUFSRC03Nw==", "phishing HALYARD-77", "rope that hoists a sail"):
            expect_denied_on_record(gateway, search(gateway, session_id, query))
        expect_denied_on_record(gateway, gateway.call("ping", {}, session_id=session_id))
    assert [call.tool for call in gateway.executor.calls] == ["read_secret"]


@pytest.mark.requirement("TAINT-5")
def test_what_the_person_asks_to_look_up_passes_and_its_record_is_judged_again_to_the_same(
    gateway: RunningGateway,
) -> None:
    read_for_another_question(gateway)
    session_id = gateway.open_session()
    gateway.say(session_id, "Search the web for Password  spraying.")
    assert search(gateway, session_id, "Password spraying").status == 200
    intent = gateway.records()[-2]
    assert (intent["kind"], intent["flow"]["memory"]) == ("intent", SECRET)
    assert intent["flow"]["named"] == [
        {"parameter": "query", "kind": "sought", "text": "Password spraying", "by": "user"}
    ]
    again = judge(POLICY, POLICY.tools["search"], intent["arguments"], facts_of(intent))
    assert again.decision.rule_id == "search_any"
    assert not again.violations
    for query in ("pASSWORD spraying", "Password  spraying", "Password spraying ", "password spraying?", "Password"):
        expect_denied_on_record(gateway, search(gateway, session_id, query))


@pytest.mark.requirement("TAINT-5")
def test_no_secret_is_spelled_by_which_wish_is_searched_for_and_how_often(gateway: RunningGateway) -> None:
    session_id = gateway.open_session()
    gateway.say(session_id, 'Search the web for "red paint" and google blue paint.')
    for _ in range(4):
        assert search(gateway, session_id, "red paint").status == 200  # nothing was read: there is nothing to spell
    assert gateway.call("read_secret", {}, session_id=session_id).status == 200
    bits = [search(gateway, session_id, f"{colour} paint").status for colour in ("red", "blue", "blue", "red") * 4]
    assert bits == [200] * 4 + [403] * 12
    expect_denied_on_record(gateway, search(gateway, session_id, "Blue paint".lower()), None)


class Days:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = utc_now()

    def __call__(self) -> datetime:
        return self.now


@pytest.mark.requirement("TAINT-2")
def test_no_wait_shorter_than_the_agents_memory_makes_it_clean(tmp_path: Path) -> None:
    """Attacker waits: over a weekend, and until a day before what the agent keeps is deleted."""
    clock = Days()
    with open_gateway(tmp_path, clock=clock, memory=timedelta(days=90)) as gateway:
        read_for_another_question(gateway)
        for days in (1, 3, 85):  # 89 in all
            clock.now += timedelta(days=days)
            expect_denied_on_record(gateway, search(gateway, gateway.open_session(), "HALYARD-77"))
            by_itself = gateway.request("POST", "/v1/sessions", key=gateway.key).body
            assert by_itself["context"] == SECRET, "a session of the agent's own starts with what it may remember"
        clock.now += timedelta(days=200)
        assert search(gateway, gateway.open_session(), "anything").status == 200
    with open_gateway(tmp_path, POLICY_TEXT + "memory_days: 400\n", clock=clock, memory=timedelta(0)) as gateway:
        read_for_another_question(gateway)
        clock.now += timedelta(days=399)
        expect_denied_on_record(gateway, search(gateway, gateway.open_session(), "HALYARD-77"))


@pytest.mark.requirement("TAINT-2")
def test_a_conversation_that_is_kept_alive_by_words_is_not_forgotten(tmp_path: Path) -> None:
    """Attacker waits while the person speaks on in the conversation that read a secret, without a call that runs."""
    clock = Days()
    with open_gateway(tmp_path, clock=clock, memory=timedelta(days=90)) as gateway:
        read = gateway.open_session()
        assert gateway.call("read_secret", {}, session_id=read).status == 200
        for _ in range(3):
            clock.now += timedelta(days=60)
            gateway.say(read, "And what does that mean?")
            expect_denied_on_record(gateway, search(gateway, gateway.open_session(), "HALYARD-77"))


@pytest.mark.requirement("TAINT-2")
@pytest.mark.parametrize("newer", [True, False])
def test_no_use_of_the_agent_outlives_what_it_may_have_repeated(tmp_path: Path, newer: bool) -> None:
    """Attacker keeps what was read alive by refused calls alone, in newer conversations or in the one that read it."""
    clock = Days()
    with open_gateway(tmp_path, clock=clock, memory=timedelta(days=90)) as gateway:
        read = gateway.open_session()
        assert gateway.call("read_secret", {}, session_id=read).status == 200
        for _ in range(4):
            clock.now += timedelta(days=60)
            where = gateway.open_session() if newer else read
            expect_denied_on_record(gateway, search(gateway, where, "HALYARD-77"), SECRET if newer else None)
        expect_denied_on_record(gateway, search(gateway, gateway.open_session(), "HALYARD-77"))
        clock.now += timedelta(days=91)
        assert search(gateway, gateway.open_session(), "anything").status == 200, (
            "silent for as long as it may remember"
        )


@pytest.mark.requirement("TAINT-7")
@pytest.mark.parametrize(("memory", "other_person"), [("conversation", 200), ("person", 200), ("key", 403)])
def test_only_an_agent_that_the_operator_attests_takes_nothing_along(
    tmp_path: Path, memory: str, other_person: int
) -> None:
    """Attacker controls: an agent of the same file that is not attested, and what the attested one reads meanwhile."""
    text = f"{POLICY_TEXT}agents: [{{key: apart, memory: {memory}}}]\n"
    with open_gateway(tmp_path, text) as gateway:
        keys = gateway.state.keys
        apart, agent = keys.create([Scope.EXECUTE], name="apart")
        one, two = (keys.create([Scope.USER], name=each, for_key=agent.key_id)[0] for each in ("one", "two"))
        first = gateway.open_session(key=one)
        assert gateway.call("read_secret", {}, session_id=first, key=apart).status == 200

        def send(session_id: str, key: str = apart) -> int:
            return gateway.call("search", {"query": "HALYARD-77"}, session_id=session_id, key=key).status

        assert send(first) == 403, "in the conversation itself it is as ever"
        assert send(gateway.open_session(key=one)) == (200 if memory == "conversation" else 403)
        assert send(gateway.open_session(key=two)) == other_person
        read_for_another_question(gateway)
        expect_denied_on_record(gateway, search(gateway, gateway.open_session(), "HALYARD-77"))


@pytest.mark.requirement("TAINT-7")
def test_what_an_attested_agent_reads_in_a_session_of_its_own_counts_for_every_person(tmp_path: Path) -> None:
    with open_gateway(tmp_path, f"{POLICY_TEXT}agents: [{{key: apart, memory: person}}]\n") as gateway:
        apart, agent = gateway.state.keys.create([Scope.EXECUTE], name="apart")
        user = gateway.state.keys.create([Scope.USER], name="one", for_key=agent.key_id)[0]
        own = gateway.request("POST", "/v1/sessions", key=apart).body["session_id"]
        assert gateway.call("read_secret", {}, session_id=own, key=apart).status == 200
        answer = gateway.call("search", {"query": "x"}, session_id=gateway.open_session(key=user), key=apart)
        assert (answer.status, answer.body["reason"]) == (403, "sink_label")


@pytest.mark.requirement("TAINT-2")
def test_a_closed_session_still_counts_and_another_key_does_not(gateway: RunningGateway) -> None:
    session_id = gateway.open_session()
    assert gateway.call("read_secret", {}, session_id=session_id).status == 200
    assert gateway.request("DELETE", f"/v1/sessions/{session_id}", key=gateway.user).status == 204
    expect_denied_on_record(gateway, search(gateway, gateway.open_session(), "anything"))
    other = gateway.state.keys.create([Scope.EXECUTE], name="other")[0]
    assert gateway.call("search", {"query": "x"}, session_id="of-another", key=other).status == 200


@pytest.mark.requirement("APPR-2")
def test_a_person_may_let_such_a_call_pass_once(gateway: RunningGateway) -> None:
    read_for_another_question(gateway)
    session_id = gateway.open_session()
    asked = gateway.call("ask_first", {"query": "HALYARD-77"}, session_id=session_id)
    assert (asked.status, asked.body["reason"]) == (403, "approval_required")
    path = f"/v1/approvals/{asked.body['approval_id']}"
    shown = gateway.request("GET", path, key=gateway.approver).body
    assert [(each["parameter"], each["label"]) for each in shown["violations"]] == [("query", SECRET)]
    assert gateway.request("POST", f"{path}/approve", key=gateway.approver, body=b"{}").status == 200
    statuses = [gateway.call("ask_first", {"query": "HALYARD-77"}, session_id=session_id).status for _ in range(2)]
    assert statuses == [200, 403]


@pytest.mark.requirement("TAINT-2")
def test_a_call_is_judged_by_what_was_seen_before_it_and_not_by_its_own_answer(gateway: RunningGateway) -> None:
    """A first change by an agent that has read nothing passes; what it is answered raises what comes next."""
    statuses = [gateway.call("note", {"text": "one"}, session_id=gateway.open_session()).status for _ in range(2)]
    assert statuses == [200, 403]


@pytest.mark.requirement("TAINT-2")
def test_a_search_and_a_read_that_race_end_with_no_search_after_the_read(gateway: RunningGateway) -> None:
    """Whatever the order in which they arrive: once a read is answered, no search of the agent's own passes."""
    for turn in range(5):
        key, agent = gateway.state.keys.create([Scope.EXECUTE], name=f"racer {turn}")
        user = gateway.state.keys.create([Scope.USER], name=f"person {turn}", for_key=agent.key_id)[0]
        sessions = [gateway.open_session(key=user) for _ in range(8)]

        def use(index: int, key: str = key, sessions: list[str] = sessions) -> int:
            tool, arguments = ("read_secret", {}) if index == 5 else ("search", {"query": f"own {index}"})
            return gateway.call(tool, arguments, session_id=sessions[index], key=key).status

        with ThreadPoolExecutor(8) as pool:
            statuses = list(pool.map(use, range(8)))
        assert statuses[5] == 200
        kinds = [(each["kind"], each.get("tool")) for each in gateway.records() if each.get("key_id") == agent.key_id]
        answered = kinds.index(("intent", "read_secret"))
        assert ("intent", "search") not in kinds[answered:]
        assert {use(index) for index in range(8) if index != 5} == {403}


CLOSE = """
  - name: close
    effect: write
    across_sessions: {counts}
    parameters: [{{name: incident, type: string, required: true, attest: incident}}]
    taint_rules: [{{rule_id: close_any, condition: "true", taint_level: LOW, requires_approval: true}}]
"""


@pytest.mark.requirement("APPR-2")
@pytest.mark.requirement("APPR-4")
@pytest.mark.parametrize("counts", ["true", "false"])
def test_a_yes_is_for_the_memory_that_was_shown_whether_or_not_the_tool_counts_it(tmp_path: Path, counts: str) -> None:
    """Attacker's text is read in another conversation after the yes. The incident is the person's own word, so neither
    the argument's label nor the context tells of it."""
    with open_gateway(tmp_path, POLICY_TEXT + CLOSE.format(counts=counts)) as gateway:
        session_id = gateway.open_session()
        gateway.say(session_id, "close incident 7")

        def close() -> HttpAnswer:
            return gateway.call("close", {"incident": "7"}, session_id=session_id)

        def approve(asked: HttpAnswer, memory: Any) -> None:
            path = f"/v1/approvals/{asked.body['approval_id']}"
            assert gateway.request("GET", path, key=gateway.approver).body["memory"] == memory
            assert gateway.request("POST", f"{path}/approve", key=gateway.approver, body=b"{}").status == 200

        first = close()
        approve(first, {"sensitivity": "LOW", "integrity": "TRUSTED"})
        read_for_another_question(gateway)
        second = close()
        assert (second.status, second.body["reason"]) == (403, "approval_required")
        assert second.body["approval_id"] != first.body["approval_id"]
        approve(second, SECRET)
        assert close().status == 200
        assert [call.tool for call in gateway.executor.calls] == ["read_secret", "close"]
