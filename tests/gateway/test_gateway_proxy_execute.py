"""`POST /v1/proxy-execute` as a caller sees it, over real sockets on both sides."""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.gateway.admission import GatewayLimits
from sentinel_rag.gateway.policy import Policy, parse_policy
from sentinel_rag_testing.fake_tool_server import Answers, AnswersText, Fails, FakeToolServer, Sends, Waits
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway
from waiting import WAIT_S


@pytest.mark.requirement("GATE-1")
def test_an_allowed_call_returns_the_result_and_is_recorded_before_and_after(gateway: RunningGateway) -> None:
    gateway.executor.on("query_incidents", Answers({"rows": [{"number": 55}, {"number": 39}], "summary": {}}))
    answer = gateway.call("query_incidents", {"min_severity": "High", "limit": 2})
    assert answer.status == 200
    audit_id = answer.body["audit_id"]
    assert answer.body == {
        "result": {"rows": [{"number": 55}, {"number": 39}], "summary": {}},
        "status": "success",
        "audit_id": audit_id,
    }
    [call] = gateway.executor.calls
    assert (call.tool, call.arguments) == ("query_incidents", {"min_severity": "High", "limit": 2})
    intent, outcome = [record for record in gateway.records() if record["audit_id"] == audit_id]
    assert (intent["kind"], intent["rule_id"], intent["arguments"]) == (
        "intent",
        "query_incidents_any",
        {"min_severity": "High", "limit": 2},
    )
    assert intent["context_before"] == {"sensitivity": "LOW", "integrity": "TRUSTED"}
    assert intent["context_after"] == {"sensitivity": "MEDIUM", "integrity": "UNTRUSTED"}
    assert (outcome["kind"], outcome["status"], outcome["rows"]) == ("outcome", "success", 2)
    result = answer.content[len(b'{"result":') : answer.content.index(b',"status":"success"')]
    assert outcome["result_sha256"] == hashlib.sha256(result).hexdigest()


@pytest.mark.requirement("GATE-1")
def test_a_denied_call_names_the_level_the_reason_and_the_rule(gateway: RunningGateway) -> None:
    answer = gateway.call("run_kql_query", {"template": "raw_signins"})
    assert answer.status == 403
    assert answer.body == {
        "detail": "Access denied by security policy. Taint level: HIGH",
        "status": "denied",
        "reason": "approval_required",
        "rule_id": "kql_raw_signins_needs_approval",
        "audit_id": answer.body["audit_id"],
        "approval_id": answer.body["approval_id"],
    }
    record = gateway.last_record()
    assert (record["audit_id"], record["kind"], record["decision"]) == (answer.body["audit_id"], "refusal", "deny")
    assert gateway.executor.calls == []


def test_an_alias_runs_the_tool_under_its_own_name(gateway: RunningGateway) -> None:
    assert gateway.call("query_sentinel_incidents", {}).status == 200
    assert [call.tool for call in gateway.executor.calls] == ["query_incidents"]
    intent = gateway.records()[-2]
    assert (intent["tool"], intent["requested_tool"]) == ("query_incidents", "query_sentinel_incidents")


@pytest.mark.parametrize(
    ("code", "status", "reason"),
    [
        (QueryErrorCode.INVALID_ARGUMENT, 422, "invalid_argument"),
        (QueryErrorCode.QUERY_REJECTED, 422, "invalid_argument"),
        (QueryErrorCode.THROTTLED, 429, "rate_limited"),
        (QueryErrorCode.TIMEOUT, 504, "upstream_timeout"),
        (QueryErrorCode.ACCESS_DENIED, 502, "upstream_failed"),
        (QueryErrorCode.WORKSPACE_NOT_FOUND, 502, "upstream_failed"),
        (QueryErrorCode.UNAVAILABLE, 502, "upstream_failed"),
        (QueryErrorCode.PROTOCOL, 502, "upstream_failed"),
        (QueryErrorCode.INTERNAL, 502, "upstream_failed"),
    ],
)
@pytest.mark.requirement("GATE-1")
def test_a_typed_error_of_a_tool_keeps_its_type(
    gateway: RunningGateway, code: QueryErrorCode, status: int, reason: str
) -> None:
    error = QueryError(code=code, message="It did not work.", field="limit", retry_after_s=7.2)
    gateway.executor.on("query_incidents", Fails(error))
    answer = gateway.call("query_incidents", {})
    assert (answer.status, answer.body["reason"], answer.body["error"]) == (status, reason, error.to_dict())
    assert answer.headers.get("retry-after") == ("8" if status == 429 else None)
    outcome = gateway.last_record()
    assert (outcome["status"], outcome["error_code"]) == ("error", code.value)


def test_a_misspelt_argument_is_answered_with_the_nearest_name(gateway: RunningGateway) -> None:
    answer = gateway.call("run_kql_query", {"templat": "x"})
    assert (answer.status, answer.body["reason"]) == (422, "invalid_argument")
    assert answer.body["detail"] == "'templat' is not a parameter of run_kql_query; did you mean 'template'?"
    error = answer.body["error"]
    assert (error["field"], error["allowed"][0], error["retry_possible"]) == ("templat", "template", False)
    assert error["next_step"] == "Call again with another argument: correct or leave out templat."
    assert gateway.call("run_kql_query", {}).body["error"]["field"] == "template"
    assert gateway.executor.calls == []


