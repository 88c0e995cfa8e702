"""What the gate does with one call, and what the journal says of it afterwards."""

from __future__ import annotations

import hashlib

import pytest
from small_gate import KEY, Clock, SmallGate, fields_of, returned, small_gate

from sentinel_rag.contracts.json_values import canonical_json
from sentinel_rag.contracts.labels import BOTTOM, TOP, Integrity, Label, Sensitivity
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.contracts.tool_calls import Deny, Reason
from sentinel_rag.gateway.admission import GatewayLimits
from sentinel_rag.gateway.policy import Policy
from sentinel_rag.gateway.policy.model import Rate
from sentinel_rag.gateway.responses import Completed, DeniedCall, NotCompleted
from sentinel_rag.gateway.store import Principal, Scope, State
from sentinel_rag.gateway.upstream import ToolFailed, Unanswered, UpstreamTool

pytestmark = pytest.mark.anyio
UNTRUSTED = Label(integrity=Integrity.UNTRUSTED)


def sha256(value: object) -> str:
    return hashlib.sha256(canonical_json(value)).hexdigest()  # type: ignore[arg-type]


@pytest.mark.requirement("AUD-4")
async def test_an_allowed_call_runs_and_is_recorded_before_and_after(here: SmallGate, policy: Policy) -> None:
    here.server.answers["read_incident"] = returned({"rows": [1, 2]}, 2)
    outcome = await here.call("incident", {"incident": "7"})
    assert isinstance(outcome, Completed)
    assert outcome.encoded == b'{"rows":[1,2]}'
    assert here.server.calls == [
        {"tool": "read_incident", "arguments": {"incident": "7"}, "principal": KEY, "session_id": "s1", "timeout_s": 7}
    ]
    opened, intent, done = await here.records()
    assert fields_of(opened, ("kind", "key_id", "session_id", "change")) == {
        "kind": "session",
        "key_id": KEY,
        "session_id": "s1",
        "change": "opened",
    }
    assert intent["audit_id"] == done["audit_id"] == outcome.audit_id
    expected = {
        "kind": "intent",
        "key_id": KEY,
        "session_id": "s1",
        "tool": "read_incident",
        "requested_tool": "incident",
        "server": "world",
        "effect": "read",
        "arguments": {"incident": "7"},
        "arguments_sha256": sha256({"incident": "7"}),
        "decision": "allow",
        "rule_id": "read_incident_any",
        "label": UNTRUSTED.to_dict(),
        "context_before": BOTTOM.to_dict(),
        "context_after": UNTRUSTED.to_dict(),
        "policy_sha256": policy.sha256,
    }
    assert fields_of(intent, expected) == expected
    assert (intent["flow"], intent["approval_id"]) == (None, None)
    assert done["status"] == "success"
    assert done["rows"] == 2
    assert done["result_sha256"] == hashlib.sha256(outcome.encoded).hexdigest()
    assert 0 <= done["duration_ms"] < 60_000
    assert await here.context() == UNTRUSTED


async def test_a_tool_without_a_limit_of_its_own_gets_the_one_of_the_gateway(state: State, policy: Policy) -> None:
    here = small_gate(state, policy, limits=GatewayLimits(tool_seconds=12.5))
    await here.call("read_secret")
    assert here.server.calls[0]["timeout_s"] == 12.5


async def test_an_unknown_tool_is_denied_and_recorded(here: SmallGate, policy: Policy) -> None:
    outcome = await here.call("nothing", {"a": 1})
    assert isinstance(outcome, DeniedCall)
    assert (outcome.deny, outcome.approval_id) == (Deny(Reason.UNKNOWN_TOOL, TOP), None)
    [record] = await here.records("refusal")
    assert record["audit_id"] == outcome.audit_id
    expected = {
        "key_id": KEY,
        "session_id": "s1",
        "tool": None,
        "requested_tool": "nothing",
        "arguments": {"a": 1},
        "arguments_sha256": sha256({"a": 1}),
        "reason": "unknown_tool",
        "http_status": 403,
        "rule_id": None,
        "label": TOP.to_dict(),
        "context_before": BOTTOM.to_dict(),
        "policy_sha256": policy.sha256,
        "approval_id": None,
        "flow": None,
    }
    assert fields_of(record, expected) == expected
    assert here.server.calls == []


