"""What the conversation says of its own changes: which were made, which wait, and what undoing takes."""

from __future__ import annotations

import pytest
from tests.support.small_estate import NOW, small_estate

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.conversations import Remembered
from sentinel_rag.contracts.ports import Question
from sentinel_rag.contracts.query_results import CodedNote, QueryErrorCode
from sentinel_rag.contracts.tool_calls import Denied, Reason, ToolCall
from sentinel_rag_testing.scripted_gateway import denial, failure, rows_result

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("CHAT-6")]
WAITS = Denied(
    ToolCall("", "", ""), Reason.APPROVAL_REQUIRED, "A person must approve.", "any", approval_id="ap-12345678"
)
MADE = rows_result(
    [
        {
            "number": 12,
            "title": "Case",
            "status": "Closed",
            "changes": [{"field": "status", "before": "New", "after": "Closed"}],
        }
    ],
    notes=[CodedNote("Incident 12: status New → Closed.", "change_made")],
)
ASKS_ALL = (
    "what did you change?",
    "and what have you changed so far?",
    "which incidents did you close?",
    "did you change anything?",
    "have you closed anything?",
    "what changes did you make?",
    "which changes are waiting?",
    "what changes have you made in this conversation?",
)
UNDO = ("undo that", "undo", "please revert it", "roll back the last change", "can you undo that?", "undo incident 12")


class Talk:
    def __init__(self, outcome=WAITS) -> None:
        self.gateway = small_estate(update_incident=outcome, add_incident_comment=outcome)
        self.analyst = OfflineAnalyst(self.gateway, clock=lambda: NOW)

    async def say(self, question: str) -> str:
        return (await self.analyst.answer(Question(question, "session-1"))).text


@pytest.mark.parametrize("question", [*ASKS_ALL, *UNDO, "did you close incident 12?", "did you close it?"])
async def test_where_nothing_was_asked_for_nothing_was_changed_and_no_tool_is_called(question: str) -> None:
    talk = Talk()
    await talk.say("what is incident 12 about?")
    talk.gateway.calls.clear()
    answer = await talk.say(question)
    assert answer.startswith(("Nothing was", "No. Nothing of incident 12 was"))
    assert "changed in this conversation" in answer
    assert talk.gateway.calls == []


@pytest.mark.parametrize("question", [*ASKS_ALL, *UNDO, "did you close incident 12?", "did you close it?"])
async def test_a_change_that_waits_is_told_with_its_approval_and_as_not_made(question: str) -> None:
    talk = Talk()
    await talk.say("close 12 as undetermined")
    answer = await talk.say(question)
    assert "was changed in this conversation" in answer
    assert 'Asked for and not made: update_incident(incident="12", ' in answer
    assert 'status="Closed"' in answer
    assert "ap-12345678" in answer


@pytest.mark.parametrize("question", ASKS_ALL)
async def test_changes_that_were_made_are_told_each_once(question: str) -> None:
    talk = Talk(MADE)
    await talk.say("close 12 as undetermined")
    await talk.say("comment on incident 18: seen")
    answer = await talk.say(question)
    assert answer.count("- update_incident(") == 1
    assert '- add_incident_comment(incident="18", message="seen")' in answer
    assert "Nothing was changed" not in answer


async def test_a_change_that_was_approved_later_is_told_as_made_and_no_more_as_waiting() -> None:
    talk = Talk()
    await talk.say("close 12 as undetermined")
    talk.gateway.answers["update_incident"] = MADE
    await talk.say("do it now")
    answer = await talk.say("what did you change?")
    assert "Changed in this conversation:" in answer
    assert "not made" not in answer


@pytest.mark.parametrize(
    ("number", "said"), [(12, "Yes. Changed in this conversation:"), (18, "No. Nothing of incident 18 was changed")]
)
async def test_did_you_close_it_is_answered_yes_or_no_for_that_incident(number: int, said: str) -> None:
    talk = Talk(MADE)
    await talk.say("close 12 as undetermined")
    assert (await talk.say(f"did you close incident {number}?")).startswith(said)
    await talk.say(f"what is incident {number} about?")
    assert (await talk.say("have you closed it?")).startswith(said)


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (denial(), "Asked for and not made, because it was refused or failed"),
        (
            failure(QueryErrorCode.CONFLICT, "Changed since."),
            "Asked for and not made, because it was refused or failed",
        ),
        (failure(QueryErrorCode.OUTCOME_UNKNOWN, "No answer."), "Whether this one was made is not known"),
    ],
)
async def test_what_was_refused_failed_or_is_unknown_is_told_as_that(outcome, said: str) -> None:
    talk = Talk(outcome)
    await talk.say("close 12 as undetermined")
    assert said in await talk.say("what did you change?")


@pytest.mark.parametrize(
    ("wish", "opposite"),
    [
        ("close 12 as undetermined", "reopen incident 12"),
        ("assign incident 12 to ana@contoso.example", "assign incident 12 to somebody@example.com"),
        ("set the severity of incident 12 to low", "set the severity of incident 12 to"),
        ("comment on incident 12: seen", "in the portal"),
    ],
)
async def test_undoing_is_a_wish_of_its_own_and_changes_nothing(wish: str, opposite: str) -> None:
    talk = Talk(MADE)
    await talk.say(wish)
    talk.gateway.calls.clear()
    answer = await talk.say("undo that")
    assert opposite in answer
    assert talk.gateway.calls == []


async def test_changes_are_known_after_a_clear_and_after_a_restart() -> None:
    talk = Talk(MADE)
    await talk.say("close 12 as undetermined")
    talk.analyst.clear("session-1", ())
    remembered = talk.analyst.remembered("session-1")
    assert isinstance(remembered, Remembered)
    later = Talk()
    later.analyst.recall("session-1", remembered)
    assert '- update_incident(incident="12"' in await later.say("what did you change?")


@pytest.mark.parametrize(
    "question",
    [
        "what has changed in incident 12?",
        "who closed incident 12?",
        "what did Ana change?",
        "did anybody close incident 12?",
        "which incidents were closed yesterday?",
        "what can you change?",
        "what did you find?",
        "is incident 12 closed?",
    ],
)
async def test_questions_about_what_others_did_are_asked_of_the_tools_or_answered_otherwise(question: str) -> None:
    talk = Talk(MADE)
    assert "in this conversation" not in await talk.say(question)
