"""Checkpoints as they come about: soon after records, at a clean stop, for a tail that a crash left, at two places."""

from __future__ import annotations

import asyncio
import signal
import stat
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.support import fork_server

from sentinel_rag.audit import (
    PUBLIC_FILE,
    CheckpointFile,
    Database,
    Durability,
    Journal,
    JournalReader,
    PublicKey,
    Sealing,
    SessionChanged,
)
from sentinel_rag.audit import journal as sealing_module
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.gateway.store import open_state

JOURNAL, CHECKPOINTS = "journal.sqlite", "checkpoints.jsonl"


def opened(audit_id: str) -> SessionChanged:
    return SessionChanged(audit_id=audit_id, key_id="key", session_id="session", change="opened")


def of_kind(folder: Path, kind: str) -> list[dict[str, object]]:
    return [entry.record for entry in JournalReader(folder / JOURNAL).read(0, 1_000) if entry.kind == kind]


@pytest.mark.requirement("AUD-2")
@pytest.mark.parametrize("durability", list(Durability))
def test_new_records_are_sealed_soon_without_anybody_asking(tmp_path: Path, durability: Durability) -> None:
    with open_state(tmp_path, durability=durability) as state:
        asyncio.run(state.journal.append(opened("a")))
        reader = JournalReader(tmp_path / JOURNAL)
        while reader.verify().unsealed:  # the test's own time limit is what ends a sealer that does not work
            time.sleep(0.01)
        found = reader.verify()
        assert (found.intact, found.sealed, found.records) == (True, 1, 1)


def test_many_records_are_sealed_before_the_time_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing_module, "SEAL_SECONDS", 3_600.0)
    with open_state(tmp_path) as state:

        async def append(count: int) -> None:
            await asyncio.gather(*(state.journal.append(opened(f"{number}")) for number in range(count)))

        asyncio.run(append(sealing_module.SEAL_RECORDS))
        reader = JournalReader(tmp_path / JOURNAL)
        while not reader.verify().sealed:
            time.sleep(0.01)
        assert reader.verify().sealed == sealing_module.SEAL_RECORDS


def test_a_clean_stop_leaves_nothing_unsealed_and_a_start_adds_nothing(tmp_path: Path) -> None:
    with open_state(tmp_path) as state:
        asyncio.run(state.journal.append(opened("a")))
    found = JournalReader(tmp_path / JOURNAL).verify()
    assert (found.intact, found.sealed, found.unsealed) == (True, 1, 0)
    with open_state(tmp_path):
        pass
    assert JournalReader(tmp_path / JOURNAL).verify().records == 1
    assert len((tmp_path / CHECKPOINTS).read_bytes().splitlines()) == 2


WRITER = """
import asyncio, sys
from pathlib import Path
from sentinel_rag.audit import SessionChanged, journal
from sentinel_rag.gateway.store import open_state

journal.SEAL_SECONDS = 3_600.0
with open_state(Path(sys.argv[1])) as state:
    for number in range(5):
        event = SessionChanged(audit_id=f"a{number}", key_id="k", session_id="s", change="opened")
        asyncio.run(state.journal.append(event))
    print("written", flush=True)
    sys.stdin.read()
"""


