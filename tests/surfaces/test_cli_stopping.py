"""Ctrl-C stops a question where it is worked on, and the next one is answered (over a real socket)."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
import pytest

from sentinel_rag.app.run_state import RunState, ZoneEntry
from sentinel_rag.contracts.conversations import CarriedFact
from sentinel_rag.contracts.evidence import Answer, Outcome, Progress, ToolTrace
from sentinel_rag.contracts.ports import Question
from sentinel_rag.surfaces.cli._zones import AgentClient
from sentinel_rag.surfaces.http import create_app
from sentinel_rag_testing.loopback import serve

TOKEN = "a-surface-token-of-the-tests"


class Analyst:
    """Works on the first question for ever, and answers the others."""

    def __init__(self) -> None:
        self.stopped: list[str] = []

    async def answer(self, asked: Question) -> Answer:
        question, session_id, progress = asked.text, asked.session_id, asked.progress
        assert progress is not None
        progress(Progress("Querying incidents...", 0.5, ToolTrace("c1", "query_incidents", {"top": 1}, "running")))
        if question == "for ever":
            try:
                await anyio.sleep_forever()
            finally:
                self.stopped.append(session_id)
        return Answer(outcome=Outcome.ANSWERED, text=question, session_id=session_id)

    async def delete(self, session_id: str) -> None: ...

    async def clear(self, session_id: str, *, carry: bool) -> tuple[CarriedFact, ...]:
        return ()


@pytest.fixture
def analyst() -> Analyst:
    return Analyst()


@pytest.fixture
def client(analyst: Analyst) -> Iterator[AgentClient]:
    with serve(create_app(analyst, token=TOKEN, question_timeout_s=60)) as url:
        state = RunState(1, True, "default", (ZoneEntry("agent", url, 1),), agent_token=TOKEN)
        yield AgentClient(state, None, "a-session-1")


def pressed(told: Progress) -> None:
    assert told.tool == ToolTrace("c1", "query_incidents", {"top": 1}, "running")
    raise KeyboardInterrupt


@pytest.mark.requirement("CHAT-14")
def test_ctrl_c_stops_the_work_and_the_same_conversation_answers_the_next_question(
    analyst: Analyst, client: AgentClient
) -> None:
    with pytest.raises(KeyboardInterrupt):
        client.ask("for ever", pressed)
    # The session takes one question at a time: this one is answered only once the first has really ended.
    assert client.ask("and now?", lambda _: None).text == "and now?"
    assert analyst.stopped == ["a-session-1"]
