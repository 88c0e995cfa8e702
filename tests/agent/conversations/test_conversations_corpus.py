"""Files of conversations that earlier versions wrote still load. Each version adds one; none is ever changed."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.support.small_estate import NOW, small_estate

from sentinel_rag.agent.conversations.chat import StoredChat
from sentinel_rag.agent.conversations.store import MIGRATIONS, ConversationStore
from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.conversations import Preferences, Verbosity
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.ports import Question

CORPUS = sorted((Path(__file__).parent / "conversation_corpus").glob("version_*.sql"))


async def _known(_: str) -> bool:
    return True


def test_every_version_is_in_the_corpus() -> None:
    assert [file.stem for file in CORPUS] == [f"version_{number}" for number in range(1, len(MIGRATIONS) + 1)]


@pytest.mark.anyio
@pytest.mark.parametrize("dump", CORPUS, ids=lambda file: file.stem)
async def test_a_file_of_an_earlier_version_loads_and_goes_on(dump: Path, tmp_path: Path) -> None:
    file, session = tmp_path / "conversations.db", f"session-of-version-{dump.stem[-1]}"
    with sqlite3.connect(file) as old:
        old.executescript(dump.read_text())
    old.close()
    store = ConversationStore(file, clock=lambda: NOW)
    stored = store.load(session)
    assert stored is not None
    assert stored.preferences == Preferences(None, "Europe/Berlin", Verbosity.SHORT)
    assert [(turn.question, turn.outcome) for turn in stored.turns] == [
        ("list open incidents", "answered"),
        ("who owns [2]?", "answered"),
    ]
    assert stored.carried[0].tool == "query_incidents"
    analyst = OfflineAnalyst(small_estate(), clock=lambda: NOW)
    chat = StoredChat(analyst, store, clock=lambda: NOW, knows_session=_known)
    answer = await chat.answer(Question("how many incidents are open?", session))
    assert answer.outcome is Outcome.ANSWERED
    assert not [line for line in answer.footnote if line.startswith("memory:")]
    assert len(store.load(session).turns) == 3  # type: ignore[union-attr]
    store.close()