@pytest.mark.requirement("AUD-3")
def test_a_tail_that_kill_9_left_is_sealed_by_the_next_start_and_the_fact_recorded(tmp_path: Path) -> None:
    process = fork_server.Process(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "written\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    left = JournalReader(tmp_path / JOURNAL).verify()
    assert (left.intact, left.sealed, left.unsealed) == (True, 0, 5)
    with open_state(tmp_path):
        assert JournalReader(tmp_path / JOURNAL).verify().sealed == 6
    [record] = of_kind(tmp_path, "tail_sealed")
    assert (record["first"], record["last"]) == (1, 5)


@pytest.mark.requirement("AUD-2")
def test_the_anchor_holds_the_same_checkpoints_and_its_loss_is_on_record(tmp_path: Path) -> None:
    folder, anchor = tmp_path / "gateway", tmp_path / "elsewhere" / "anchor.jsonl"
    with pytest.raises(UnavailableError, match=r"anchor\.jsonl") as refused:
        open_state(folder, anchor=anchor)
    assert "SENTINEL_AUDIT_ANCHOR" in refused.value.next_step
    anchor.parent.mkdir()
    with open_state(folder, anchor=anchor) as state:
        state.journal.append_now(opened("a"))
        state.journal.seal_now()
        assert JournalReader(folder / JOURNAL).verify(anchor=anchor).anchored == 1
        assert stat.S_IMODE(anchor.stat().st_mode) == 0o600
        hidden = anchor.rename(tmp_path / "unmounted")
        for number in range(3):
            state.journal.append_now(opened(f"b{number}"))
            state.journal.seal_now()
        hidden.rename(anchor)
        state.journal.append_now(opened("c"))
        state.journal.seal_now()
    changes = [(record["place"], bool(record["problem"])) for record in of_kind(folder, "sealing")]
    assert changes == [("anchor", True), ("anchor", False)]
    found = JournalReader(folder / JOURNAL).verify(anchor=anchor)
    assert (found.intact, found.anchored) == (True, found.head.seq)
    missing = JournalReader(folder / JOURNAL).verify(anchor=tmp_path / "no.jsonl")
    assert (missing.intact, missing.problem) == (False, "no.jsonl is gone")


def test_a_line_that_a_crash_cut_is_not_taken_for_a_checkpoint(tmp_path: Path) -> None:
    with open_state(tmp_path) as state:
        state.journal.append_now(opened("a"))
    file = CheckpointFile(tmp_path / CHECKPOINTS)
    key = PublicKey.load(tmp_path / PUBLIC_FILE)
    with file.path.open("ab") as stream:
        stream.write(b'{"checkpoint":{"at"')
    last = file.last(key)
    assert last is not None
    assert last.head.seq == 1
    assert JournalReader(tmp_path / JOURNAL).verify().intact


def test_a_journal_without_a_key_is_followed_and_called_unsigned(tmp_path: Path) -> None:
    with Database(tmp_path / JOURNAL) as database, closing(Journal(database)) as journal:
        journal.append_now(opened("a"))
        assert journal.seal_now().seq == 1
    found = JournalReader(tmp_path / JOURNAL).verify()
    assert (found.intact, found.sealed, found.key) == (True, None, None)


def test_a_signed_journal_without_a_public_key_is_not_called_good(tmp_path: Path) -> None:
    with open_state(tmp_path) as state:
        state.journal.append_now(opened("a"))
    kept = tmp_path / "kept.pem"
    (tmp_path / PUBLIC_FILE).rename(kept)
    with pytest.raises(UnavailableError, match="no public key") as refused:
        JournalReader(tmp_path / JOURNAL).verify()
    assert "--public-key" in refused.value.next_step
    assert JournalReader(tmp_path / JOURNAL).verify(public_key=PublicKey.load(kept)).intact


def test_files_that_are_no_public_key_are_named(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    other = tmp_path / "other.pem"
    other.write_bytes(
        generate_private_key(SECP256R1()).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    with pytest.raises(UnavailableError, match="another kind"):
        PublicKey.load(other)
    other.write_text("nothing")
    for path in (other, tmp_path / "missing.pem"):
        with pytest.raises(UnavailableError, match="cannot be read"):
            PublicKey.load(path)


def test_two_that_start_at_once_get_one_key(tmp_path: Path) -> None:
    source = "import sys; from pathlib import Path; from sentinel_rag.audit import SigningKey; "
    source += "print(SigningKey.open(Path(sys.argv[1])).public.fingerprint)"
    both = [
        fork_server.Process([sys.executable, "-c", source, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert len({process.communicate()[0] for process in both}) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["audit-signing.key", PUBLIC_FILE]
    assert Sealing.of_folder(tmp_path).key.public.pem == (tmp_path / PUBLIC_FILE).read_text()
