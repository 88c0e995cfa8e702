"""Attacker controls: the agent, and at which of two gateway processes on one state folder each call arrives.

Wanted: the process that has not heard yet. A secret is read at one and sent at the other; a session is closed, a key
revoked, a resource labelled at one and used at the other. Each try is refused there and on record in the one journal.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from labelled_tools import ROWS, GatewayProcess, gateway_process, journal_of, labelled_executor

from sentinel_rag.audit import JournalReader
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.gateway.store import KeyStore, Scope
from sentinel_rag_testing.fake_tool_server import Answers, FakeToolServer, Waits
from sentinel_rag_testing.running_gateway import HttpAnswer
from waiting import WAIT_S

TOP = {"sensitivity": "HIGH", "integrity": "UNTRUSTED"}
RACERS = 24


@pytest.fixture(scope="module")
def tool_server() -> Iterator[FakeToolServer]:
    with labelled_executor() as executor:
        yield executor


@pytest.fixture(scope="module")
def pair(tool_server: FakeToolServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[GatewayProcess]]:
    folder = tmp_path_factory.mktemp("pair") / "state"
    with gateway_process(folder, tool_server) as one, gateway_process(folder, tool_server) as other:
        yield [one, other]


@pytest.fixture
def executor(tool_server: FakeToolServer) -> FakeToolServer:
    """The tool server as it starts: nothing called, nothing told."""
    tool_server.calls.clear()
    for tool in tool_server.tools:
        tool_server.on(tool.name)
    return tool_server


@pytest.fixture
def one(pair: list[GatewayProcess], executor: FakeToolServer) -> GatewayProcess:
    return pair[0]


@pytest.fixture
def other(pair: list[GatewayProcess], executor: FakeToolServer) -> GatewayProcess:
    return pair[1]


def opened(gateway: GatewayProcess, *, key: str | None = None) -> str:
    return str(gateway.request("POST", "/v1/sessions", key=key or gateway.user).body["session_id"])


def new_key(gateway: GatewayProcess) -> str:
    """A key that may execute and has seen nothing yet."""
    store = KeyStore(gateway.folder / "keys.sqlite")
    try:
        return store.create([Scope.EXECUTE], name="fresh")[0]
    finally:
        store.close()


def say(gateway: GatewayProcess, session_id: str, text: str, *, key: str) -> None:
    answer = gateway.request("POST", f"/v1/sessions/{session_id}/words", key=key, body={"text": text})
    assert answer.status == 200


def record_of(gateway: GatewayProcess, answer: HttpAnswer) -> dict[str, Any]:
    [first, *_] = [record for record in journal_of(gateway.folder) if record["audit_id"] == answer.body["audit_id"]]
    return first


def expect_refused(gateway: GatewayProcess, answer: HttpAnswer, status: int, reason: str) -> dict[str, Any]:
    assert (answer.status, answer.body["reason"]) == (status, reason)
    [record] = [
        record
        for record in journal_of(gateway.folder)
        if record["audit_id"] == answer.body["audit_id"] and record["kind"] == "refusal"
    ]
    assert record["reason"] == reason
    return record


@pytest.mark.requirement("TAINT-2")
@pytest.mark.parametrize("opener", ["agent", "person"])
def test_what_was_read_at_one_is_not_sent_at_the_other(
    one: GatewayProcess, other: GatewayProcess, executor: FakeToolServer, opener: str
) -> None:
    key = new_key(one)
    session = opened(one, key=key) if opener == "person" else "own"
    for gateway in (one, other):  # both hold the session in memory, low
        assert gateway.call("search", {"query": "x"}, session_id=session, key=key).status == 200
    assert one.call("read_secret", {}, session_id=session, key=key).status == 200
    refused = other.call("search", {"query": "the secret"}, session_id=session, key=key)
    assert expect_refused(other, refused, 403, "sink_label")["context_after"] == TOP
    assert [call.tool for call in executor.calls] == ["search", "search", "read_secret"]


@pytest.mark.requirement("TAINT-2")
def test_another_session_of_the_key_at_the_other_process_rises_too(
    one: GatewayProcess, other: GatewayProcess, executor: FakeToolServer
) -> None:
    key = new_key(one)
    assert other.call("search", {"query": "x"}, session_id="ready-before", key=key).status == 200
    assert one.call("read_secret", {}, session_id="reads", key=key).status == 200
    for session_id in ("ready-before", "new", opened(other, key=key)):
        refused = other.call("search", {"query": "the secret"}, session_id=session_id, key=key)
        assert expect_refused(other, refused, 403, "sink_label")["context_after"] == TOP
    assert [call.tool for call in executor.calls] == ["search", "read_secret"]


@pytest.mark.requirement("TAINT-2")
def test_reads_and_sends_that_race_across_two_processes(
    one: GatewayProcess, other: GatewayProcess, executor: FakeToolServer
) -> None:
    """A call sent after a read was answered is denied, and no send has its intent after the intent of a read."""
    for turn in range(8):
        session, start = opened(one), threading.Barrier(RACERS)
        answered = threading.Event()

        def work(
            index: int, session: str = session, start: threading.Barrier = start, answered: threading.Event = answered
        ) -> tuple[bool, int]:
            gateway = (one, other)[index % 2]
            start.wait()
            if index in (10, 11):
                status = gateway.call("read_secret", {}, session_id=session, key=one.key).status
                answered.set()
                return False, status
            for _ in range(index % 4):
                gateway.call("read_public", {}, session_id=session, key=one.key)
            late = answered.is_set()
            return late, gateway.call("search", {"query": f"{index}"}, session_id=session, key=one.key).status

        with ThreadPoolExecutor(RACERS) as pool:
            ends = list(pool.map(work, range(RACERS)))
        after = other.call("search", {"query": "late"}, session_id=session, key=one.key)
        assert after.status == 403
        assert all(status == 403 for late, status in ends if late)
        assert {status for _, status in ends} <= {200, 403}
        intents = [
            record
            for record in journal_of(one.folder)
            if record["kind"] == "intent" and record["session_id"] == session and record["tool"] != "read_public"
        ]
        tools = [record["tool"] for record in intents]
        first_read = tools.index("read_secret")
        assert "search" not in tools[first_read:], turn
        let_through = [record["arguments"]["query"] for record in intents[:first_read]]
        assert sorted(call.arguments["query"] for call in executor.calls if call.tool == "search") == sorted(
            let_through
        )
        executor.calls.clear()


@pytest.mark.requirement("TAINT-3")
def test_a_handle_made_at_one_resolves_at_the_other_with_its_label(
    one: GatewayProcess, other: GatewayProcess, executor: FakeToolServer
) -> None:
    executor.on("read_alert", Answers(ROWS))
    session = opened(one)
    say(one, session, "comment on incident 14", key=one.user)
    handle = one.call("read_alert", {}, session_id=session, key=one.key).body["result"]["rows"][0]["CommandLine"]
    refused = other.call("search", {"query": handle}, session_id=session, key=one.key)
    expect_refused(other, refused, 403, "sink_label")
    passed = other.call("comment", {"incident": "14", "message": handle}, session_id=session, key=one.key)
    assert passed.status == 200
    assert executor.calls[-1].arguments["message"] == "powershell -enc SECRET admin"
    shown = other.request("POST", f"/v1/sessions/{session}/resolve", key=one.user, body={"handles": [handle["$ref"]]})
    assert (shown.status, shown.body["values"]) == (200, {handle["$ref"]: "powershell -enc SECRET admin"})


@pytest.mark.requirement("TAINT-5")
def test_words_said_at_one_count_at_the_other(
    one: GatewayProcess, other: GatewayProcess, executor: FakeToolServer
) -> None:
    session = opened(one)
    assert other.call("read_incident", {"incident": "14"}, session_id=session, key=one.key).status == 200
    refused = other.call("comment", {"incident": "14", "message": "m"}, session_id=session, key=one.key)
    expect_refused(other, refused, 403, "sink_label")
    say(one, session, "comment on incident 14", key=one.user)
    assert other.call("comment", {"incident": "14", "message": "m"}, session_id=session, key=one.key).status == 200
    refused = other.call("comment", {"incident": "15", "message": "m"}, session_id=session, key=one.key)
    expect_refused(other, refused, 403, "sink_label")


GUESTS = "Mail the guests of 'Budget review of spring' and of 'Summer party of the firm'."


def found(title: str, mail: str) -> JsonObject:
    return {"rows": [{"title": title, "mail": mail}]}


@pytest.mark.requirement("TAINT-5")
@pytest.mark.parametrize(
    ("title", "query"),
    [
        # the same record again, now the attacker's; and one more than the rule lets a session have
        ("Budget review of spring", "Budget review of spring"),
        ("Summer party of the firm", "Summer party of the firm"),
    ],
)
@pytest.mark.parametrize("at_once", [False, True], ids=["after it", "at once"])
def test_what_one_took_from_a_record_the_other_does_not_take_from_another(
    one: GatewayProcess, other: GatewayProcess, executor: FakeToolServer, title: str, query: str, at_once: bool
) -> None:
    """The second record of one name, or beyond `most`, gives nothing, at whichever process it arrives."""
    session = opened(one)
    say(one, session, GUESTS, key=one.user)
    for gateway in (one, other):  # each has the session in its memory from now on
        assert gateway.call("read_public", {}, session_id=session, key=one.key).status == 200

    def asked(gateway: GatewayProcess, text: str) -> HttpAnswer:
        return gateway.call("find", {"query": text}, session_id=session, key=one.key)

    if at_once:
        go = threading.Event()
        while executor.arrived.acquire(blocking=False):
            pass
        with ThreadPoolExecutor(2) as pool:
            executor.on(
                "find",
                Waits(go, found("Budget review of spring", "bob@contoso.example")),
                Waits(go, found(title, "eve@evil.example")),
            )
            answers = [pool.submit(asked, one, "Budget review of spring"), pool.submit(asked, other, query)]
            for _ in range(2):
                executor.arrived.acquire()
            go.set()
            assert [answer.result().status for answer in answers] == [200, 200]
    else:
        executor.on("find", Answers(found("Budget review of spring", "bob@contoso.example")))
        assert asked(one, "Budget review of spring").status == 200
        executor.on("find", Answers(found(title, "eve@evil.example")))
        assert asked(other, query).status == 200
    assert one.call("read_secret", {}, session_id=session, key=one.key).status == 200
    sent = {
        (gateway.url, mail): gateway.call("mail", {"to": mail}, session_id=session, key=one.key).status
        for gateway in (other, one)
        for mail in ("eve@evil.example", "bob@contoso.example")
    }
    allowed = {mail for (_, mail), status in sent.items() if status == 200}
    assert len(allowed) == 1
    assert allowed == {"bob@contoso.example"} or at_once
    assert set(sent.values()) == {200, 403}
    named = [
        value
        for record in journal_of(one.folder)
        if record["kind"] == "values_named" and record["session_id"] == session and record["source"] == "guests"
        for value in record["values"]
    ]
    assert {value["text"] for value in named if value["kind"] == "email"} == allowed


def test_a_session_closed_at_one_is_closed_at_the_other(
    one: GatewayProcess, other: GatewayProcess, executor: FakeToolServer
) -> None:
    executor.on("read_alert", Answers(ROWS))
    session = opened(one)
    handle = other.call("read_alert", {}, session_id=session, key=one.key).body["result"]["rows"][0]["CommandLine"]
    assert one.request("DELETE", f"/v1/sessions/{session}", key=one.user).status == 204
    executor.calls.clear()
    for tool, arguments in (("read_public", {}), ("search", {"query": "x"}), ("read_public", {"marker": "again"})):
        refused = other.call(tool, arguments, session_id=session, key=one.key)
        expect_refused(other, refused, 409, "conflict")
    shown = other.request("POST", f"/v1/sessions/{session}/resolve", key=one.user, body={"handles": [handle["$ref"]]})
    assert shown.body["values"] == {}
    assert executor.calls == []


@pytest.mark.requirement("TAINT-3")
@pytest.mark.parametrize("where", ["there", "elsewhere"])
def test_a_result_that_comes_after_its_session_was_closed_leaves_no_hidden_value(
    one: GatewayProcess, other: GatewayProcess, executor: FakeToolServer, where: str
) -> None:
    release = threading.Event()
    executor.on("read_alert", Waits(release, ROWS))
    session = opened(one)
    closing = one if where == "there" else other
    while executor.arrived.acquire(blocking=False):
        pass
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(one.call, "read_alert", {}, session_id=session, key=one.key)
        assert executor.arrived.acquire(timeout=WAIT_S)
        assert closing.request("DELETE", f"/v1/sessions/{session}", key=one.user).status == 204
        release.set()
        answer = late.result()
    shown = one.request(
        "POST", f"/v1/sessions/{session}/resolve", key=one.user, body={"handles": ["r1#/rows/0/CommandLine"]}
    )
    assert shown.body["values"] == {}
    assert shown.body["refused"] == []
    assert "SECRET" not in answer.content.decode()
    audit_id = answer.body["audit_id"]
    kinds = [record["kind"] for record in journal_of(one.folder) if record.get("audit_id") == audit_id]
    assert kinds == ["intent", "outcome"]


@pytest.mark.requirement("TAINT-6")
def test_a_store_written_at_one_is_read_with_its_label_at_the_other(
    one: GatewayProcess, other: GatewayProcess, executor: FakeToolServer
) -> None:
    reader = opened(other)
    assert other.call("read_incident", {"incident": "77"}, session_id=reader, key=other.key).status == 200
    assert other.call("search", {"query": "x"}, session_id=reader, key=other.key).status == 200
    writer = opened(one)
    say(one, writer, "comment on incident 77", key=one.user)
    assert one.call("read_secret", {}, session_id=writer, key=one.key).status == 200
    assert one.call("comment", {"incident": "77", "message": "secret"}, session_id=writer, key=one.key).status == 200
    assert other.call("read_incident", {"incident": "77"}, session_id=reader, key=other.key).status == 200
    refused = other.call("search", {"query": "x"}, session_id=reader, key=other.key)
    assert expect_refused(other, refused, 403, "sink_label")["context_after"] == TOP


@pytest.mark.requirement("GATE-7")
@pytest.mark.requirement("APPR-2")
@pytest.mark.requirement("APPR-4")
def test_a_yes_at_one_serves_no_call_whose_memory_rose_at_the_other(
    one: GatewayProcess, other: GatewayProcess, executor: FakeToolServer
) -> None:
    """The attacker's text is read in another conversation, at the other process, while the question waits."""
    store = KeyStore(one.folder / "keys.sqlite")
    agent, info = store.create([Scope.EXECUTE], name="remembers")
    person, _ = store.create([Scope.USER], name="asks", for_key=info.key_id)
    store.close()
    asking, elsewhere = opened(one, key=person), opened(other, key=person)
    asked = one.call("close_alert", {"alert": "7"}, session_id=asking, key=agent).body["approval_id"]
    shown = one.request("GET", f"/v1/approvals/{asked}", key=person).body
    assert shown["memory"] == {"sensitivity": "LOW", "integrity": "TRUSTED"}
    assert other.call("read_secret", {}, session_id=elsewhere, key=agent).status == 200
    decided = one.request("POST", f"/v1/approvals/{asked}/approve", key=person, body={}).body
    assert (decided["outcome"]["status"], decided["outcome"]["reason"]) == ("denied", "approval_required")
    again = decided["outcome"]["approval_id"]
    assert again not in (None, asked)
    assert other.request("GET", f"/v1/approvals/{again}", key=person).body["memory"] == TOP
    assert [call.tool for call in executor.calls] == ["read_secret"]
    refusal = next(each for each in journal_of(one.folder) if each.get("approval_id") == again)
    assert (refusal["kind"], refusal["reason"]) == ("refusal", "approval_required")
    assert other.request("POST", f"/v1/approvals/{again}/approve", key=person, body={}).body["state"] == "used"
    assert [call.tool for call in executor.calls] == ["read_secret", "close_alert"]


