"""Attacker controls: a valid key of their own, and the id of somebody else's session.

Wanted: to read in it, to run in it, to learn that it exists, to lower its label. The answer is that of a session that
does not exist; no tool server hears of it; the journal says who tried.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from sentinel_rag.gateway.store import Scope
from sentinel_rag_testing.running_gateway import RunningGateway


@pytest.fixture
def attacker(gateway: RunningGateway) -> str:
    return gateway.state.keys.create([Scope.EXECUTE], name="attacker")[0]


def test_another_keys_session_is_not_there(gateway: RunningGateway, attacker: str) -> None:
    opened = gateway.request("POST", "/v1/sessions", key=gateway.key).body["session_id"]
    assert gateway.call("query_incidents", {"owner": "canary-7"}, session_id=opened).status == 200
    before = len(gateway.executor.calls)
    for tool, arguments in [("query_incidents", {}), ("file_write", {}), ("run_kql_query", {"nonsense": 1})]:
        answer = gateway.call(tool, arguments, session_id=opened, key=attacker)
        assert answer.status == 404
        assert answer.body == {
            "detail": "There is no such session.",
            "status": "error",
            "reason": "not_found",
            "audit_id": answer.body["audit_id"],
        }
        record = gateway.last_record()
        assert record["audit_id"] == answer.body["audit_id"]
        assert (record["kind"], record["reason"], record["session_id"]) == ("refusal", "not_found", opened)
        assert record["key_id"] != gateway.records()[1]["key_id"]
        assert record["arguments"] == arguments
    assert len(gateway.executor.calls) == before


def test_closing_another_keys_session_looks_like_closing_none_and_closes_nothing(
    gateway: RunningGateway, attacker: str
) -> None:
    opened = gateway.request("POST", "/v1/sessions", key=gateway.key).body["session_id"]
    there = gateway.request("DELETE", f"/v1/sessions/{opened}", key=attacker)
    nowhere = gateway.request("DELETE", "/v1/sessions/none-such", key=attacker)
    assert (there.status, there.content) == (nowhere.status, nowhere.content)
    assert there.status == 404
    assert gateway.call("list_tables", {}, session_id=opened).status == 200


def test_the_tools_of_another_keys_session_are_told_like_those_of_none(gateway: RunningGateway, attacker: str) -> None:
    """What a session refuses tells how secret its reads were."""
    opened = gateway.open_session()
    assert gateway.call("query_incidents", {}, session_id=opened).status == 200
    both = gateway.state.keys.create([Scope.EXECUTE, Scope.USER], name="both")[0]
    for key in (attacker, both):
        there = gateway.request("GET", f"/v1/tools?session_id={opened}", key=key)
        nowhere = gateway.request("GET", "/v1/tools?session_id=none-such", key=key)
        empty = gateway.request("GET", "/v1/tools?session_id=", key=key)
        assert there.status == 404
        assert {answer.content for answer in (there, nowhere, empty)} == {there.content}
    person = gateway.request("GET", f"/v1/tools?session_id={opened}", key=gateway.user)
    assert (person.status, person.body["reason"]) == (403, "missing_scope")


def test_a_session_opened_by_use_belongs_to_the_first_key_also_in_a_race(
    gateway: RunningGateway, attacker: str
) -> None:
    def use(key: str) -> int:
        return gateway.call("list_tables", {}, session_id="contested", key=key).status

    with ThreadPoolExecutor(8) as pool:
        keys = [gateway.key, attacker] * 8
        statuses = dict.fromkeys((gateway.key, attacker), frozenset[int]())
        for key, status in zip(keys, pool.map(use, keys), strict=True):
            statuses[key] |= {status}
    assert sorted(map(sorted, statuses.values())) == [[200], [404]]
    assert [record["change"] for record in gateway.records() if record["kind"] == "session"] == ["opened"]


@pytest.mark.requirement("TAINT-2")
def test_a_context_label_rises_and_never_falls_and_a_new_session_launders_nothing(gateway: RunningGateway) -> None:
    def context(session_id: str, tool: str) -> tuple[dict[str, str], dict[str, str]]:
        assert gateway.call(tool, {}, session_id=session_id).status == 200
        intent = gateway.records()[-2]
        return intent["context_before"], intent["context_after"]

    low = {"sensitivity": "LOW", "integrity": "TRUSTED"}
    read = {"sensitivity": "LOW", "integrity": "UNTRUSTED"}
    medium = {"sensitivity": "MEDIUM", "integrity": "UNTRUSTED"}
    assert context("one", "list_tables") == (low, read)
    assert context("one", "query_incidents") == (read, medium)
    assert context("one", "list_tables") == (medium, medium)
    assert context("two", "list_tables") == (medium, medium)


def test_a_closed_session_does_not_come_back(gateway: RunningGateway) -> None:
    assert gateway.call("list_tables", {}, session_id="mine").status == 200
    assert gateway.request("DELETE", "/v1/sessions/mine", key=gateway.key).status == 204
    assert gateway.request("DELETE", "/v1/sessions/mine", key=gateway.key).status == 204
    before = len(gateway.executor.calls)
    answer = gateway.call("list_tables", {}, session_id="mine")
    assert (answer.status, answer.body["reason"]) == (409, "conflict")
    assert gateway.last_record()["reason"] == "conflict"
    assert len(gateway.executor.calls) == before
