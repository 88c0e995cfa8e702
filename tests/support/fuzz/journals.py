"""The audit journal and its export, damaged byte by byte: found, or still just what was written.

A small journal is made anew with a fixed key and a fixed clock. An input of the target `journal-file` is a list of
changes to its files, four bytes each, so that a finding stays small; one of `journal-export` is the export itself.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.fuzz.target import Check, Target, expect

from sentinel_rag.audit import (
    CallIntended,
    CallOutcome,
    Database,
    Journal,
    JournalReader,
    OutcomeStatus,
    PublicKey,
    RecordFilter,
    Sealing,
    SessionChanged,
    SigningKey,
    export_records,
    verify_export,
)
from sentinel_rag.audit.chain import KEY_FILE
from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.contracts.labels import TOP, Label
from sentinel_rag.storage.port import checkpoints_of

_JOURNAL = "journal.sqlite"
_CHANGE = 4
"""Bytes of one change: which file, the place in it (two bytes, of 65 536 parts), and what stands there then."""
_CALLS = 5


@dataclass(frozen=True, slots=True)
class _Original:
    """The files of an undamaged journal, its records in order, its export, and the key that checks them."""

    files: dict[str, bytes]
    records: tuple[bytes, ...]
    export: bytes
    key: PublicKey


@lru_cache(maxsize=1)
def _original() -> _Original:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    pem = Ed25519PrivateKey.from_private_bytes(bytes(range(32))).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / KEY_FILE).write_bytes(pem)
        sealing = Sealing.of_folder(folder)
        with (
            Database(folder / _JOURNAL) as database,
            closing(
                Journal(database, clock=lambda: datetime(2026, 11, 28, 9, 30, tzinfo=UTC), sealing=sealing)
            ) as kept,
        ):
            for number in range(_CALLS):
                _record(kept, number)
                if number % 2:
                    kept.seal_now()
        key = SigningKey.open(folder).public
        export = io.BytesIO()
        export_records(folder / _JOURNAL, export)
        return _Original(
            {name: (folder / name).read_bytes() for name in (_JOURNAL, checkpoints_of(folder / _JOURNAL).name)},
            tuple(line for line in export.getvalue().splitlines() if b'"seq":' in line and b'"checkpoint"' not in line),
            export.getvalue(),
            key,
        )


def _record(journal: Journal, number: int) -> None:
    call = f"call-{number}"
    session = f"session-{number % 2}"
    journal.append_now(SessionChanged(audit_id=f"opened-{number}", key_id="key", session_id=session, change="opened"))
    journal.append_now(
        CallIntended(
            audit_id=call,
            key_id="key",
            session_id=session,
            tool="get_incident_detail",
            requested_tool="get_incident_detail",
            server="sentinel",
            effect="read",
            arguments={"incident": str(number), "why": "ß\u2028 ' \" \\"},
            arguments_sha256="ab" * 32,
            rule_id="any",
            label=TOP,
            context_before=Label(),
            context_after=TOP,
            policy_sha256="cd" * 32,
        )
    )
    journal.append_now(CallOutcome(audit_id=call, status=OutcomeStatus.SUCCESS, duration_ms=1.5))


@contextmanager
def _opened(folder: Path) -> Iterator[Check]:
    original = _original()
    names = tuple(original.files)
    used = {name: [place for place, byte in enumerate(content) if byte] for name, content in original.files.items()}

    def check(content: bytes) -> None:
        images = {name: bytearray(image) for name, image in original.files.items()}
        for start in range(0, len(content) - _CHANGE + 1, _CHANGE):
            which, high, low, value = content[start : start + _CHANGE]
            name = names[which % len(names)]
            share = high << 8 | low
            if which >= 0xF0:  # cut, rather than changed
                del images[name][len(original.files[name]) * share >> 16 :]
                continue
            # Every other time anywhere; else where something stands: most of a database's pages is empty.
            places: Sequence[int] = used[name] if which & 2 else range(len(original.files[name]))
            place = places[len(places) * share >> 16]
            if place < len(images[name]):
                images[name][place] = value
        for name, image in images.items():
            (folder / name).write_bytes(image)
        _judge(folder, original)
        for left in folder.glob(f"{_JOURNAL}-*"):
            left.unlink()

    yield check


def _judge(folder: Path, original: _Original) -> None:
    reader = JournalReader(folder / _JOURNAL)
    try:
        intact = reader.verify(public_key=original.key).intact
    except SentinelError as refused:
        _expect_sentence(refused)
        intact = False
    try:
        found = [entry.record for entry in reader.read(0, 1_000)]
        reader.last(5)
        reader.search(RecordFilter(tool="get_incident_detail", session_id="session-1"), 5)
        calls = [[entry.kind for entry in reader.find(f"call-{number}")] for number in range(_CALLS)]
        export_records(reader.path, io.BytesIO())
    except SentinelError as refused:
        _expect_sentence(refused)
        expect(not intact, "the journal verifies, and cannot be read")
        return
    if intact:
        expect(found == [json.loads(record) for record in original.records], "the journal verifies, and was changed")
        expect(calls == [["intent", "outcome"]] * _CALLS, "the journal verifies, and calls are not found")


def _expect_sentence(refused: SentinelError) -> None:
    expect(str(refused) != "" and refused.next_step != "", "a refusal says nothing, or no next step")


@contextmanager
def _opened_export(_: Path) -> Iterator[Check]:
    original = _original()

    def check(content: bytes) -> None:
        found = verify_export(content.splitlines(keepends=True), original.key)
        if not found.intact:
            expect(found.problem != "" and found.broken_at is not None, "a broken export does not say where")
            return
        held = [line for line in content.split(b"\n") if line in original.records]
        sealed = [line for line in held if json.loads(line)["seq"] <= (found.sealed or 0)]
        expect(len(sealed) == (found.sealed or 0) - found.first + 1 or not found.records, "a sealed record is not one")
        expect(
            found.records == 0 or held == list(original.records[found.first - 1 :][: len(held)]), "records are missing"
        )

    yield check


JOURNAL = Target(
    name="journal-file",
    promise="A journal whose files were changed or cut is read with a typed error or not at all, and if it verifies, "
    "every record is the one that was written and every call is found.",
    opened=_opened,
    seeds=lambda: [
        b"",
        bytes((0, 0x10, 0x00, 0x41)),
        bytes((2, 0x80, 0x00, 0x41, 3, 0x80, 0x00, 0x41)),
        bytes((0xF0, 0x80, 0x00, 0x00)),
        bytes((0xF1, 0xC0, 0x00, 0x00)),
    ],
    largest=64,
)

JOURNAL_EXPORT = Target(
    name="journal-export",
    promise="An exported journal that was changed, cut or put together otherwise is found, at a record; if it "
    "verifies, its sealed records are those that were written, without a gap.",
    opened=_opened_export,
    seeds=lambda: [_original().export, b'{"export":{"v":1}}\n', b""],
    tokens=(
        *(b'{"end":{"first":1,"last":1,"records":1}}\n', b'"seq":1', b'"seq":true', b'"seq":-1', b'"seq":1e999'),
        *(b"null",),
        *(b'"previous":', b'"kind":"records_pruned"', b'"through":3', b'"signature":""', b"\r", b"\n\n", b"[" * 2_000),
        *(b"9" * 5_000, b"NaN", b"\xff", b"\\ud800", b'"checkpoint":', b'"v":2', b"\xe2\x80\xa8", b"\x85", b"\x0b"),
    ),
    largest=16_000,
)