def test_a_name_that_no_parameter_could_have_is_not_repeated(gateway: RunningGateway) -> None:
    for name in ("secret\x1b[31m value", "x" * 41, ""):
        answer = gateway.call("query_incidents", {name: "x"})
        assert answer.body["detail"].startswith("An argument is not a parameter of query_incidents; there are: ")
        assert answer.body["error"]["field"] == ""


def test_text_results_stay_text_and_several_blocks_stay_several(gateway: RunningGateway) -> None:
    gateway.executor.on("list_tables", AnswersText(("00713",)), AnswersText(("a", "b")), AnswersText(()))
    assert gateway.call("list_tables", {}).body["result"] == "00713"
    assert gateway.call("list_tables", {}).body["result"] == [
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
    ]
    assert gateway.call("list_tables", {}).body["result"] is None


@pytest.mark.parametrize(
    "behaviour",
    [
        Sends(b"<html>Bad gateway</html>", 502, "text/html"),
        Sends(b'{"jsonrpc":"2.0","id":1'),
        Sends(b'{"jsonrpc":"2.0","id":999999,"result":{"content":[]}}'),
        Sends(b'{"jsonrpc":"2.0","id":null,"result":{}}'),
        Sends(b"", 202),
        Sends(b"[" * 100_000),
        Sends(b"", 307),
    ],
    ids=["html", "cut", "answer-to-another-call", "no-result", "empty", "nested", "redirect"],
)
def test_an_answer_that_is_not_one_is_502_and_never_a_success(gateway: RunningGateway, behaviour: Sends) -> None:
    gateway.executor.on("list_tables", behaviour)
    answer = gateway.call("list_tables", {})
    assert (answer.status, answer.body["reason"]) == (502, "upstream_failed")
    assert answer.body["error"]["code"] == "protocol"
    assert b"Bad gateway" not in answer.content


def test_an_untyped_tool_error_shows_its_text_but_never_the_credential(gateway: RunningGateway) -> None:
    gateway.executor.on("list_tables", AnswersText(("no such table; sent upstream-token",), is_error=True))
    answer = gateway.call("list_tables", {})
    assert (answer.status, answer.body["detail"]) == (502, "no such table; sent [credential]")


def test_a_slow_tool_ends_in_504_within_its_own_limit(executor: FakeToolServer, tmp_path: Path) -> None:
    policy = parse_policy(
        """
tools:
  - name: list_tables
    timeout_s: 1
    effect: read
    taint_rules: [{rule_id: any, condition: "true", taint_level: LOW}]
"""
    )
    release = threading.Event()
    executor.on("list_tables", Waits(release))
    with running_gateway(policy, tmp_path, executor) as gateway:
        answer = gateway.call("list_tables", {})
        release.set()
        assert (answer.status, answer.body["reason"]) == (504, "upstream_timeout")
        assert gateway.last_record()["status"] == "error"
        assert len(executor.calls) == 1


def test_calls_in_flight_are_bounded(executor: FakeToolServer, shipped_policy: Policy, tmp_path: Path) -> None:
    release = threading.Event()
    executor.on("list_tables", Waits(release))
    limits = GatewayLimits(calls_in_flight=2)
    with running_gateway(shipped_policy, tmp_path, executor, limits=limits) as gateway, ThreadPoolExecutor(2) as pool:
        running = [pool.submit(gateway.call, "list_tables", {}) for _ in range(2)]
        for _ in running:
            assert executor.arrived.acquire(timeout=WAIT_S)
        refused = gateway.call("list_tables", {})
        release.set()
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert [future.result().status for future in running] == [200, 200]
        assert gateway.call("list_tables", {}).status == 200


def test_results_of_concurrent_calls_are_not_swapped(gateway: RunningGateway) -> None:
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda n: gateway.call("query_incidents", {"limit": n}).body, range(1, 200)))
    assert [answer["result"]["arguments"]["limit"] for answer in answers] == list(range(1, 200))


def test_a_result_over_the_limit_is_413_and_not_cut(
    executor: FakeToolServer, shipped_policy: Policy, tmp_path: Path
) -> None:
    from sentinel_rag.gateway.upstream import McpHttpUpstream

    upstream = McpHttpUpstream(executor.url, token=executor.token, max_result_bytes=50_000)
    executor.on("list_tables", Answers({"text": "x" * 50_000}))
    with running_gateway(shipped_policy, tmp_path, executor, upstreams={"sentinel": upstream}) as gateway:
        answer = gateway.call("list_tables", {})
        assert (answer.status, answer.body["reason"]) == (413, "too_large")
        assert b"xxx" not in answer.content


def test_a_tool_whose_server_is_not_connected_is_502(
    executor: FakeToolServer, shipped_policy: Policy, tmp_path: Path
) -> None:
    with running_gateway(shipped_policy, tmp_path, executor, upstreams={}) as gateway:
        answer = gateway.call("list_tables", {})
        assert (answer.status, answer.body["reason"]) == (502, "upstream_failed")
        assert gateway.last_record()["reason"] == "upstream_failed"
        assert gateway.request("GET", "/readyz").status == 503
