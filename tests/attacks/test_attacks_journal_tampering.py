"""Attack: the journal's files. The attacker can read and write every file of the state folder except the signing key:
the journal, its segments, the checkpoints, even the public key; some keep copies and put them back.

Refused: `verify` names the place, and a gateway does not go on with a journal that lacks what was sealed. What no
file in the folder can show, a copy of the public key or an anchor elsewhere does; the last tests say where that ends.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.audit import (
    PUBLIC_FILE,
    ChainHead,
    Checkpoint,
    Database,
    Journal,
    JournalCut,
    JournalReader,
    PublicKey,
    SessionChanged,
    SigningKey,
    SigningKeyLost,
    Verification,
)
from sentinel_rag.audit.chain import seal
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.gateway.store import open_state

JOURNAL = "journal.sqlite"
CHECKPOINTS = "checkpoints.jsonl"
KEY = "audit-signing.key"

pytestmark = pytest.mark.requirement("AUD-2")


def opened(audit_id: str) -> SessionChanged:
    return SessionChanged(audit_id=audit_id, key_id="key", session_id="session", change="opened")


def append(folder: Path, first: int, count: int, *, anchor: Path | None = None) -> None:
    """A whole life of a gateway, with a clean stop."""
    with open_state(folder, anchor=anchor) as state:
        for number in range(first, first + count):
            asyncio.run(state.journal.append(opened(f"a{number}")))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve records, sealed twice, an anchor elsewhere."""
    state = tmp_path / "gateway"
    append(state, 1, 8, anchor=tmp_path / "anchor.jsonl")
    append(state, 9, 4, anchor=tmp_path / "anchor.jsonl")
    assert verify(state).intact
    return state


def verify(folder: Path, *, anchor: bool = False, key: PublicKey | None = None) -> Verification:
    return JournalReader(folder / JOURNAL).verify(
        public_key=key, anchor=folder.parent / "anchor.jsonl" if anchor else None
    )


