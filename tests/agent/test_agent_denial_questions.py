"""Why a call was denied is the gateway's to say: no query about denied sign-ins is run in the place of an answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from sentinel_rag.agent.answers.renderer import view_data
from sentinel_rag.contracts.evidence import Answer, Outcome

WHERE_IT_STANDS: str = view_data()["reply"]["gateway"][1]
pytestmark = [pytest.mark.anyio, pytest.mark.requirement("CHAT-10")]
Ask = Callable[[str], Awaitable[Answer]]


@pytest.mark.parametrize(
    "question",
    [
        "why was that denied?",
        "Why was the web search denied",
        "why is it not allowed?",
        "why did the gateway refuse this call?",
        "which rule denied it?",
        "by what rule was my query refused?",
        "who denied that?",
        "why does it need an approval?",
        "so why am I not allowed to run that query?",
    ],
)
@pytest.mark.parametrize("before", [None, "what is incident 12 about?"])
async def test_it_is_said_where_the_decision_stands_and_nothing_is_queried(
    ask: Ask, question: str, before: str | None
) -> None:
    if before is not None:
        await ask(before)
    answer = await ask(question)
    assert (answer.outcome, answer.text, list(answer.tools)) == (
        Outcome.ANSWERED,
        WHERE_IT_STANDS,
        [],
    )


@pytest.mark.parametrize(
    "question",
    [
        "why was the sign-in of ana denied?",
        "which sign-ins were denied?",
        "denied sign-ins",
        "who was denied by conditional access?",
        "why was 203.0.113.5 denied?",
        "why is incident 12 closed?",
        "who owns incident 12?",
    ],
)
async def test_a_question_about_data_is_none_of_them(ask: Ask, question: str) -> None:
    assert (await ask(question)).text != WHERE_IT_STANDS
