"""Journals of earlier versions, as their code wrote them: each opens, migrates, verifies and goes on.

`corpus/journal-1.sqlite` is of version 0.1.0 (journal schema 1, no checkpoints): eight records, and one call open.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sentinel_rag.audit import ChainHead, JournalReader, OutcomeStatus, SessionChanged
from sentinel_rag.contracts.labels import Integrity, Label, Sensitivity
from sentinel_rag.gateway.store import SessionClosed, open_state

CORPUS = Path(__file__).parent / "corpus"
HEAD = ChainHead(8, bytes.fromhex("982bf7b67608ddec84f7c686527317b342d38f66e611923fcfc58e76cb5c8a87"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(CORPUS / "journal-1.sqlite", tmp_path / "journal.sqlite")
    return tmp_path


def test_an_old_journal_can_be_read_and_followed_before_anything_migrates_it(folder: Path) -> None:
    reader = JournalReader(folder / "journal.sqlite")
    entries = reader.read(0, 100)
    assert [entry.kind for entry in entries] == [
        "session",
        "session",
        "authentication_failed",
        "intent",
        "outcome",
        "refusal",
        "intent",
        "session",
    ]
    assert [entry.outcome for entry in reader.find("c-1")] == [OutcomeStatus.SUCCESS, None]
    found = reader.verify(HEAD)
    assert (found.intact, found.records, found.head, found.sealed) == (True, 8, HEAD, None)


@pytest.mark.requirement("AUD-2")
@pytest.mark.anyio
async def test_an_old_journal_opens_is_sealed_and_goes_on(folder: Path) -> None:
    reader = JournalReader(folder / "journal.sqlite")
    before = reader.read(0, 100)
    with open_state(folder) as state:
        assert state.journal.interrupted == 1
        session = await state.sessions.claim("second", "agent")
        assert session is not None
        assert session.context == Label(Sensitivity.MEDIUM, Integrity.UNTRUSTED)
        with pytest.raises(SessionClosed):
            await state.sessions.claim("first", "agent")
        await state.journal.append(SessionChanged(audit_id="new", key_id="k", session_id="s", change="opened"))
    after = reader.read(0, 100)
    assert [entry.record for entry in after[:8]] == [entry.record for entry in before]
    assert [entry.kind for entry in after[8:]] == ["tail_sealed", "outcome", "session"]
    assert (after[8].record["first"], after[8].record["last"]) == (1, 8)
    assert reader.find("c-3")[0].outcome is OutcomeStatus.UNKNOWN
    found = reader.verify(HEAD)
    assert (found.intact, found.records, found.sealed) == (True, 11, 11)
