"""Calls that wait for a person: asked once, bound to exactly this call, used once."""

from __future__ import annotations

import pytest
from small_gate import SmallGate

from sentinel_rag.contracts.labels import Integrity, Label, Sensitivity
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.approvals import ApprovalVerdict, Decider
from sentinel_rag.gateway.responses import Completed, DeniedCall, Outcome
from sentinel_rag.gateway.upstream import UpstreamTool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("APPR-1")]
UNTRUSTED = Label(integrity=Integrity.UNTRUSTED)


def waiting(outcome: Outcome) -> str:
    assert isinstance(outcome, DeniedCall)
    assert outcome.deny.reason is Reason.APPROVAL_REQUIRED
    assert outcome.approval_id
    return outcome.approval_id


async def approve(here: SmallGate, approval_id: str) -> None:
    await here.state.approvals.decide(approval_id, ApprovalVerdict.APPROVE, Decider("person"))


async def test_a_rule_that_asks_gets_a_person_and_the_call_runs_once(here: SmallGate) -> None:
    first = await here.call("close", {"incident": "7"})
    approval_id = waiting(first)
    assert isinstance(first, DeniedCall)
    assert (first.deny.rule_id, first.deny.label) == ("close_asks", Label(Sensitivity.MEDIUM))
    assert (first.note, first.retry_after_s) == ("", None)
    [refused] = await here.records("refusal")
    assert (refused["approval_id"], refused["reason"], refused["rule_id"]) == (
        approval_id,
        "approval_required",
        "close_asks",
    )
    assert waiting(await here.call("close", {"incident": "7"})) == approval_id  # the same call waits for one answer
    assert here.server.calls == []
    await approve(here, approval_id)
    assert isinstance(await here.call("close", {"incident": "7"}), Completed)
    [intent] = await here.records("intent")
    assert (intent["approval_id"], intent["rule_id"]) == (approval_id, "close_asks")
    again = waiting(await here.call("close", {"incident": "7"}))
    assert again != approval_id
    assert len(here.server.calls) == 1


@pytest.mark.parametrize(
    "other", [{"args": {"incident": "8"}}, {"session": "s2"}, {"key": "another", "session": "s3"}], ids=str
)
async def test_an_approval_is_for_this_call_of_this_session_and_key(here: SmallGate, other: dict[str, object]) -> None:
    approval_id = waiting(await here.call("close", {"incident": "7"}))
    await approve(here, approval_id)
    outcome = await here.call("close", **{"args": {"incident": "7"}, **other})  # type: ignore[arg-type]
    assert waiting(outcome) != approval_id
    assert here.server.calls == []


async def test_an_approval_does_not_outlive_a_rise_of_the_context(here: SmallGate) -> None:
    approval_id = waiting(await here.call("close", {"incident": "7"}))
    await approve(here, approval_id)
    await here.call("read_secret")
    assert waiting(await here.call("close", {"incident": "7"})) != approval_id
    assert [call["tool"] for call in here.server.calls] == ["read_secret"]


async def test_a_rule_may_offer_approval_for_what_the_sink_does_not_accept(here: SmallGate) -> None:
    await here.call("check_text", {"text": "a"})  # from now on the context is untrusted
    outcome = await here.call("isolate", {"host": "ws-1"})
    approval_id = waiting(outcome)
    found = await here.state.approvals.find(approval_id)
    assert found is not None
    question = found.question
    assert [(one.parameter, one.label) for one in question.violations] == [("host", UNTRUSTED)]
    assert [(one.tool, one.label) for one in question.raised_by] == [("check_text", UNTRUSTED)]
    assert question.arguments == {"host": "ws-1"}
    await approve(here, approval_id)
    assert isinstance(await here.call("isolate", {"host": "ws-1"}), Completed)
    assert (await here.records("intent"))[-1]["approval_id"] == approval_id


async def test_a_denied_approval_runs_nothing(here: SmallGate) -> None:
    approval_id = waiting(await here.call("close", {"incident": "7"}))
    await here.state.approvals.decide(approval_id, ApprovalVerdict.DENY, Decider("person"))
    outcome = await here.call("close", {"incident": "7"})
    assert isinstance(outcome, DeniedCall)
    assert outcome.approval_id != approval_id
    assert here.server.calls == []


async def test_who_asks_too_often_is_told_when_to_come_back(here: SmallGate) -> None:
    outcome: Outcome = await here.call("close", {"incident": "1"})
    number = 1
    while isinstance(outcome, DeniedCall) and outcome.approval_id is not None and number < 2_000:
        number += 1
        outcome = await here.call("close", {"incident": str(number)})
    assert isinstance(outcome, DeniedCall)
    assert outcome.approval_id is None
    assert outcome.note
    assert outcome.retry_after_s is not None
    assert (outcome.deny.reason, outcome.deny.rule_id) == (Reason.APPROVAL_REQUIRED, "close_asks")
    assert (await here.records("refusal"))[-1]["approval_id"] is None
    assert here.server.calls == []


async def test_an_approval_is_for_the_definition_that_the_person_knew(here: SmallGate) -> None:
    here.server.listed = (UpstreamTool("close", "Closes.", {"type": "object"}),)
    approval_id = waiting(await here.call("close", {"incident": "7"}))
    await approve(here, approval_id)
    await here.pins.observe("world", [UpstreamTool("close", "Closes, and deletes.", {"type": "object"})])
    [pin] = [pin for pin in here.pins.all() if pin.waiting is not None]
    assert pin.waiting is not None
    await here.pins.accept("world", "close", pin.waiting.sha256, key_id="admin")
    assert waiting(await here.call("close", {"incident": "7"})) != approval_id
    assert here.server.calls == []