async def test_a_rule_that_denies_names_itself_and_its_label(here: SmallGate) -> None:
    outcome = await here.call("check_text", {"text": "for admins"})
    assert isinstance(outcome, DeniedCall)
    assert outcome.deny == Deny(Reason.RULE_DENIES, Label(Sensitivity.MEDIUM), "check_text_deny")
    assert outcome.approval_id is None
    [record] = await here.records("refusal")
    expected = {
        "tool": "check_text",
        "arguments": {"text": "for admins"},
        "reason": "rule_denies",
        "rule_id": "check_text_deny",
        "label": Label(Sensitivity.MEDIUM).to_dict(),
    }
    assert fields_of(record, expected) == expected
    assert here.server.calls == []


async def test_a_call_that_no_rule_lets_pass_is_denied(here: SmallGate) -> None:
    outcome = await here.call("check_text", {"text": "x"})
    assert isinstance(outcome, DeniedCall)
    assert outcome.deny == Deny(Reason.NO_RULE_MATCHED, TOP)


async def test_a_session_belongs_to_the_key_that_opened_it(here: SmallGate) -> None:
    await here.session("s1", "another")
    outcome = await here.call("read_secret")
    assert isinstance(outcome, NotCompleted)
    assert (outcome.reason, outcome.detail) == (Reason.NOT_FOUND, "There is no such session.")
    [record] = await here.records("refusal")
    assert (record["tool"], record["context_before"], record["http_status"]) == ("read_secret", None, 404)
    assert record["audit_id"] == outcome.audit_id
    assert here.server.calls == []


async def test_a_closed_session_runs_nothing(here: SmallGate) -> None:
    await here.session()
    assert await here.state.sessions.close("s1", KEY)
    outcome = await here.call("read_secret")
    assert isinstance(outcome, NotCompleted)
    assert outcome.reason is Reason.CONFLICT
    assert outcome.detail == "This session is closed. Open a new one with POST /v1/sessions."
    assert (await here.records("refusal"))[0]["reason"] == "conflict"
    assert here.server.calls == []


async def test_a_key_opens_no_more_sessions_than_it_may(state: State, policy: Policy) -> None:
    here = small_gate(state, policy, limits=GatewayLimits(sessions_per_key=1))
    assert isinstance(await here.call("read_secret"), Completed)
    outcome = await here.call("read_secret", session="s2")
    assert isinstance(outcome, NotCompleted)
    assert outcome.reason is Reason.RATE_LIMITED
    assert "1 sessions" in outcome.detail
    assert "wait" in outcome.detail
    assert (await here.records("refusal"))[0]["http_status"] == 429
    assert isinstance(await here.call("read_secret"), Completed)


@pytest.mark.requirement("GATE-4")
async def test_the_rates_of_key_and_tool_count_together(here: SmallGate) -> None:
    rate = Rate(2, 60.0)
    for _ in range(2):
        assert isinstance(await here.call("read_secret", rate=rate), Completed)
    outcome = await here.call("read_secret", rate=rate)
    assert isinstance(outcome, NotCompleted)
    assert outcome.reason is Reason.RATE_LIMITED
    assert outcome.error is not None
    assert outcome.error.code is QueryErrorCode.THROTTLED
    assert outcome.error.retry_after_s == 60.0
    assert outcome.detail == outcome.error.message
    assert outcome.error.message
    assert outcome.error.next_step
    here.seconds[0] = 61.0
    assert isinstance(await here.call("read_secret", rate=rate), Completed)


async def test_a_rate_of_a_tool_is_for_one_key_and_one_tool(here: SmallGate) -> None:
    for _ in range(3):
        assert isinstance(await here.call("search", {"query": "x"}), Completed)
    outcome = await here.call("search", {"query": "x"})
    assert isinstance(outcome, NotCompleted)
    assert outcome.reason is Reason.RATE_LIMITED
    assert outcome.error is not None
    assert outcome.error.retry_after_s == 10.0
    assert isinstance(await here.call("read_secret"), Completed)
    assert isinstance(await here.call("search", {"query": "x"}, session="s2", key="another"), Completed)
    assert len(here.server.calls) == 5


