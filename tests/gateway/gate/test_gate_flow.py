"""Labels, handles and named values on their way through the gate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from small_gate import KEY, Clock, Server, SmallGate, fields_of, opened, returned, small_gate

from sentinel_rag.contracts.labels import BOTTOM, TOP, Integrity, Label, Sensitivity
from sentinel_rag.contracts.tool_calls import Deny, Reason
from sentinel_rag.gateway.policy import Policy
from sentinel_rag.gateway.responses import Completed, DeniedCall, NotCompleted
from sentinel_rag.gateway.store import State

pytestmark = pytest.mark.anyio
UNTRUSTED = Label(integrity=Integrity.UNTRUSTED)
SECRET = Label(Sensitivity.HIGH)
ALERT = {
    "rows": [
        {"Title": "the first", "CommandLine": "run admin", "Host": "ws-1"},
        {"Title": "the second", "CommandLine": "run plain", "Host": "ws-2"},
    ],
    "total": 2,
}


def handle(row: int, result: int = 1) -> dict[str, Any]:
    return {"$ref": f"r{result}#/rows/{row}/CommandLine"}


@pytest.fixture
async def alert(here: SmallGate) -> SmallGate:
    here.server.answers["read_alert"] = returned(ALERT)
    outcome = await here.call("read_alert")
    assert isinstance(outcome, Completed)
    assert json.loads(outcome.encoded) == {
        "rows": [
            {"Title": {"$quote": "the first"}, "CommandLine": handle(0), "Host": "ws-1"},
            {"Title": {"$quote": "the second"}, "CommandLine": handle(1), "Host": "ws-2"},
        ],
        "total": 2,
    }
    return here


@pytest.mark.requirement("TAINT-3")
async def test_each_result_of_a_session_has_its_own_handles(alert: SmallGate) -> None:
    outcome = await alert.call("read_alert")
    assert isinstance(outcome, Completed)
    assert json.loads(outcome.encoded)["rows"][1]["CommandLine"] == handle(1, result=2)
    alert.server.answers["read_alert"] = returned({"rows": [{"CommandLine": "third"}]})
    await alert.call("read_alert")
    await alert.call("check_text", {"text": handle(0, result=3)})
    await alert.call("check_text", {"text": handle(0, result=2)})
    assert await alert.context() == TOP
    records = await alert.records("intent", "refusal")
    assert records[-1]["arguments"] == {"text": "run admin"}


@pytest.mark.requirement("TAINT-3")
async def test_a_handle_becomes_its_value_and_its_label_reaches_the_record(alert: SmallGate) -> None:
    assert await alert.context() == UNTRUSTED
    await alert.says("Comment on incident 9.")
    outcome = await alert.call("comment", {"incident": "9", "message": handle(0)})
    assert isinstance(outcome, Completed)
    assert alert.server.calls[-1]["arguments"] == {"incident": "9", "message": "run admin"}
    intent = (await alert.records("intent"))[-1]
    assert intent["flow"] == {
        "handles": {"message": {"handles": [handle(0)["$ref"]], "label": TOP.to_dict()}},
        "named": [{"parameter": "incident", "kind": "incident", "text": "9", "by": "user"}],
    }
    assert intent["context_after"] == TOP.to_dict()


async def test_a_handle_of_another_session_is_none(alert: SmallGate) -> None:
    outcome = await alert.call("check_text", {"text": handle(0)}, session="s2")
    assert isinstance(outcome, NotCompleted)
    assert outcome.reason is Reason.INVALID_ARGUMENT
    assert "handle" in outcome.detail
    assert outcome.error is not None
    assert outcome.error.field == ""
    assert (await alert.records("refusal"))[-1]["arguments"] == {"text": handle(0)}
    assert [call["tool"] for call in alert.server.calls] == ["read_alert"]


@pytest.mark.requirement("TAINT-4")
async def test_what_a_sink_does_not_accept_is_denied_without_a_way_round(alert: SmallGate) -> None:
    outcome = await alert.call("search", {"query": handle(0)})
    assert isinstance(outcome, DeniedCall)
    assert (outcome.deny, outcome.approval_id) == (Deny(Reason.SINK_LABEL, TOP, "search_any"), None)
    assert await alert.context() == TOP  # another type behind the handle would have been refused in another way
    [record] = await alert.records("refusal")
    assert record["flow"]["violations"] == [
        {"parameter": "query", "label": TOP.to_dict(), "accepts": UNTRUSTED.to_dict(), "link": False}
    ]
    assert isinstance(await alert.call("search", {"query": "plain"}), DeniedCall)


@pytest.mark.requirement("TAINT-2")
async def test_a_decision_that_reads_a_hidden_value_raises_the_context_first(alert: SmallGate) -> None:
    outcome = await alert.call("check_text", {"text": handle(0)})
    assert isinstance(outcome, DeniedCall)
    assert outcome.deny.rule_id == "check_text_deny"
    assert await alert.context() == TOP
    kinds = ("kind", "audit_id", "key_id", "session_id", "tool", "context_before", "context_after")
    raised = next(
        record for record in await alert.records() if "context_after" in record and record["kind"] != "intent"
    )
    assert fields_of(raised, kinds) == {
        "kind": raised["kind"],
        "audit_id": outcome.audit_id,
        "key_id": KEY,
        "session_id": "s1",
        "tool": "check_text",
        "context_before": UNTRUSTED.to_dict(),
        "context_after": TOP.to_dict(),
    }
    [refused] = await alert.records("refusal")
    assert refused["context_before"] == TOP.to_dict()
    stories = await alert.state.sessions.raises(await alert.session())
    assert [(one.tool, one.label) for one in stories] == [("read_alert", UNTRUSTED), ("check_text", TOP)]
    assert stories[-1].audit_id == outcome.audit_id


@pytest.mark.requirement("TAINT-2")
async def test_the_type_of_a_hidden_value_is_told_and_so_raises_the_context(alert: SmallGate) -> None:
    outcome = await alert.call("check_text", {"text": "a", "count": handle(0)})
    assert isinstance(outcome, NotCompleted)
    assert outcome.reason is Reason.INVALID_ARGUMENT
    assert outcome.error is not None
    assert outcome.error.field == "count"
    assert await alert.context() == TOP
    assert isinstance(await alert.call("search", {"query": "x"}), DeniedCall)


@pytest.mark.requirement("TAINT-6")
async def test_what_was_written_carries_its_label_to_the_next_reader(alert: SmallGate) -> None:
    await alert.says("Comment on incident 9.")
    await alert.call("comment", {"incident": "9", "message": handle(0)})
    outcome = await alert.call("read_incident", {"incident": "8"}, session="s2", key="another")
    assert isinstance(outcome, Completed)
    assert (await alert.session("s2", "another")).context == UNTRUSTED
    await alert.call("read_incident", {"incident": "9"}, session="s2", key="another")
    assert (await alert.session("s2", "another")).context == TOP
    assert (await alert.records("intent"))[-1]["flow"] == {"resources": TOP.to_dict()}
    await alert.call("read_incident", session="s3", key="a third")
    assert (await alert.session("s3", "a third")).context == TOP  # all incidents, so this one too


@pytest.mark.requirement("TAINT-5")
async def test_an_endorsement_names_what_a_named_record_holds_and_says_so(here: SmallGate) -> None:
    here.server.answers["read_incident"] = returned({"entities": [{"host": "SRV-9"}, {"host": "srv-8"}]})
    await here.call("read_incident", {"incident": "7"})
    assert await here.records("named") == []
    denied = await here.call("isolate", {"host": "srv-9"})
    assert isinstance(denied, DeniedCall)
    await here.says("What about incident 7?")
    outcome = await here.call("read_incident", {"incident": "7"})
    assert isinstance(outcome, Completed)
    [named] = [record for record in await here.records() if "values" in record]
    expected = {"audit_id": outcome.audit_id, "key_id": KEY, "session_id": "s1", "source": "participants"}
    assert fields_of(named, expected) == expected
    assert sorted(value["text"] for value in named["values"]) == ["srv-8", "srv-9"]
    assert isinstance(await here.call("isolate", {"host": "srv-9"}), Completed)
    assert (await here.records("intent"))[-1]["flow"]["named"][0]["by"] == "participants"
    await here.call("read_incident", {"incident": "7"})
    assert len([record for record in await here.records() if "values" in record]) == 1


async def test_an_endorsement_reads_a_result_that_is_quoted_in_part_too(here: SmallGate) -> None:
    here.server.answers["read_shown"] = returned({"note": "n", "hosts": ["srv-5"]})
    await here.says("What about incident 7?")
    await here.call("read_shown", {"incident": "7"})
    assert isinstance(await here.call("isolate", {"host": "srv-5"}), Completed)


async def test_a_result_with_nothing_hidden_in_it_is_shown_as_it_is(here: SmallGate) -> None:
    here.server.answers["read_alert"] = returned({"rows": [], "total": 0})
    outcome = await here.call("read_alert")
    assert isinstance(outcome, Completed)
    assert json.loads(outcome.encoded) == {"rows": [], "total": 0}


@pytest.mark.requirement("TAINT-2")
async def test_parallel_calls_are_judged_by_what_the_other_reveals(here: SmallGate) -> None:
    outcomes: dict[str, object] = {}

    async def ask(tool: str, args: dict[str, Any]) -> None:
        outcomes[tool] = await here.call(tool, args)

    await here.session()
    async with anyio.create_task_group() as group:
        group.start_soon(ask, "read_secret", {})
        group.start_soon(ask, "search", {"query": "x"})
    assert isinstance(outcomes["read_secret"], Completed)
    assert isinstance(outcomes["search"], DeniedCall)


class Beside:
    """A second gateway process over the same folder, as far as the gate can tell."""

    def __init__(self, folder: Path, policy: Policy) -> None:
        self.state = opened(folder)
        self.gate = small_gate(self.state, policy, server=Server())


@pytest.fixture
def beside(state: State, tmp_path: Path, policy: Policy) -> Any:
    other = Beside(tmp_path / "state", policy)
    yield other.gate
    other.state.close()


@pytest.mark.requirement("TAINT-2")
async def test_a_label_that_another_gateway_raised_holds_here(here: SmallGate, beside: SmallGate) -> None:
    assert isinstance(await here.call("search", {"query": "x"}), Completed)
    await beside.call("read_secret")
    outcome = await here.call("search", {"query": "x"})
    assert isinstance(outcome, DeniedCall)
    assert outcome.deny.reason is Reason.SINK_LABEL
    assert len(here.server.calls) == 1


async def test_a_session_that_another_gateway_closed_runs_nothing_here(here: SmallGate, beside: SmallGate) -> None:
    await here.call("read_secret")
    await beside.state.sessions.close("s1", KEY)
    outcome = await here.call("read_secret")
    assert isinstance(outcome, NotCompleted)
    assert (outcome.reason, outcome.detail) == (Reason.CONFLICT, "This session is closed.")
    assert len(here.server.calls) == 1


@pytest.mark.requirement("TAINT-6")
async def test_a_resource_that_another_gateway_wrote_to_is_read_with_its_label(
    here: SmallGate, beside: SmallGate
) -> None:
    await here.call("read_incident", {"incident": "9"}, session="s2")
    beside.server.answers["read_alert"] = returned(ALERT)
    await beside.call("read_secret", session="s1")
    await beside.says("Comment on incident 9.")
    assert isinstance(await beside.call("comment", {"incident": "9", "message": "m"}), Completed)
    await here.call("read_incident", {"incident": "9"}, session="s2")
    assert (await here.context("s2")).sensitivity is Sensitivity.HIGH


async def test_a_handle_kept_by_another_gateway_can_be_used_here(here: SmallGate, beside: SmallGate) -> None:
    beside.server.answers["read_alert"] = returned(ALERT)
    await beside.call("read_alert")
    outcome = await here.call("check_text", {"text": handle(1)})
    assert isinstance(outcome, Completed)
    assert here.server.calls[-1]["arguments"] == {"text": "run plain"}
    assert await here.context() == TOP


async def test_a_session_is_in_use_by_its_last_call(here: SmallGate, clock: Clock) -> None:
    await here.call("read_secret")
    clock.passes(hours=20)
    await here.call("check_text", {"text": "a"})
    clock.passes(hours=20)
    fresh = await here.session("s2")
    assert fresh.context == TOP.join(SECRET)
    clock.passes(hours=25)
    await here.state.sessions.close("s2", KEY)
    assert (await here.session("s3", "nobody yet")).context == BOTTOM


@pytest.mark.requirement("TAINT-5")
async def test_words_that_another_gateway_heard_count_here(here: SmallGate, beside: SmallGate) -> None:
    await here.call("check_text", {"text": "a"})
    assert isinstance(await here.call("isolate", {"host": "ws-1"}), DeniedCall)
    await beside.says("Isolate host ws-1.")
    assert isinstance(await here.call("isolate", {"host": "ws-1"}), Completed)


@pytest.mark.requirement("TAINT-2")
async def test_looking_into_a_hidden_value_tells_of_it(alert: SmallGate) -> None:
    outcome = await alert.call("check_text", {"text": {"$ref": "r1#/rows/0/CommandLine/0"}})
    assert isinstance(outcome, NotCompleted)
    assert outcome.reason is Reason.INVALID_ARGUMENT
    assert await alert.context() == TOP


@pytest.mark.requirement("TAINT-2")
async def test_a_part_of_a_hidden_value_tells_that_it_is_there(here: SmallGate) -> None:
    here.server.answers["read_alert"] = returned({"rows": [{"CommandLine": {"exe": "cmd"}}]})
    await here.call("read_alert")
    outcome = await here.call("search", {"query": {"$ref": "r1#/rows/0/CommandLine/exe"}})
    assert isinstance(outcome, DeniedCall)
    assert outcome.deny.reason is Reason.SINK_LABEL
    assert await here.context() == TOP


@pytest.mark.requirement("TAINT-2")
async def test_in_a_persons_session_too_a_decision_about_a_hidden_value_raises_the_context(here: SmallGate) -> None:
    session = (await here.state.sessions.open(KEY, user_key_id="person")).session_id
    here.server.answers["read_alert"] = returned(ALERT)
    await here.call("read_alert", session=session)
    assert await here.context(session) == UNTRUSTED
    assert isinstance(await here.call("check_text", {"text": handle(0)}, session=session), DeniedCall)
    assert await here.context(session) == TOP
    assert len(await here.records("context_raised")) == 1
    await here.call("check_text", {"text": handle(0)}, session=session)
    assert len(await here.records("context_raised")) == 1  # nothing new was told


@pytest.mark.requirement("TAINT-2")
async def test_what_the_agents_own_session_tells_again_reaches_a_persons_session(alert: SmallGate) -> None:
    await alert.call("check_text", {"text": handle(0)})
    clean = await alert.state.sessions.open(KEY, user_key_id="person")
    assert clean.context == BOTTOM
    await alert.call("check_text", {"text": handle(0)})
    assert clean.context == TOP


async def test_a_denial_that_tells_nothing_of_a_hidden_value_raises_nothing(here: SmallGate) -> None:
    assert isinstance(await here.call("check_text", {"text": "admin"}), DeniedCall)
    assert isinstance(await here.call("check_text", {"text": 5}), NotCompleted)
    assert await here.context() == BOTTOM
    assert [record["kind"] for record in await here.records()] == ["session", "refusal", "refusal"]


@pytest.mark.requirement("TAINT-5")
async def test_what_an_endorsement_named_is_known_to_other_gateways(here: SmallGate, beside: SmallGate) -> None:
    here.server.answers["read_incident"] = returned({"entities": [{"host": "srv-9"}]})
    await here.says("What about incident 7?")
    await here.call("read_incident", {"incident": "7"})
    assert isinstance(await beside.call("isolate", {"host": "srv-9"}), Completed)


@pytest.mark.requirement("TAINT-2")
async def test_a_call_that_finds_no_server_has_told_of_its_handles_too(alert: SmallGate) -> None:
    outcome = await alert.call("elsewhere", {"text": handle(0)})
    assert isinstance(outcome, NotCompleted)
    assert outcome.reason is Reason.UPSTREAM_FAILED
    assert await alert.context() == TOP
    assert len(await alert.records("context_raised")) == 1


async def test_a_call_that_runs_raises_the_context_with_its_intent_alone(alert: SmallGate) -> None:
    assert isinstance(await alert.call("check_text", {"text": handle(1)}), Completed)
    assert await alert.context() == TOP
    assert await alert.records("context_raised") == []
