"""The chain finds every change of the file: edit, insertion, deletion, swap, and with a known head a cut tail too.

Random journals are written through the public API and then changed behind its back, as somebody with the file would.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sentinel_rag.audit import (
    GENESIS,
    AuditEvent,
    AuthenticationFailed,
    CallOutcome,
    Database,
    Head,
    Journal,
    JournalReader,
    OutcomeStatus,
    SessionChanged,
)
from sentinel_rag.contracts.decisions import Reason

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
events: st.SearchStrategy[AuditEvent] = st.one_of(
    st.builds(SessionChanged, audit_id=texts, key_id=texts, session_id=texts, change=texts),
    st.builds(CallOutcome, audit_id=texts, status=st.sampled_from(OutcomeStatus), rows=st.integers(0, 10)),
    st.builds(
        AuthenticationFailed,
        audit_id=texts,
        key_id=st.none() | texts,
        route=texts,
        method=texts,
        client=texts,
        reason=st.just(Reason.UNAUTHENTICATED),
    ),
)
TAMPERINGS = ("edit", "edit and rehash", "delete", "swap", "insert", "index column", "not json", "truncate", "empty")


def write(path: Path, journal: list[AuditEvent]) -> Head:
    async def append_all(target: Journal) -> Head:
        head = GENESIS
        for event in journal:
            head = await target.append(event)
        return head

    with Database(path) as database:
        return asyncio.run(append_all(Journal(database)))


def tamper(path: Path, how: str, seq: int, count: int) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        run = connection.execute
        record, stored = run("SELECT record, hash FROM journal WHERE seq = ?", [seq]).fetchone()
        changed = record.replace(b'"v":1', b'"v":2')
        match how:
            case "edit":
                run("UPDATE journal SET record = ? WHERE seq = ?", [changed, seq])
            case "edit and rehash":
                import hashlib

                digest = hashlib.sha256(changed).digest()
                run("UPDATE journal SET record = ?, hash = ? WHERE seq = ?", [changed, digest, seq])
            case "delete":
                run("DELETE FROM journal WHERE seq = ?", [seq])
                run("UPDATE journal SET seq = seq - 1 WHERE seq > ?", [seq])
            case "swap":
                other = seq + 1 if seq < count else seq - 1
                run("UPDATE journal SET seq = -1 WHERE seq = ?", [seq])
                run("UPDATE journal SET seq = ? WHERE seq = ?", [seq, other])
                run("UPDATE journal SET seq = ? WHERE seq = -1", [other])
            case "insert":
                for row in range(count, seq - 1, -1):
                    run("UPDATE journal SET seq = ? WHERE seq = ?", [row + 1, row])
                run("INSERT INTO journal VALUES (?, 'x', 'session', ?, ?)", [seq, record, stored])
            case "index column":
                run("UPDATE journal SET kind = 'other' WHERE seq = ?", [seq])
            case "not json":
                run("UPDATE journal SET record = x'78', hash = zeroblob(32) WHERE seq = ?", [seq])
            case "truncate":
                run("DELETE FROM journal WHERE seq >= ?", [seq])
            case "empty":
                run("DELETE FROM journal")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(events, min_size=2, max_size=6), st.sampled_from(TAMPERINGS), st.data())
def test_every_change_is_found(
    tmp_path_factory: pytest.TempPathFactory, journal: list[AuditEvent], how: str, data: Any
) -> None:
    path = tmp_path_factory.mktemp("chain") / "journal.sqlite"
    head = write(path, journal)
    reader = JournalReader(path)
    honest = reader.verify(head)
    assert (honest.intact, honest.records, honest.head) == (True, len(journal), head)
    seq = data.draw(st.integers(1, len(journal)))
    tamper(path, how, seq, len(journal))
    found = reader.verify(head)
    assert not found.intact
    assert found.problem
    # Nobody who holds only the file can see a rewritten end; everything before it shows without a head too.
    if how not in ("truncate", "empty") and not (seq == len(journal) and how in ("edit and rehash", "delete")):
        assert not reader.verify().intact


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(events, max_size=8), st.integers(0, 10), st.integers(0, 10))
def test_pages_put_together_are_the_journal(
    tmp_path_factory: pytest.TempPathFactory, journal: list[AuditEvent], after: int, limit: int
) -> None:
    path = tmp_path_factory.mktemp("pages") / "journal.sqlite"
    write(path, journal)
    reader = JournalReader(path)
    everything = reader.read(0, 1_000)
    assert [entry.kind for entry in everything] == [event.kind for event in journal]
    assert reader.read(after, limit) == everything[after:][:limit]
    for event in journal:
        assert event.audit_id in {entry.audit_id for entry in reader.find(event.audit_id)}
