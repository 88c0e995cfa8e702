"""Half-said wishes to change something: a condition, a later time, a question; and what is known of the incident."""

from __future__ import annotations

import pytest
from tests.support.small_estate import NOW, small_estate

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.ports import Question
from sentinel_rag.contracts.tool_calls import Denied, Reason, ToolCall

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("CHAT-6")]
WAITS = Denied(
    ToolCall("", "", ""), Reason.APPROVAL_REQUIRED, "A person must approve.", "any", approval_id="ap-12345678"
)


class Talk:
    def __init__(self) -> None:
        self.gateway = small_estate(update_incident=WAITS, add_incident_comment=WAITS)
        self.analyst = OfflineAnalyst(self.gateway, clock=lambda: NOW)

    async def say(self, question: str):
        return await self.analyst.answer(Question(question, "session-1"))


@pytest.mark.parametrize(
    "wish",
    [
        "if it is bad, close 12 as true positive",
        "if incident 12 is bad then close it as true positive",
        "when Ana agrees, close 12 as true positive",
        "once that is confirmed: assign 12 to ana@contoso.example",
        "unless somebody objects, set the severity of 12 to low",
        "if it is benign close 12 as benign positive",
        "tomorrow close 12 as true positive",
        "at 5 pm close 12 as true positive",
        "in two hours, reopen 12",
        "next monday please close 12 as undetermined",
    ],
)
async def test_a_wish_under_a_condition_or_for_later_changes_nothing_and_says_so(wish: str) -> None:
    talk = Talk()
    await talk.say("what is incident 12 about?")
    talk.gateway.calls.clear()
    answer = await talk.say(wish)
    assert answer.text.startswith("Nothing was changed: I do not wait for a condition or for a time.")
    assert answer.outcome is Outcome.CLARIFICATION
    assert talk.gateway.calls == []


@pytest.mark.parametrize(
    "question",
    [
        "when was incident 12 closed?",
        "if incident 12 is open, who owns it?",
        "tomorrow is friday",
        "after the first alert, what happened in incident 12?",
        "in 2024, which incidents were closed?",
    ],
)
async def test_questions_that_only_begin_like_a_condition_are_questions(question: str) -> None:
    assert "I do not wait" not in (await Talk().say(question)).text


@pytest.mark.parametrize("question", ["close 12?", "can we close incident 12?", "resolve 12?"])
async def test_a_question_offers_no_change_that_one_digit_would_ask_for(question: str) -> None:
    talk = Talk()
    answer = await talk.say(question)
    assert "I change nothing before you say so plainly" in answer.text
    assert "[1]" not in answer.text
    talk.gateway.calls.clear()
    await talk.say("1")
    assert [call.tool_name for call in talk.gateway.calls if call.tool_name == "update_incident"] == []


async def test_an_incident_that_was_never_shown_is_named_as_that() -> None:
    answer = await Talk().say("close #999 as true positive")
    assert "This conversation has not shown incident 999" in answer.text


async def test_reopening_what_was_shown_as_open_says_so() -> None:
    talk = Talk()
    await talk.say("list open incidents")
    answer = await talk.say("reopen incident 12")
    assert "It was not closed then, so there may be nothing to reopen." in answer.text
