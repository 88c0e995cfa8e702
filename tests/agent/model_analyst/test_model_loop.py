"""The loop of tool calls: rounds, order, answers to every call, and what a model is told of results."""

from __future__ import annotations

import pytest

from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.testing.scripted_model import calls_reply, text_reply

pytestmark = pytest.mark.anyio
OPEN = ("query_incidents", {"status": "Open", "min_severity": "High"})


@pytest.mark.requirement("CHAT-1")
async def test_a_question_is_answered_over_the_tools(desk):
    at = desk(calls_reply(OPEN), text_reply("[1] Incident 40, High, New\n[2] Incident 18, High, Active"))
    answer = await at.ask("Which high severity incidents are open?")
    assert answer.outcome is Outcome.ANSWERED, answer
    assert answer.text.startswith("[1] Incident 40, High, New\n[2] Incident 18, High, Active")
    assert [trace.name for trace in answer.tools] == ["query_incidents"]
    assert at.lines[:2] == ["Thinking...", "Querying incidents..."]
    assert answer.footnote[-1].startswith("model scripted (")
    assert answer.model is not None
    assert answer.model["requests"] == 2
