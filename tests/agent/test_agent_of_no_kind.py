"""A first question that leans on nothing is asked back: no query is chosen by the words that are left of it."""

from __future__ import annotations

import pytest

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.ports import Question
from sentinel_rag.testing.small_estate import NOW, small_estate

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("CHAT-6")
@pytest.mark.parametrize("question", ["how many are closed?", "how many were still open", "do they share a host?"])
async def test_what_is_counted_or_meant_is_asked_and_nothing_is_queried(question: str) -> None:
    gateway = small_estate()
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question(question, "s"))
    assert answer.outcome is Outcome.CLARIFICATION
    assert not gateway.calls


async def test_the_offered_question_is_the_whole_one() -> None:
    analyst = OfflineAnalyst(small_estate(), clock=lambda: NOW)
    await analyst.answer(Question("how many are closed?", "s"))
    assert (await analyst.answer(Question("1", "s"))).tools[0].arguments == {"status": "Closed"}