def of_kind(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [entry.record for entry in JournalReader(folder / JOURNAL).read(0, 1_000) if entry.kind == kind]


def change(folder: Path, *statements: str, values: tuple[object, ...] = ()) -> None:
    with closing(sqlite3.connect(folder / JOURNAL, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement, values if "?" in statement else ())


def refuses_to_start(folder: Path, error: type[Exception] = JournalCut) -> str:
    before = JournalReader(folder / JOURNAL).last(1)
    with pytest.raises(error) as refused:
        open_state(folder)
    assert getattr(refused.value, "next_step", "")
    assert JournalReader(folder / JOURNAL).last(1) == before  # nothing was added to what is evidence now
    return str(refused.value)


def test_a_cut_tail_with_its_checkpoints_is_found_and_nothing_is_added_to_it(folder: Path) -> None:
    change(folder, "DELETE FROM journal WHERE seq > 8", "DELETE FROM checkpoint WHERE seq > 8")
    found = verify(folder)
    assert (found.intact, found.broken_at) == (False, 12)
    assert "its tail was cut" in found.problem
    assert "record 12" in refuses_to_start(folder)


def test_an_emptied_journal_is_found(folder: Path) -> None:
    change(folder, "DELETE FROM journal", "DELETE FROM checkpoint")
    assert "tail was cut" in verify(folder).problem
    with pytest.raises(JournalCut):
        open_state(folder)


def test_a_removed_journal_is_found_and_no_new_one_begins_in_its_place(folder: Path) -> None:
    (folder / JOURNAL).unlink()
    found = verify(folder)
    assert (found.intact, found.problem) == (False, "journal.sqlite is gone, and checkpoints.jsonl proves 12 records")
    with pytest.raises(JournalCut, match="record 12"):
        open_state(folder)


def test_a_removed_or_emptied_checkpoint_file_is_found(folder: Path) -> None:
    kept = (folder / CHECKPOINTS).read_bytes()
    (folder / CHECKPOINTS).write_bytes(b"")
    assert "checkpoints.jsonl lacks" in verify(folder).problem
    assert "checkpoints.jsonl" in refuses_to_start(folder)
    (folder / CHECKPOINTS).unlink()
    assert "checkpoints.jsonl is gone" in verify(folder).problem
    assert "checkpoints.jsonl" in refuses_to_start(folder)
    (folder / CHECKPOINTS).write_bytes(kept.partition(b"\n")[2])
    assert "does not begin with the first checkpoint" in verify(folder).problem
    (folder / CHECKPOINTS).write_bytes(kept)
    assert verify(folder).intact


def test_a_checkpoint_file_that_is_removed_under_way_is_on_record(tmp_path: Path) -> None:
    folder = tmp_path / "gateway"
    with open_state(folder) as state:
        asyncio.run(state.journal.append(opened("a1")))
        (folder / CHECKPOINTS).unlink()
        state.journal.seal_now()
    assert [record["place"] for record in of_kind(folder, "sealing")] == ["checkpoints"]
    assert not verify(folder).intact


def test_a_rewritten_journal_signed_with_another_key_is_found(folder: Path, tmp_path: Path) -> None:
    copy = PublicKey.load(folder / PUBLIC_FILE)
    forged = tmp_path / "forged"
    append(forged, 1, 12)
    shutil.copy(forged / JOURNAL, folder / JOURNAL)
    found = verify(folder)
    assert (found.intact, "signed with another key" in found.problem) == (False, True)
    # With every file replaced, the public key too, the folder alone proves the wrong thing: a copy of the key does not.
    for name in (CHECKPOINTS, PUBLIC_FILE, KEY):
        shutil.copy(forged / name, folder / name)
    assert verify(folder).intact
    found = verify(folder, key=copy)
    assert (found.intact, "signed with another key" in found.problem) == (False, True)
    found = verify(folder, anchor=True)
    assert (found.intact, "anchor.jsonl" in found.problem) == (False, True)


def test_two_writers_that_forked_are_found(folder: Path, tmp_path: Path) -> None:
    twin = tmp_path / "twin"
    shutil.copytree(folder, twin)
    append(folder, 13, 3, anchor=tmp_path / "anchor.jsonl")
    append(twin, 13, 2)
    with closing(sqlite3.connect(twin / JOURNAL)) as connection:
        assert connection.execute("SELECT max(seq) FROM journal").fetchone() == (14,)
    # Each is whole by itself; the checkpoints of one in the other's file show that there were two.
    assert verify(folder).intact
    assert verify(twin).intact
    lines = (twin / CHECKPOINTS).read_bytes().splitlines(keepends=True)
    with (folder / CHECKPOINTS).open("ab") as stream:
        stream.write(lines[-1])
    found = verify(folder)
    assert (found.broken_at, "two writers" in found.problem) == (14, True)
    assert not JournalReader(twin / JOURNAL).verify(anchor=tmp_path / "anchor.jsonl").intact


def test_an_older_copy_of_the_whole_folder_shows_only_at_the_anchor(folder: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(folder, old)
    append(folder, 13, 5, anchor=tmp_path / "anchor.jsonl")
    shutil.rmtree(folder)
    shutil.copytree(old, folder)
    assert verify(folder).intact  # as the documentation says: nothing in the folder can show it
    found = verify(folder, anchor=True)
    assert (found.intact, found.broken_at) == (False, 17)
    with pytest.raises(JournalCut, match=r"anchor\.jsonl"):
        open_state(folder, anchor=tmp_path / "anchor.jsonl")


def test_records_after_the_last_checkpoint_are_called_unsealed(folder: Path) -> None:
    """What the attacker appends without the key is part of the chain and of nothing that is proved."""
    with Database(folder / JOURNAL) as database:
        Journal(database).append_now(opened("forged"))
    found = verify(folder)
    assert (found.intact, found.sealed, found.unsealed) == (True, 12, 1)
    with open_state(folder):
        pass
    [late] = of_kind(folder, "tail_sealed")
    assert (late["first"], late["last"]) == (13, 13)
    assert verify(folder).unsealed == 0


def test_a_lost_or_exchanged_signing_key_is_not_replaced(folder: Path, tmp_path: Path) -> None:
    key = (folder / KEY).read_bytes()
    (folder / KEY).unlink()
    assert "is gone" in refuses_to_start(folder, SigningKeyLost)
    other = tmp_path / "other"
    other.mkdir()
    SigningKey.open(other)
    shutil.copy(other / KEY, folder / KEY)
    assert "not halves of one key" in refuses_to_start(folder, SigningKeyLost)
    (folder / KEY).write_bytes(b"-----BEGIN NOTHING-----")
    assert "damaged" in refuses_to_start(folder, UnavailableError)
    (folder / KEY).write_bytes(key)
    append(folder, 13, 1)
    assert verify(folder).intact


def test_a_checkpoint_cannot_be_carried_to_another_record_or_time(folder: Path) -> None:
    key = SigningKey.open(folder)
    real = Checkpoint.sign(ChainHead(5, bytes(32)), "2026-01-01T00:00:00Z", key)
    assert real.is_signed_by(key.public)
    assert Checkpoint.parse(real.line()) == real
    for moved in (
        Checkpoint(ChainHead(6, bytes(32)), real.at, real.key, real.signature),
        Checkpoint(ChainHead(5, b"\x01" * 32), real.at, real.key, real.signature),
        Checkpoint(real.head, "2027-01-01T00:00:00Z", real.key, real.signature),
        Checkpoint(real.head, real.at, "0" * 64, real.signature),
    ):
        assert not moved.is_signed_by(key.public)
    for line in (b"", b"{}", b"[]", b"null", real.line() + b" ", real.line().replace(b'"v":1', b'"v":2')):
        with pytest.raises(ValueError, match="no checkpoint"):
            Checkpoint.parse(line)


@pytest.fixture
def rotated(folder: Path) -> Path:
    """Three segments: 1 to 12, 13 to 15, 16 to 18, and a live file."""
    with open_state(folder) as state:
        state.journal.archive.rotate()
        for number in (13, 16):
            state.journal.append_now(opened(f"b{number}"))
            state.journal.append_now(opened(f"c{number}"))
            state.journal.archive.rotate()
    assert verify(folder).intact
    return folder


def test_a_removed_segment_is_no_pruned_one(rotated: Path) -> None:
    first, middle, _ = sorted((rotated / "segments").glob("*.sqlite"))
    kept = middle.read_bytes()
    middle.unlink()
    found = verify(rotated)
    assert (found.intact, middle.name in found.problem, found.broken_at) == (False, True, 13)
    middle.write_bytes(kept)
    # With its registration removed too, the gap shows; at the beginning, the missing signed word does.
    change(rotated, "DELETE FROM segment WHERE first_seq = 13")
    assert "record 13 is missing" in verify(rotated).problem
    change(rotated, "DELETE FROM segment WHERE first_seq < 16")
    first.unlink()
    assert "no record says that they were pruned" in verify(rotated).problem


def test_a_segment_cannot_be_exchanged_for_another(rotated: Path) -> None:
    first, middle, _ = sorted((rotated / "segments").glob("*.sqlite"))
    shutil.copy(first, middle)
    found = verify(rotated)
    assert not found.intact
    assert found.broken_at == 13
    middle.write_bytes(b"SQLite format 3\x00" + b"\xff" * 4096)
    found = verify(rotated)
    assert (found.intact, middle.name in found.problem) == (False, True)


def test_a_file_that_is_overwritten_in_the_middle_is_damaged_or_tells_the_truth(folder: Path) -> None:
    content = (folder / JOURNAL).read_bytes()
    before = JournalReader(folder / JOURNAL).read(0, 100)
    refused = 0
    for at in range(4_096, len(content), 4_096):
        (folder / JOURNAL).write_bytes(content[:at] + b"\xff" * 2_048 + content[at + 2_048 :])
        try:
            found = verify(folder)
        except UnavailableError:
            refused += 1
            continue
        if found.intact:  # a page of sessions or of an index
            with closing(sqlite3.connect(folder / JOURNAL)) as connection:
                rows = connection.execute("SELECT hash FROM journal ORDER BY seq").fetchall()
            assert [row[0] for row in rows] == [entry.digest for entry in before]
        refused += not found.intact
    assert refused > 2
    (folder / JOURNAL).write_bytes(b"\xff" * len(content))
    with pytest.raises(UnavailableError, match="cannot be opened") as unreadable:
        verify(folder)
    assert unreadable.value.next_step


def test_a_forged_record_of_pruning_proves_nothing(rotated: Path) -> None:
    """Anybody can chain a record to the end; what was pruned must be said by one that is signed."""
    first = min((rotated / "segments").glob("*.sqlite"))
    with closing(sqlite3.connect(first)) as connection:
        through, through_hash = connection.execute("SELECT max(seq), hash FROM journal").fetchone()
    with closing(sqlite3.connect(rotated / JOURNAL, isolation_level=None)) as connection:
        seq, previous = connection.execute("SELECT max(seq), hash FROM journal").fetchone()
        event = {
            "kind": "pruned",
            "audit_id": "forged",
            "at": "2026-11-28T00:00:00.000000Z",
            "through": through,
            "through_hash": through_hash.hex(),
        }
        head, record = seal(ChainHead(seq, previous), event)
        columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(journal)")]
        values = {
            "seq": head.seq,
            "hash": head.digest,
            "record": record,
            "audit_id": "forged",
            "kind": "pruned",
        }
        connection.execute(
            f"INSERT INTO journal ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
            [values[name] for name in columns],
        )
    change(rotated, "DELETE FROM segment WHERE first_seq = 1")
    first.unlink()
    found = verify(rotated)
    assert not found.intact
    assert "no signed record says that they were pruned" in found.problem
