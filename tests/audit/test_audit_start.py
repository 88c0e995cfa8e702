"""A start reads what it needs and not the history: damage to an old record does not keep the gateway from starting,
and is found by whoever verifies."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import anyio
import pytest

from sentinel_rag.audit import JournalReader, SessionChanged
from sentinel_rag.contracts.labels import BOTTOM
from sentinel_rag.gateway.store import new_audit_id, open_state


@pytest.mark.requirement("AUD-3")
def test_a_start_reads_no_old_record(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with open_state(folder) as state:

        async def write() -> None:
            for number in range(200):
                await state.journal.append(
                    SessionChanged(
                        audit_id=new_audit_id(), key_id="k", session_id=f"s{number}", change="opened", context=BOTTOM
                    )
                )

        anyio.run(write)
    journal = folder / "journal.sqlite"
    connection = sqlite3.connect(journal)
    connection.execute("UPDATE journal SET record = x'00', hash = x'00' WHERE seq BETWEEN 5 AND 150")
    connection.commit()
    connection.close()
    with open_state(folder) as state:
        anyio.run(state.sessions.open, "another")
    found = JournalReader(journal).verify()
    assert not found.intact
    assert found.broken_at == 5