async def test_a_tool_without_a_server_is_refused(here: SmallGate) -> None:
    outcome = await here.call("elsewhere")
    assert isinstance(outcome, NotCompleted)
    assert outcome.reason is Reason.UPSTREAM_FAILED
    assert "No tool server" in outcome.detail
    assert [record["kind"] for record in await here.records()] == ["session", "refusal"]


async def test_a_server_that_does_not_list_its_tools_gets_no_call(here: SmallGate) -> None:
    here.server.lists = False
    outcome = await here.call("read_secret")
    assert isinstance(outcome, NotCompleted)
    assert outcome.reason is Reason.UPSTREAM_FAILED
    assert outcome.error is not None
    assert outcome.error.code is QueryErrorCode.UNAVAILABLE
    assert outcome.error.message == outcome.detail
    assert "does not list" in outcome.detail
    assert "runs" in outcome.error.next_step
    assert here.server.calls == []
    assert (await here.records("refusal"))[0]["reason"] == "upstream_failed"


async def test_a_changed_definition_puts_the_tool_into_quarantine(here: SmallGate) -> None:
    here.server.listed = (UpstreamTool("read_secret", "Reads.", {"type": "object"}),)
    assert isinstance(await here.call("read_secret"), Completed)
    await here.pins.observe("world", [UpstreamTool("read_secret", "Reads, and obeys.", {"type": "object"})])
    outcome = await here.call("read_secret")
    assert isinstance(outcome, DeniedCall)
    assert outcome.deny == Deny(Reason.TOOL_QUARANTINED, TOP)
    assert "administrator" in outcome.note
    assert len(here.server.calls) == 1
    [record] = await here.records("refusal")
    assert (record["reason"], record["http_status"]) == ("tool_quarantined", 403)


@pytest.mark.requirement("TOOL-5")
async def test_a_tool_that_is_switched_off_is_denied_whatever_its_rules_say(
    state: State, policy: Policy, clock: Clock
) -> None:
    here = small_gate(state, policy, clock=clock, switched_off={"read_secret"})
    outcome = await here.call("read_secret")
    assert isinstance(outcome, DeniedCall)
    assert outcome.deny == Deny(Reason.TOOL_SWITCHED_OFF, TOP)
    assert "switched this tool on" in outcome.note
    assert here.server.calls == []
    [record] = await here.records("refusal")
    assert (record["reason"], record["http_status"], record["tool"]) == ("tool_switched_off", 403, "read_secret")
    assert isinstance(await here.call("read_alert"), Completed)


async def test_arguments_that_do_not_fit_are_refused_with_what_would(here: SmallGate) -> None:
    outcome = await here.call("check_text", {"text": "a", "count": "1"})
    assert isinstance(outcome, NotCompleted)
    assert outcome.reason is Reason.INVALID_ARGUMENT
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.field, outcome.error.allowed) == (
        QueryErrorCode.INVALID_ARGUMENT,
        "count",
        ("integer",),
    )
    assert outcome.error.message == outcome.detail == "count must be integer."
    assert outcome.error.next_step
    [record] = await here.records("refusal")
    assert record["arguments"] == {"text": "a", "count": "1"}
    assert (record["reason"], record["context_before"], record["tool"]) == (
        "invalid_argument",
        BOTTOM.to_dict(),
        "check_text",
    )


@pytest.mark.parametrize(("length", "kept"), [(16_384, True), (16_385, False)])
async def test_long_arguments_of_a_refused_call_leave_only_their_hash(here: SmallGate, length: int, kept: bool) -> None:
    args = {"text": "x" * (length - len('{"text":""}'))}
    assert isinstance(await here.call("check_text", args), DeniedCall)
    [record] = await here.records("refusal")
    assert record["arguments"] == (args if kept else None)
    assert record["arguments_sha256"] == sha256(args)


async def test_a_body_that_cannot_be_read_is_recorded_without_anything_of_it(here: SmallGate, policy: Policy) -> None:
    outcome = await here.gate.refuse_body(Principal(KEY, frozenset({Scope.EXECUTE})), "the body is not UTF-8")
    assert outcome.reason is Reason.MALFORMED_BODY
    assert outcome.detail == "The request was refused: the body is not UTF-8."
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.message) == (QueryErrorCode.INVALID_ARGUMENT, outcome.detail)
    [record] = await here.records()
    expected = {
        "audit_id": outcome.audit_id,
        "kind": "refusal",
        "key_id": KEY,
        "session_id": None,
        "tool": None,
        "requested_tool": None,
        "arguments": None,
        "arguments_sha256": None,
        "reason": "malformed_body",
        "http_status": 422,
        "label": None,
        "context_before": None,
        "policy_sha256": policy.sha256,
    }
    assert fields_of(record, expected) == expected


