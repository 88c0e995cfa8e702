"""A sealed journal shows every change of its files: edit, insertion, deletion, swap, cut, a foreign signature, in the
live file and in segments. Its honest history is never called broken, wherever it was rotated or pruned.

Random journals are written through the public API and then changed behind its back, as somebody with the files would.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
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
    ChainHead,
    Checkpoint,
    Database,
    Journal,
    JournalReader,
    OutcomeStatus,
    Sealing,
    SessionChanged,
    SigningKey,
)
from sentinel_rag.contracts.tool_calls import Reason

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
events: st.SearchStrategy[AuditEvent] = st.one_of(
    st.builds(SessionChanged, audit_id=texts, key_id=texts, session_id=texts, change=texts),
    st.builds(
        CallOutcome,
        audit_id=texts,
        status=st.sampled_from(OutcomeStatus),
        rows=st.integers(0, 10),
        duration_ms=st.floats(0, 1e9, allow_nan=False),
    ),
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
SLOW = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]}


def write(path: Path, journal: list[AuditEvent], *, sealing: bool, rotate_after: int = -1) -> ChainHead:
    """Append all; with `rotate_after`, what is there after so many records moves into a segment."""

    async def append_all(target: Journal, some: list[AuditEvent]) -> None:
        for event in some:
            await target.append(event)

    with (
        Database(path) as database,
        closing(Journal(database, sealing=Sealing.of_folder(path.parent) if sealing else None)) as target,
    ):
        asyncio.run(append_all(target, journal[: max(0, rotate_after)]))
        if rotate_after > 0:
            target.archive.rotate()
        asyncio.run(append_all(target, journal[max(0, rotate_after) :]))
        return target.seal_now()


CHAIN_TAMPERINGS = (
    "edit",
    "edit and rehash",
    "delete",
    "delete and close the gap",
    "swap",
    "insert",
    "index column",
    "not json",
    "truncate",
    "empty",
)
SEAL_TAMPERINGS = (
    "foreign signature",
    "signature bit",
    "checkpoint of another record",
    "rewrite from here",
    "cut everywhere",
    "checkpoint file emptied",
    "checkpoint file removed",
    "checkpoint file cut",
    "checkpoint file edited",
)


def tamper(path: Path, how: str, seq: int) -> None:
    """Change the file at `path` at record `seq`."""
    os.chmod(path, 0o600)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        run = connection.execute
        first, last = run("SELECT min(seq), max(seq) FROM journal").fetchone()
        record, stored = run("SELECT record, hash FROM journal WHERE seq = ?", [seq]).fetchone()
        changed = record.replace(b'"v":1', b'"v":2')
        match how:
            case "edit":
                run("UPDATE journal SET record = ? WHERE seq = ?", [changed, seq])
            case "edit and rehash":
                run(
                    "UPDATE journal SET record = ?, hash = ? WHERE seq = ?",
                    [changed, hashlib.sha256(changed).digest(), seq],
                )
            case "delete":
                run("DELETE FROM journal WHERE seq = ?", [seq])
            case "delete and close the gap":
                run("DELETE FROM journal WHERE seq = ?", [seq])
                run("UPDATE journal SET seq = seq - 1 WHERE seq > ?", [seq])
            case "swap":
                other = seq + 1 if seq < last else seq - 1
                run("UPDATE journal SET seq = -1 WHERE seq = ?", [seq])
                run("UPDATE journal SET seq = ? WHERE seq = ?", [seq, other])
                run("UPDATE journal SET seq = ? WHERE seq = -1", [other])
            case "insert":
                for row in range(last, seq - 1, -1):
                    run("UPDATE journal SET seq = ? WHERE seq = ?", [row + 1, row])
                run("INSERT INTO journal VALUES (?, 'x', 'session', ?, ?)", [seq, record, stored])
            case "index column":
                run("UPDATE journal SET kind = 'other' WHERE seq = ?", [seq])
            case "not json":
                run("UPDATE journal SET record = x'78', hash = ? WHERE seq = ?", [hashlib.sha256(b"x").digest(), seq])
            case "truncate":
                run("DELETE FROM journal WHERE seq >= ?", [seq])
            case "empty":
                run("DELETE FROM journal")
            case "cut everywhere":  # the journal and its own checkpoints; not the file beside it
                run("DELETE FROM journal WHERE seq >= ?", [seq])
                run("DELETE FROM checkpoint WHERE seq >= ?", [seq])
            case "foreign signature" | "rewrite from here":
                if how == "rewrite from here":
                    rewrite(connection, seq, last)
                another = path.parent / "another"
                another.mkdir()
                other_key = SigningKey.open(another)
                for number, digest in run("SELECT seq, hash FROM journal WHERE seq >= ?", [seq]).fetchall():
                    line = Checkpoint.sign(ChainHead(number, digest), "2026-01-01T00:00:00Z", other_key).line()
                    run("INSERT OR REPLACE INTO checkpoint VALUES (?, ?)", [number, line])
            case "signature bit":
                number, line = run("SELECT seq, line FROM checkpoint ORDER BY seq DESC").fetchone()
                data = json.loads(line)
                data["signature"] = "A" * 86 + "=="
                line = json.dumps(data, sort_keys=True, separators=(",", ":")).encode()
                run("UPDATE checkpoint SET line = ? WHERE seq = ?", [line, number])
            case "checkpoint of another record":
                number = run("SELECT max(seq) FROM checkpoint").fetchone()[0]
                run("UPDATE OR REPLACE checkpoint SET seq = seq - 1 WHERE seq = ?", [number])
        assert first is not None


def rewrite(connection: sqlite3.Connection, seq: int, last: int) -> None:
    """Change record `seq` and carry the new hashes through to the end, as somebody would who knows the format."""
    previous: bytes | None = None
    for number in range(seq, last + 1):
        (record,) = connection.execute("SELECT record FROM journal WHERE seq = ?", [number]).fetchone()
        body = json.loads(record)
        if previous is None:
            body["v"] = 7
        else:
            body["previous"] = previous.hex()
        record = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        previous = hashlib.sha256(record).digest()
        connection.execute("UPDATE journal SET record = ?, hash = ? WHERE seq = ?", [record, previous, number])


def tamper_file(checkpoints: Path, how: str) -> None:
    lines = checkpoints.read_bytes().splitlines(keepends=True)
    match how:
        case "checkpoint file emptied":
            checkpoints.write_bytes(b"")
        case "checkpoint file removed":
            checkpoints.unlink()
        case "checkpoint file cut":
            checkpoints.write_bytes(b"".join(lines[:-1]))
        case "checkpoint file edited":
            checkpoints.write_bytes(b"".join(lines[:-1]) + lines[-1].replace(b'"seq":', b'"seq":1'))


@pytest.mark.requirement("AUD-2")
@settings(max_examples=60, **SLOW)
@given(
    st.lists(events, min_size=3, max_size=7),
    st.sampled_from(CHAIN_TAMPERINGS + SEAL_TAMPERINGS),
    st.booleans(),
    st.data(),
)
def test_every_change_of_a_sealed_journal_is_found(
    tmp_path_factory: pytest.TempPathFactory, journal: list[AuditEvent], how: str, rotated: bool, data: Any
) -> None:
    path = tmp_path_factory.mktemp("chain") / "gateway" / "journal.sqlite"
    rotate_after = data.draw(st.integers(2, len(journal))) if rotated else 0
    head = write(path, journal, sealing=True, rotate_after=rotate_after)
    reader = JournalReader(path)
    honest = reader.verify()
    assert (honest.intact, honest.sealed, honest.unsealed) == (True, head.seq, 0), honest.problem
    target = path
    low, high = rotate_after + 1, head.seq
    if rotated and (low == high or data.draw(st.booleans())):
        [target] = path.parent.glob("segments/*.sqlite")
        low, high = 1, rotate_after
    if how == "swap" and low == high:
        how = "delete"
    if how.startswith("checkpoint file"):
        tamper_file(path.parent / "checkpoints.jsonl", how)
    else:
        tamper(target, how, data.draw(st.integers(low, high)))
    found = reader.verify()
    assert not found.intact
    assert found.problem
    assert found.broken_at is not None


@settings(max_examples=25, **SLOW)
@given(st.lists(events, min_size=2, max_size=6), st.sampled_from(CHAIN_TAMPERINGS), st.data())
def test_a_head_that_somebody_kept_finds_the_same_without_signatures(
    tmp_path_factory: pytest.TempPathFactory, journal: list[AuditEvent], how: str, data: Any
) -> None:
    path = tmp_path_factory.mktemp("kept") / "journal.sqlite"
    head = write(path, journal, sealing=False)
    reader = JournalReader(path)
    honest = reader.verify(head)
    assert (honest.intact, honest.records, honest.head, honest.sealed) == (True, len(journal), head, None)
    seq = data.draw(st.integers(1, len(journal)))
    tamper(path, how, seq)
    assert not reader.verify(head).intact
    # Nobody who holds only the file can see a rewritten end; everything before it shows without a head too.
    hidden = ("truncate", "empty", "edit and rehash", "delete", "delete and close the gap")
    if how not in hidden or (seq < len(journal) and how not in ("truncate", "empty")):
        assert not reader.verify().intact


@settings(max_examples=15, **SLOW)
@given(st.lists(events, max_size=8), st.integers(0, 10), st.integers(0, 10), st.integers(0, 8))
def test_pages_put_together_are_the_journal(
    tmp_path_factory: pytest.TempPathFactory, journal: list[AuditEvent], after: int, limit: int, rotate_after: int
) -> None:
    path = tmp_path_factory.mktemp("pages") / "journal.sqlite"
    rotate_after = min(rotate_after, len(journal))
    write(path, journal, sealing=True, rotate_after=rotate_after)
    reader = JournalReader(path)
    everything = reader.read(0, 1_000)
    kinds = [event.kind for event in journal]
    if rotate_after:
        kinds.insert(rotate_after, "segment_closed")
    assert [entry.kind for entry in everything] == kinds
    assert [
        entry.record | event.fields()
        for entry, event in zip([entry for entry in everything if entry.kind != "segment_closed"], journal, strict=True)
    ] == [entry.record for entry in everything if entry.kind != "segment_closed"]
    assert reader.read(after, limit) == everything[after:][:limit]
    assert reader.last(limit) == (everything[-limit:] if limit else [])
    for event in journal:
        assert event.audit_id in {entry.audit_id for entry in reader.find(event.audit_id)}


STEPS = st.lists(st.sampled_from(["append", "append", "append", "rotate", "prune", "restart"]), max_size=12)


@pytest.mark.requirement("AUD-2")
@settings(max_examples=20, **SLOW)
@given(STEPS)
def test_an_honest_history_always_holds(tmp_path_factory: pytest.TempPathFactory, steps: list[str]) -> None:
    path = tmp_path_factory.mktemp("honest") / "journal.sqlite"
    number, pruned = 0, 0

    def open_journal() -> tuple[Database, Journal]:
        database = Database(path)
        return database, Journal(database, sealing=Sealing.of_folder(path.parent))

    database, journal = open_journal()
    try:
        for step in [*steps, "append"]:
            match step:
                case "append":
                    number += 1
                    event = SessionChanged(audit_id=f"a{number}", key_id="k", session_id="s", change="opened")
                    journal.append_now(event)
                case "rotate":
                    journal.archive.rotate()
                case "prune":
                    gone = journal.archive.prune(datetime(9999, 1, 1, tzinfo=UTC))
                    pruned = gone[-1].last if gone else pruned
                case "restart":
                    journal.close()
                    database.close()
                    database, journal = open_journal()
            journal.seal_now()
            found = JournalReader(path).verify()
            assert found.intact, found.problem
            assert found.pruned_through == pruned
            assert found.unsealed == 0
    finally:
        journal.close()
        database.close()
    kept = JournalReader(path).read(0, 1_000)
    assert [entry.seq for entry in kept] == list(range(pruned + 1, kept[-1].seq + 1))
    assert kept[-1].audit_id == f"a{number}"
    assert JournalReader(path).verify().head.digest != GENESIS.digest
