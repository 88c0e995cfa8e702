"""A process that is killed before any of its writes loses at most the turn that it was answering."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conversation_crash_driver import QUESTIONS, SESSION
from tests.support.small_estate import NOW, small_estate

from sentinel_rag.agent.conversations.chat import StoredChat
from sentinel_rag.agent.conversations.store import STOPPED, ConversationStore
from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.ports import Question
from waiting import WAIT_S


async def _known(_: str) -> bool:
    return True


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.requirement("CHAT-6")
@pytest.mark.skipif(sys.platform == "win32", reason="the driver forks")
async def test_a_killed_process_loses_at_most_the_turn_it_was_answering(tmp_path: Path) -> None:
    driver = Path(__file__).with_name("conversation_crash_driver.py")
    done = subprocess.run(
        [sys.executable, driver, tmp_path],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])},  # for tests.support
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout)
    assert len(outcomes) > 15, "each statement of two turns was a place to die at"
    assert {seen for _, seen, _ in outcomes} == {0, 1, 2}
    assert [killed for *_, killed in outcomes] == [*[True] * (len(outcomes) - 1), False]
    for statement, seen, _ in outcomes:
        store = ConversationStore(tmp_path / str(statement) / "conversations.db", clock=lambda: NOW)
        stored = store.load(SESSION)
        turns = () if stored is None else stored.turns
        answered = [turn.question for turn in turns if turn.answer]
        assert answered == list(QUESTIONS[: len(answered)]), statement
        assert len(answered) >= seen, f"an answer that was seen is kept (statement {statement})"
        assert len(turns) <= seen + 1, statement
        assert [turn.outcome for turn in turns if not turn.answer] in ([], [STOPPED]), statement
        if seen:
            await _goes_on(store)
        store.close()


async def _goes_on(store: ConversationStore) -> None:
    gateway = small_estate()
    analyst = StoredChat(OfflineAnalyst(gateway, clock=lambda: NOW), store, clock=lambda: NOW, knows_session=_known)
    await analyst.answer(Question("who owns [2]?", SESSION))
    assert gateway.calls[-1].arguments == {"incident": "31"}