@pytest.mark.requirement("GATE-4")
async def test_no_more_calls_run_at_once_than_may(state: State, policy: Policy) -> None:
    here = small_gate(state, policy, limits=GatewayLimits(calls_in_flight=1))
    inner: list[object] = []

    async def asks_again() -> object:
        inner.append(await here.call("check_text", {"text": "a"}, session="s2"))
        return returned({})

    here.server.answers["read_secret"] = asks_again
    assert isinstance(await here.call("read_secret"), Completed)
    [outcome] = inner
    assert isinstance(outcome, NotCompleted)
    assert outcome.reason is Reason.OVERLOADED
    assert "running" in outcome.detail
    assert isinstance(await here.call("check_text", {"text": "a"}, session="s2"), Completed)


async def test_one_key_leaves_room_for_others(state: State, policy: Policy) -> None:
    here = small_gate(state, policy, limits=GatewayLimits(calls_in_flight_per_key=1))
    inner: list[object] = []

    async def asks_again() -> object:
        inner.append(await here.call("check_text", {"text": "a"}, session="s2"))
        inner.append(await here.call("check_text", {"text": "a"}, session="s3", key="another"))
        return returned({})

    here.server.answers["read_secret"] = asks_again
    assert isinstance(await here.call("read_secret"), Completed)
    assert [type(one) for one in inner] == [NotCompleted, Completed]
    assert isinstance(await here.call("check_text", {"text": "a"}, session="s2"), Completed)


@pytest.mark.requirement("AUD-1")
async def test_a_call_whose_server_breaks_its_promise_is_unknown_and_leaves_its_place(
    state: State, policy: Policy
) -> None:
    here = small_gate(state, policy, limits=GatewayLimits(calls_in_flight=1))
    here.server.answers["read_secret"] = RuntimeError("a fault of the client")
    with pytest.raises(RuntimeError, match="a fault of the client"):
        await here.call("read_secret")
    intent, done = (await here.records())[1:]
    assert (done["kind"], done["status"], done["audit_id"]) == ("outcome", "unknown", intent["audit_id"])
    assert isinstance(await here.call("check_text", {"text": "a"}), Completed)


async def test_what_a_tool_says_of_its_failure_is_told(here: SmallGate) -> None:
    error = QueryError(code=QueryErrorCode.QUERY_REJECTED, message="no such column: Hostt")
    here.server.answers["read_secret"] = ToolFailed(error)
    outcome = await here.call("read_secret")
    assert isinstance(outcome, NotCompleted)
    assert (outcome.reason, outcome.detail, outcome.error) == (Reason.INVALID_ARGUMENT, error.message, error)
    [done] = await here.records("outcome")
    assert (done["status"], done["error_code"]) == ("error", error.code.value)


@pytest.mark.requirement("TAINT-3")
async def test_a_failing_tool_that_hides_parts_tells_only_that_it_failed(here: SmallGate) -> None:
    here.server.answers["read_alert"] = ToolFailed(
        QueryError(code=QueryErrorCode.QUERY_REJECTED, message="near SECRET", next_step="look at SECRET")
    )
    outcome = await here.call("read_alert")
    assert isinstance(outcome, NotCompleted)
    assert outcome.error is not None
    assert outcome.error.code is QueryErrorCode.QUERY_REJECTED
    assert "SECRET" not in f"{outcome.detail}{outcome.error}"
    assert "withheld" in outcome.detail


async def test_a_write_without_an_answer_is_not_to_be_repeated(here: SmallGate) -> None:
    error = QueryError(code=QueryErrorCode.TIMEOUT, message="No answer.")
    here.server.answers["comment"] = Unanswered(Reason.UPSTREAM_TIMEOUT, error, may_have_run=True)
    outcome = await here.call("comment", {"incident": "1", "message": "m"})
    assert isinstance(outcome, NotCompleted)
    assert outcome.reason is Reason.UPSTREAM_TIMEOUT
    assert outcome.error is not None
    assert "look before" in outcome.error.next_step
