"""A call that waits, the person who decides it over HTTP, and the retry that runs: through the real gate."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from approval_policy import DISABLE, TEXT, ask, open_gateway

from sentinel_rag.gateway.store import Scope
from sentinel_rag_testing.running_gateway import HttpAnswer, RunningGateway


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[RunningGateway]:
    with open_gateway(tmp_path / "state") as running:
        yield running


def decide(
    gateway: RunningGateway, approval_id: str, verb: str = "approve", *, key: str | None = None, body: Any = None
) -> HttpAnswer:
    content = None if body is None else json.dumps(body).encode()
    return gateway.request("POST", f"/v1/approvals/{approval_id}/{verb}", key=key or gateway.approver, body=content)


@pytest.mark.requirement("APPR-1")
@pytest.mark.requirement("APPR-3")
def test_a_call_waits_is_approved_and_its_retry_runs_once(gateway: RunningGateway) -> None:
    approval_id = ask(gateway)
    assert ask(gateway) == approval_id
    assert gateway.executor.calls == []

    decided = decide(gateway, approval_id, body={"comment": "the owner agreed"})
    assert (decided.status, decided.body["state"]) == (200, "approved")
    assert decided.body["decision"]["comment"] == "the owner agreed"

    assert gateway.call("disable_account", DISABLE).status == 200
    [call] = gateway.executor.calls
    assert (call.tool, call.arguments) == ("disable_account", DISABLE)
    intent = next(record for record in gateway.records() if record["kind"] == "intent")
    assert intent["approval_id"] == approval_id
    assert ask(gateway) != approval_id
    assert len(gateway.executor.calls) == 1

    story = gateway.request("GET", f"/v1/audit/{approval_id}", key=gateway.auditor).body["records"]
    assert [entry["record"]["kind"] for entry in story] == ["approval_asked", "approval_decided"]
    shown = gateway.request("GET", f"/v1/approvals/{approval_id}", key=gateway.approver).body
    assert (shown["state"], shown["may_decide"]) == ("used", False)


def test_a_denied_call_does_not_run_and_is_not_asked_about_again_at_once(gateway: RunningGateway) -> None:
    approval_id = ask(gateway)
    assert decide(gateway, approval_id, "deny").body["state"] == "denied"
    answer = gateway.call("disable_account", DISABLE)
    assert (answer.status, answer.body["reason"]) == (403, "approval_required")
    assert "approval_id" not in answer.body
    assert "denied" in answer.body["note"]
    assert int(answer.headers["retry-after"]) > 1
    assert gateway.executor.calls == []


@pytest.mark.requirement("APPR-2")
@pytest.mark.requirement("APPR-3")
@pytest.mark.parametrize(
    ("arguments", "session_id"),
    [
        ({**DISABLE, "reason": "mail says so "}, "session-1"),
        ({**DISABLE, "reason": "Mail says so"}, "session-1"),
        ({"account": DISABLE["account"]}, "session-1"),
        ({**DISABLE, "account": "t.alvarez2"}, "session-1"),
        (DISABLE, "session-2"),
    ],
)
def test_another_call_does_not_pass_on_it(gateway: RunningGateway, arguments: dict[str, str], session_id: str) -> None:
    approval_id = ask(gateway)
    decide(gateway, approval_id)
    answer = gateway.call("disable_account", arguments, session_id=session_id)
    assert (answer.status, answer.body["reason"]) == (403, "approval_required")
    assert answer.body["approval_id"] != approval_id
    assert gateway.executor.calls == []
    assert gateway.call("disable_account", DISABLE).status == 200


@pytest.mark.requirement("APPR-2")
def test_another_key_does_not_pass_on_it(gateway: RunningGateway) -> None:
    decide(gateway, ask(gateway))
    other = gateway.state.keys.create([Scope.EXECUTE])[0]
    answer = gateway.call("disable_account", DISABLE, session_id="of-the-other", key=other)
    assert (answer.status, answer.body["reason"]) == (403, "approval_required")
    assert gateway.executor.calls == []


@pytest.mark.requirement("APPR-2")
def test_an_approval_does_not_outlive_the_labels_that_it_was_given_under(gateway: RunningGateway) -> None:
    approval_id = ask(gateway)
    decide(gateway, approval_id)
    assert gateway.call("read_mail", {"account": "ceo"}).status == 200
    later = ask(gateway)
    assert later != approval_id
    shown = gateway.request("GET", f"/v1/approvals/{later}", key=gateway.approver).body
    assert shown["context"] == {"sensitivity": "HIGH", "integrity": "UNTRUSTED"}
    [raised] = shown["raised_by"]
    assert raised["tool"] == "read_mail"
    assert [call.tool for call in gateway.executor.calls] == ["read_mail"]


def test_a_call_that_carries_too_much_waits_and_says_what_was_too_much(gateway: RunningGateway) -> None:
    assert gateway.call("web_search", {"query": "cve"}).status == 200
    assert gateway.call("read_mail", {"account": "ceo"}).status == 200
    approval_id = ask(gateway, "web_search", {"query": "what the ceo wrote"})
    shown = gateway.request("GET", f"/v1/approvals/{approval_id}", key=gateway.approver).body
    assert shown["why"] == "sink_label"
    assert {violation["parameter"] for violation in shown["violations"]} >= {"query"}
    assert shown["arguments"] == {"query": "what the ceo wrote"}
    assert shown["effect"] == "external"
    decide(gateway, approval_id)
    assert gateway.call("web_search", {"query": "what the ceo wrote"}).status == 200
    assert gateway.call("web_search", {"query": "what the ceo wrote!"}).status == 403


@pytest.mark.requirement("APPR-2")
def test_of_twenty_racing_retries_one_runs(gateway: RunningGateway) -> None:
    for number in range(5):
        arguments = {"account": f"account-{number}"}
        decide(gateway, ask(gateway, arguments=arguments))
        before = len(gateway.executor.calls)
        start = threading.Barrier(20)

        def race(start: threading.Barrier = start, arguments: dict[str, str] = arguments) -> int:
            start.wait()
            return gateway.call("disable_account", arguments).status

        with ThreadPoolExecutor(20) as pool:
            statuses = [future.result() for future in [pool.submit(race) for _ in range(20)]]
        assert sorted(statuses) == [200] + [403] * 19
        assert len(gateway.executor.calls) - before == 1


def test_three_wait_at_once_and_the_list_says_how_many_more(gateway: RunningGateway) -> None:
    assert gateway.call("read_mail", {}).status == 200  # as high as the labels of this session can go
    ids = [ask(gateway, arguments={"account": f"a{number}"}) for number in range(3)]
    listed = gateway.request("GET", "/v1/approvals?state=pending", key=gateway.approver).body
    assert [each["approval_id"] for each in listed["approvals"]] == ids
    assert {each["more_of_tool"] for each in listed["approvals"]} == {2}
    assert (listed["left_off"], listed["pending_by_tool"]) == (0, {"disable_account": 3})
    decide(gateway, ids[1], "deny")
    decide(gateway, ids[2])
    assert gateway.call("disable_account", {"account": "a2"}).status == 200
    assert ask(gateway, arguments={"account": "a0"}) == ids[0]
    states = {
        each["approval_id"]: each["state"]
        for each in gateway.request("GET", "/v1/approvals", key=gateway.approver).body["approvals"]
    }
    assert states == dict(zip(ids, ["pending", "denied", "used"], strict=True))


def test_long_arguments_are_left_out_of_the_list_and_whole_on_the_page(gateway: RunningGateway) -> None:
    arguments = {"account": "a", "reason": "x" * 50_000}
    approval_id = ask(gateway, arguments=arguments)
    [listed] = gateway.request("GET", "/v1/approvals?state=pending", key=gateway.approver).body["approvals"]
    assert (listed["arguments"], listed["arguments_left_out"], listed["arguments_withheld"]) == (None, True, False)
    shown = gateway.request("GET", f"/v1/approvals/{approval_id}", key=gateway.approver).body
    assert shown["arguments"] == arguments
    record = next(record for record in gateway.records() if record["kind"] == "approval_asked")
    assert record["arguments"] is None
    assert record["binding"]["arguments_sha256"] == shown["arguments_sha256"]


@pytest.mark.parametrize("path", ["none-such", "%2e%2e", "a" * 500, "%00", "' OR 1=1"])
def test_an_unknown_id_is_404(gateway: RunningGateway, path: str) -> None:
    path = path.replace(" ", "%20")
    for method, tail in [("GET", ""), ("POST", "/approve"), ("POST", "/deny")]:
        answer = gateway.request(method, f"/v1/approvals/{path}{tail}", key=gateway.approver)
        assert (answer.status, answer.body["reason"]) == (404, "not_found")


@pytest.mark.parametrize("query", ["state=open", "state=PENDING", "limit=0", "limit=-1", "limit=201", "limit=ten"])
def test_a_wrong_question_says_what_is_allowed(gateway: RunningGateway, query: str) -> None:
    answer = gateway.request("GET", f"/v1/approvals?{query}", key=gateway.approver)
    assert (answer.status, answer.body["reason"]) == (422, "invalid_argument")
    assert "must be" in answer.body["detail"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 422),
        (b"[]", 422),
        (b'{"comment": 5}', 422),
        (b'{"comment": "a", "comment": "b"}', 422),
        (b'{"verdict": "deny"}', 422),
        (json.dumps({"comment": "x" * 2_001}).encode(), 422),
        (b"x" * 1_000_001, 413),
    ],
)
def test_a_body_that_cannot_be_read_decides_nothing(gateway: RunningGateway, body: bytes, status: int) -> None:
    approval_id = ask(gateway)
    for verb in ("approve", "deny"):
        path = f"/v1/approvals/{approval_id}/{verb}"
        assert gateway.request("POST", path, key=gateway.approver, body=body).status == status
    shown = gateway.request("GET", f"/v1/approvals/{approval_id}", key=gateway.approver).body
    assert shown["state"] == "pending"


def test_deciding_twice_is_a_conflict_with_a_stable_reason(gateway: RunningGateway) -> None:
    approval_id = ask(gateway)
    assert decide(gateway, approval_id, "deny").status == 200
    for verb in ("approve", "deny"):
        again = decide(gateway, approval_id, verb)
        assert (again.status, again.body["reason"]) == (409, "approval_decided")
    assert gateway.last_record()["kind"] == "approval_decision_refused"


@pytest.mark.requirement("APPR-2")
def test_a_policy_that_changed_since_is_told_and_the_approval_does_not_fit(tmp_path: Path) -> None:
    with open_gateway(tmp_path / "state") as gateway:
        approval_id, key = ask(gateway), gateway.key
        path = f"/v1/approvals/{approval_id}"
        assert gateway.request("GET", path, key=gateway.approver).body["outdated"] is False
        assert decide(gateway, approval_id).body["state"] == "approved"
    with open_gateway(tmp_path / "state", text=TEXT + "# a remark\n") as gateway:
        assert gateway.request("GET", path, key=gateway.approver).body["outdated"] is True
        again = gateway.call("disable_account", DISABLE, key=key)
        assert (again.status, again.body["reason"]) == (403, "approval_required")
        assert again.body["approval_id"] != approval_id
        assert gateway.executor.calls == []
