"""A first question that leans on nothing is asked back: no query is chosen by the words that are left of it."""

from __future__ import annotations

import pytest
from tests.support.small_estate import NOW, small_estate

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.ports import Question

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("CHAT-6")
@pytest.mark.parametrize("question", ["how many were still open", "do they share a host?"])
async def test_what_is_counted_or_meant_is_asked_and_nothing_is_queried(question: str) -> None:
    gateway = small_estate()
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question(question, "s"))
    assert answer.outcome is Outcome.CLARIFICATION
    assert not gateway.calls


async def test_a_state_that_only_incidents_have_tells_what_is_counted() -> None:
    answer = await OfflineAnalyst(small_estate(), clock=lambda: NOW).answer(Question("how many are closed?", "s"))
    assert [(call.name, call.arguments) for call in answer.tools] == [("query_incidents", {"status": "Closed"})]
    assert answer.text.startswith("2 incidents (status Closed).")
