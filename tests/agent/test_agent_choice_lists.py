"""A question that chooses ("which one ...") is about a list of several, whatever single thing was looked at since."""

from __future__ import annotations

import pytest
from tests.support.small_estate import NOW, small_estate

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.ports import Question

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("CHAT-6")]


@pytest.mark.parametrize("between", ["who owns incident 23?", "what is incident 23 about?", "alerts of incident 23"])
@pytest.mark.parametrize(
    ("question", "number"),
    [("which one was created last?", 40), ("which of these is the oldest?", 12), ("which one is the newest?", 40)],
)
async def test_it_is_the_list_s_line_and_not_the_thing_looked_at_since(
    between: str, question: str, number: int
) -> None:
    analyst = OfflineAnalyst(small_estate(lambda: NOW), clock=lambda: NOW)
    listed = await analyst.answer(Question("list open high incidents", "session-1"))
    assert [row[1] for row in listed.tables[0].rows] == ["40", "18", "12"]
    await analyst.answer(Question(between, "session-1"))
    answer = await analyst.answer(Question(question, "session-1"))
    assert f"Incident {number}" in answer.text
    assert "incident 23" not in answer.text.lower()