def test_a_key_revoked_beside_them_opens_neither(
    one: GatewayProcess, other: GatewayProcess, executor: FakeToolServer
) -> None:
    store = KeyStore(one.folder / "keys.sqlite")
    try:
        principal = store.verify(one.key)
        assert principal is not None
        key, info = store.create(principal.scopes, name="to be revoked")
        for gateway in (one, other):
            assert gateway.call("read_public", {}, session_id="of-the-revoked", key=key).status == 200
        assert store.revoke(info.key_id)
    finally:
        store.close()
    executor.calls.clear()
    for gateway in (one, other):
        refused = gateway.call("read_public", {}, session_id="of-the-revoked", key=key)
        assert (refused.status, refused.body["reason"]) == (401, "unauthenticated")
    assert executor.calls == []


def test_a_session_opened_by_use_at_both_at_once_belongs_to_one_key(
    one: GatewayProcess, other: GatewayProcess, executor: FakeToolServer
) -> None:
    for turn in range(5):
        start = threading.Barrier(8)

        def use(index: int, turn: int = turn, start: threading.Barrier = start) -> tuple[str, int]:
            gateway = (one, other)[index % 2]
            start.wait()
            return gateway.key, gateway.call("read_public", {}, session_id=f"contested-{turn}", key=gateway.key).status

        with ThreadPoolExecutor(8) as pool:
            ends = set(pool.map(use, range(8)))
        assert sorted(status for _, status in ends) == [200, 404]


@pytest.mark.requirement("AUD-1")
def test_the_one_journal_of_both_is_one_chain(pair: list[GatewayProcess]) -> None:
    found = JournalReader(pair[0].folder / "journal.sqlite").verify()
    assert found.intact
    assert found.records > 10
