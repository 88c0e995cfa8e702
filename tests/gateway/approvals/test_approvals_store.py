"""A call that waits, is decided by somebody else, and runs once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from approval_desk import Desk, the_call

from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.approvals import (
    ApprovalSpent,
    ApprovalState,
    ApprovalVerdict,
    Decider,
    DecisionRefused,
)

ANA = Decider("k-ana", "ana")

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("APPR-1")
@pytest.mark.requirement("APPR-3")
async def test_a_call_is_asked_about_once_approved_by_another_and_used_once(desk: Desk) -> None:
    binding, question = the_call()
    assert await desk.store.approved(binding) is None
    approval_id = await desk.ask(binding, question)
    assert approval_id is not None
    assert await desk.ask(binding, question) == approval_id
    assert await desk.store.approved(binding) is None

    decided = await desk.store.decide(approval_id, ApprovalVerdict.APPROVE, ANA, comment="checked with the owner")
    assert (decided.state, decided.ruling and decided.ruling.by) == (ApprovalState.APPROVED, "k-ana")
    assert await desk.store.approved(binding) == approval_id
    await desk.database.run(desk.store.consume(approval_id, binding))
    assert await desk.store.approved(binding) is None
    with pytest.raises(ApprovalSpent):
        await desk.database.run(desk.store.consume(approval_id, binding))

    used = await desk.store.find(approval_id)
    assert used is not None
    assert used.state is ApprovalState.USED
    assert [record["kind"] for record in desk.records()] == ["approval_asked", "approval_decided"]
    assert {record["audit_id"] for record in desk.records()} == {approval_id}
    asked, ruling = desk.records()
    assert asked["binding_sha256"] == ruling["binding_sha256"] == binding.sha256()
    assert asked["arguments"] == question.arguments
    assert (ruling["key_id"], ruling["decision"], ruling["comment"], ruling["requested_by"]) == (
        "k-ana",
        "approved",
        "checked with the owner",
        "agent",
    )


async def test_the_next_use_needs_a_new_approval(desk: Desk) -> None:
    binding, question = the_call()
    first = await desk.ask(binding, question)
    assert first is not None
    await desk.store.decide(first, ApprovalVerdict.APPROVE, ANA)
    await desk.database.run(desk.store.consume(first, binding))
    second = await desk.ask(binding, question)
    assert second not in (None, first)


async def test_an_approval_that_was_just_given_is_not_asked_about_again(desk: Desk) -> None:
    binding, question = the_call()
    approval_id = await desk.ask(binding, question)
    assert approval_id is not None
    await desk.store.decide(approval_id, ApprovalVerdict.APPROVE, ANA)
    assert await desk.ask(binding, question) == approval_id


@pytest.mark.requirement("APPR-2")
async def test_a_question_shows_exactly_the_arguments_that_are_approved(desk: Desk) -> None:
    binding, question = the_call()
    with pytest.raises(ValueError, match="other arguments"):
        await desk.ask(binding, replace(question, arguments={"incident": "4512", "comment": "harmless"}))
    assert desk.records() == []


async def test_three_wait_at_once_and_each_is_decided_for_itself(desk: Desk) -> None:
    calls = [the_call({"incident": str(number), "comment": "x"}) for number in range(3)]
    ids = [await desk.ask(*call) for call in calls]
    assert None not in ids
    assert len(set(ids)) == 3
    verdicts = [ApprovalVerdict.APPROVE, ApprovalVerdict.DENY, ApprovalVerdict.APPROVE]
    for approval_id, verdict in zip(reversed(ids), verdicts, strict=True):
        assert approval_id is not None
        await desk.store.decide(approval_id, verdict, ANA)
    assert [await desk.store.approved(binding) for binding, _ in calls] == [ids[0], None, ids[2]]
    page = await desk.store.page(None, 10)
    assert [approval.state.value for approval in page.approvals] == ["approved", "denied", "approved"]


async def test_deciding_twice_is_refused_and_on_record(desk: Desk) -> None:
    binding, question = the_call()
    approval_id = await desk.ask(binding, question)
    assert approval_id is not None
    await desk.store.decide(approval_id, ApprovalVerdict.DENY, ANA)
    with pytest.raises(DecisionRefused) as refused:
        await desk.store.decide(approval_id, ApprovalVerdict.APPROVE, Decider("k-bob", "bob"))
    assert refused.value.reason is Reason.APPROVAL_DECIDED
    assert await desk.store.approved(binding) is None
    record = desk.records()[-1]
    assert (record["kind"], record["key_id"], record["reason"]) == (
        "approval_decision_refused",
        "k-bob",
        "approval_decided",
    )
