"""The attacker writes into the journal's file below SQL: the index that finds calls, and the type of a column.

A journal that verifies must be one in which each call is found. The index is no record, so no hash covers it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sentinel_rag.audit import DamagedJournal, JournalReader, SessionChanged
from sentinel_rag.gateway.store import open_state

CALLS = 20


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    with open_state(tmp_path) as state:
        for number in range(CALLS):
            event = SessionChanged(audit_id=f"call-{number:04}", key_id="key", session_id="s", change="opened")
            asyncio.run(state.journal.append(event))
    return tmp_path / "journal.sqlite"


def index_page(path: Path) -> tuple[int, int]:
    """Where the page of the index lies in the file, and its size."""
    with closing(sqlite3.connect(path)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'journal_audit_id'").fetchone()
    return (root - 1) * size, size


@pytest.mark.requirement("AUD-2")
def test_an_index_that_hides_a_call_does_not_verify(journal: Path) -> None:
    reader = JournalReader(journal)
    assert reader.verify().intact
    assert [entry.kind for entry in reader.find("call-0007")] == ["session"]
    content = bytearray(journal.read_bytes())
    start, size = index_page(journal)
    place = content.index(b"call-0007", start, start + size)
    content[place : place + 9] = b"call-9997"
    journal.write_bytes(content)
    assert reader.find("call-0007") == []
    assert len([entry for entry in reader.read(0, 1_000) if entry.audit_id == "call-0007"]) == 1
    found = reader.verify()
    assert not found.intact
    assert "does not fit its records, which are whole" in found.problem


@pytest.mark.requirement("AUD-2")
def test_a_record_of_another_type_is_damage_and_no_traceback(journal: Path) -> None:
    with closing(sqlite3.connect(journal)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = replace(sql, 'STRICT', '') WHERE name = 'journal'")
        connection.commit()
    with closing(sqlite3.connect(journal)) as connection:
        connection.execute("UPDATE journal SET record = CAST(record AS TEXT) WHERE seq = 3")
        connection.commit()
    reader = JournalReader(journal)
    found = reader.verify()
    assert not found.intact
    assert "record 3" in found.problem
    with pytest.raises(DamagedJournal, match="Record 3"):
        reader.read(0, 1_000)
