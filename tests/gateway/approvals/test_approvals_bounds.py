"""A person cannot be flooded, and time ends what nobody decides or uses. The clock is turned by hand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from approval_desk import Clock, Desk, open_desk, the_call

from sentinel_rag.audit import JournalPlace
from sentinel_rag.contracts.labels import BOTTOM
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.approvals import (
    ApprovalSpent,
    ApprovalState,
    ApprovalVerdict,
    Bounds,
    Decider,
    DecisionRefused,
    DeniedBefore,
    TurnedAway,
    Waiting,
)

ANA = Decider("k-ana", "ana")
LIFE_S = 900

pytestmark = pytest.mark.anyio


async def waiting(desk: Desk, number: int = 0, **changes: Any) -> str:
    answer = await desk.store.request(*the_call({"incident": str(number)}, **changes))
    assert isinstance(answer, Waiting)
    return answer.approval_id


async def test_a_key_has_a_few_questions_open_and_no_more(place: JournalPlace) -> None:
    with open_desk(place, Clock(), bounds=Bounds(unwanted_per_conversation=3)) as desk:
        first = await waiting(desk, 0)
        await waiting(desk, 1)
        await waiting(desk, 2)
        records = desk.records()
        answer = await desk.store.request(*the_call({"incident": "3"}))
        assert isinstance(answer, TurnedAway)
        assert answer.retry_after_s == LIFE_S
        assert await desk.ask(*the_call({"incident": "3"})) is None
        assert desk.records() == records
        assert await waiting(desk, 0) == first
        assert await waiting(desk, 3, key_id="another")
        await desk.store.decide(first, ApprovalVerdict.APPROVE, ANA)
        assert await waiting(desk, 3)


async def test_all_keys_together_have_a_bound(place: JournalPlace) -> None:
    with open_desk(place, Clock(), bounds=Bounds(pending=2)) as desk:
        await waiting(desk, 0, key_id="one")
        await waiting(desk, 1, key_id="two")
        answer = await desk.store.request(*the_call({}, key_id="three"))
        assert isinstance(answer, TurnedAway)
        assert "one" not in answer.sentence
        desk.clock.pass_seconds(LIFE_S)
        assert await waiting(desk, 2, key_id="three")


async def test_a_key_that_is_always_denied_cannot_go_on_asking(place: JournalPlace) -> None:
    with open_desk(place, Clock(), bounds=Bounds(unwanted_per_conversation=5)) as desk:
        for number in range(5):
            await desk.store.decide(await waiting(desk, number), ApprovalVerdict.DENY, ANA)
            desk.clock.pass_seconds(10)
        answer = await desk.store.request(*the_call({"incident": "another wording"}))
        assert isinstance(answer, TurnedAway)
        assert answer.retry_after_s == LIFE_S - 50
        desk.clock.pass_seconds(answer.retry_after_s)
        assert await waiting(desk, 6)


async def test_what_a_person_approves_is_not_counted_as_unwanted(place: JournalPlace) -> None:
    with open_desk(place, Clock(), bounds=Bounds(unwanted_per_conversation=2)) as desk:
        for number in range(6):
            await desk.store.decide(await waiting(desk, number), ApprovalVerdict.APPROVE, ANA)


async def test_a_denied_call_is_not_asked_about_again_while_the_no_holds(desk: Desk) -> None:
    denied = await waiting(desk)
    at = desk.clock()
    await desk.store.decide(denied, ApprovalVerdict.DENY, ANA)
    desk.clock.pass_seconds(LIFE_S)
    for change in ({}, {"session_id": "another"}, {"context": BOTTOM}, {"policy_sha256": "q" * 64}):
        answer = await desk.store.request(*the_call({"incident": "0"}, **change), holds=timedelta(hours=2))
        assert isinstance(answer, DeniedBefore), change
        assert (answer.approval_id, answer.decider, answer.at) == (denied, "k-ana", at)
        assert (answer.until, answer.retry_after_s) == (at + timedelta(hours=2), 7200 - LIFE_S)
    assert await waiting(desk, 0, tool="another_tool", near_duplicate_sha256="another tool's")
    assert await waiting(desk, 0, key_id="another agent")
    desk.clock.pass_seconds(7200 - LIFE_S)
    assert isinstance(await desk.store.request(*the_call({"incident": "0"}), holds=timedelta(hours=2)), Waiting)


async def test_a_no_is_one_to_all_that_wait_and_read_alike(desk: Desk) -> None:
    first, other = await waiting(desk), await waiting(desk, 1)
    alike = [await waiting(desk, session_id=f"session-{number}") for number in range(2, 5)]
    await desk.store.decide(alike[1], ApprovalVerdict.DENY, ANA, comment="no")
    waits = (await desk.store.page(ApprovalState.PENDING, 10)).approvals
    assert [each.approval_id for each in waits] == [other]
    said = [record for record in desk.records() if record["kind"] == "approval_decided"]
    assert sorted(record["audit_id"] for record in said) == sorted([first, *alike])
    assert {(record["key_id"], record["decision"], record["comment"]) for record in said} == {("k-ana", "denied", "no")}


async def test_whoever_may_decide_lifts_a_no_once_and_it_is_on_record(desk: Desk) -> None:
    denied, alike = await waiting(desk), await waiting(desk, session_id="another")
    with pytest.raises(DecisionRefused) as nothing:
        await desk.store.lift(denied, ANA)
    assert nothing.value.reason is Reason.CONFLICT
    await desk.store.decide(denied, ApprovalVerdict.DENY, ANA)
    with pytest.raises(DecisionRefused) as own:
        await desk.store.lift(denied, Decider("agent"))
    assert own.value.reason is Reason.OWN_APPROVAL
    assert isinstance(await desk.store.request(*the_call({"incident": "0"})), DeniedBefore)
    await desk.store.lift(alike, ANA, comment="was a mistake")
    assert await waiting(desk)
    with pytest.raises(DecisionRefused):
        await desk.store.lift(denied, ANA)
    [record] = [record for record in desk.records() if record["kind"] == "approval_denial_lifted"]
    assert (record["audit_id"], record["key_id"], record["comment"]) == (alike, "k-ana", "was a mistake")


async def test_that_questions_are_over_a_bound_is_recorded_once_for_as_long_as_a_question_lives(
    place: JournalPlace,
) -> None:
    with open_desk(place, Clock(), bounds=Bounds(unwanted_per_conversation=1)) as desk:
        await waiting(desk)
        for round_ in range(2):
            for number in range(3):
                binding, question = the_call({"incident": f"{number} more"})
                answer = await desk.store.request(binding, question)
                assert isinstance(answer, TurnedAway)
                await desk.store.note_bound(binding, answer, f"call-{round_}-{number}")
            desk.clock.pass_seconds(LIFE_S)
            await waiting(desk, round_ + 1)
        noted = [record for record in desk.records() if record["kind"] == "approvals_bounded"]
        assert [record["audit_id"] for record in noted] == ["call-0-0", "call-1-0"]
        assert noted[0]["why"].startswith(
            "This conversation has asked for 1 approvals within 15 minutes that nobody gave"
        )


@pytest.mark.requirement("APPR-2")
async def test_what_nobody_decides_expires_and_cannot_be_decided(desk: Desk) -> None:
    approval_id = await waiting(desk)
    desk.clock.pass_seconds(LIFE_S - 1)
    assert await waiting(desk) == approval_id
    desk.clock.pass_seconds(1)
    with pytest.raises(DecisionRefused) as refused:
        await desk.store.decide(approval_id, ApprovalVerdict.APPROVE, ANA)
    assert refused.value.reason is Reason.APPROVAL_EXPIRED
    assert await waiting(desk) != approval_id
    assert [record["kind"] for record in desk.records() if record["audit_id"] == approval_id] == [
        "approval_asked",
        "approval_lapsed",
        "approval_decision_refused",
    ]


@pytest.mark.requirement("APPR-2")
async def test_an_approval_that_nobody_uses_expires(desk: Desk) -> None:
    binding, _ = the_call({"incident": "0"})
    approval_id = await waiting(desk)
    desk.clock.pass_seconds(LIFE_S - 1)
    await desk.store.decide(approval_id, ApprovalVerdict.APPROVE, ANA)
    desk.clock.pass_seconds(LIFE_S - 1)
    assert await desk.store.approved(binding) == approval_id
    desk.clock.pass_seconds(1)
    assert await desk.store.approved(binding) is None
    with pytest.raises(ApprovalSpent):
        await desk.database.run(desk.store.consume(approval_id, binding))
    found = await desk.store.find(approval_id)
    assert found is not None
    assert found.state is ApprovalState.EXPIRED
    assert desk.records()[-1]["kind"] == "approval_lapsed"
    assert desk.records()[-1]["state"] == "approved"


async def test_a_lapse_is_recorded_once_however_many_stores_see_it(place: JournalPlace) -> None:
    clock = Clock()
    with open_desk(place, clock) as one, open_desk(place, clock) as other:
        await waiting(one)
        clock.pass_seconds(LIFE_S)
        for desk in (one, other, one):
            assert (await desk.store.page(ApprovalState.EXPIRED, 10)).approvals
        assert [record["kind"] for record in one.records()].count("approval_lapsed") == 1


async def test_what_waits_survives_a_restart(place: JournalPlace) -> None:
    clock = Clock()
    binding, question = the_call()
    with open_desk(place, clock) as desk:
        approval_id = await desk.ask(binding, question)
        assert approval_id is not None
    with open_desk(place, clock) as desk:
        found = await desk.store.find(approval_id)
        assert found is not None
        assert (found.binding, found.question) == (binding, question)
        await desk.store.decide(approval_id, ApprovalVerdict.APPROVE, ANA)
    with open_desk(place, clock) as desk:
        assert await desk.store.approved(binding) == approval_id
        await desk.database.run(desk.store.consume(approval_id, binding))


async def test_pending_ones_are_listed_oldest_first_and_others_newest(place: JournalPlace) -> None:
    with open_desk(place, Clock()) as desk:
        ids = []
        for number in range(4):
            ids.append(await waiting(desk, number))
            desk.clock.pass_seconds(1)
        page = await desk.store.page(ApprovalState.PENDING, 3)
        assert [approval.approval_id for approval in page.approvals] == ids[:3]
        assert (page.left_off, page.pending_by_tool) == (1, {"add_incident_comment": 4})
        page = await desk.store.page(None, 3)
        assert [approval.approval_id for approval in page.approvals] == ids[1:]
        assert page.left_off == 1


async def test_ended_approvals_are_forgotten_after_a_month_and_the_journal_is_not(desk: Desk) -> None:
    old = await waiting(desk)
    await desk.store.decide(old, ApprovalVerdict.DENY, ANA)
    desk.clock.pass_seconds(31 * 24 * 3600)
    await waiting(desk, 1)
    assert await desk.store.find(old) is None
    assert [record["kind"] for record in desk.records() if record["audit_id"] == old] == [
        "approval_asked",
        "approval_decided",
    ]
