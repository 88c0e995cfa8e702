"""Is the journal as it was written? Every record against its hash, every checkpoint against its signature.

It needs the public key and nothing secret, and memory that does not grow with the journal. What it cannot find: records
written since the last checkpoint (it says how many), and a journal that was replaced as a whole.

Records as JSON lines that prove themselves: with `verify_export` and the public key nothing else is needed.

The first line says what the file is, each record is the line that was hashed, each checkpoint follows the record it
seals, and the last line counts. Between its first and its last record an export is complete, because the chain is; that
it begins early enough only its reader can judge.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from sentinel_rag.audit.chain import GENESIS, PUBLIC_FILE, ChainHead, Checkpoint, CheckpointFile, PublicKey, digest
from sentinel_rag.audit.events import RecordsPruned
from sentinel_rag.audit.files import DamagedJournal, Snapshot, open_snapshot, stream
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.json_values import JsonValue, canonical_json
from sentinel_rag.contracts.query_results import format_time, parse_time
from sentinel_rag.storage.port import JournalPlace, PostgresPlace, checkpoints_of, folder_of, name_of


class Broken(Exception):
    """The first place that does not hold: a record's number and what is wrong."""

    def __init__(self, at: int, problem: str) -> None:
        super().__init__(problem)
        self.at = at


@dataclass(slots=True)
class ChainCheck:
    """Follows records and checkpoints in their order. Each method raises Broken at the first that does not fit."""

    key: PublicKey | None
    first: int | None = None
    before_first: str = ""
    head: ChainHead = GENESIS
    records: int = 0
    checkpoints: int = 0
    sealed: int | None = None
    pruned: dict[tuple[object, object], int] = field(default_factory=dict)
    """Ends of what records say was pruned, number and hash, with the number of the first that says so. A journal has
    few."""

    def record(self, seq: int, record: bytes, stored: bytes, columns: tuple[str, str] | None = None) -> None:
        """The next record. `columns` are the audit id and the kind as an index holds them."""
        expected = seq if self.first is None else self.head.seq + 1
        if seq > expected:
            raise Broken(expected, f"record {expected} is missing")
        if seq < expected:
            raise Broken(seq, "the record stands where it does not belong")
        if digest(record) != stored:
            raise Broken(seq, "the record's bytes do not have its hash")
        try:
            body = json.loads(record)
            own, previous, names = body["seq"], body["previous"], (body["audit_id"], body["kind"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Broken(seq, "the record is not readable") from None
        if self.first is None:
            self.first, self.before_first = seq, previous
            previous_is = previous if seq > 1 else GENESIS.digest.hex()
        else:
            previous_is = self.head.digest.hex()
        if (own, previous) != (seq, previous_is):
            raise Broken(seq, "the record does not follow the one before it")
        if columns is not None and columns != names:
            raise Broken(seq, "the index columns differ from the record")
        if names[1] == RecordsPruned.kind:
            through, through_hash = body.get("through"), body.get("through_hash")
            if not (isinstance(through, int) and isinstance(through_hash, str)):
                raise Broken(seq, "the record does not say what was pruned")
            self.pruned.setdefault((through, through_hash), seq)
        self.head = ChainHead(seq, stored)
        self.records += 1

    def checkpoint(self, line: bytes, where: str, stored: bytes | None, *, seq: int | None = None) -> Checkpoint:
        """A checkpoint out of `where`, for a record whose hash is `stored` (None: it is not there any more)."""
        found = parse_signed(line, where, self.key, self.head.seq if seq is None else seq)
        if stored != found.head.digest:
            raise Broken(
                found.head.seq,
                f"{where} proves another record {found.head.seq}: the journal was rewritten, or two writers forked it"
                if stored is not None
                else f"{where} proves a record {found.head.seq}, and the journal does not hold it: its tail was cut",
            )
        self.checkpoints += 1
        self.sealed = max(self.sealed or 0, found.head.seq)
        return found

    def result(self, broken: Broken | None, anchored: int | None = None) -> Verification:
        """What was found up to here."""
        return Verification(
            intact=broken is None,
            records=self.records,
            head=self.head,
            broken_at=None if broken is None else broken.at,
            problem="" if broken is None else str(broken),
            first=1 if self.first is None else self.first,
            sealed=self.sealed,
            checkpoints=self.checkpoints,
            anchored=anchored,
            key=None if self.key is None else self.key.fingerprint,
        )


def parse_signed(line: bytes, where: str, key: PublicKey | None, near: int) -> Checkpoint:
    """The checkpoint of a line, if `key` signed it. Raises Broken at its record, or at `near` if it names none."""
    try:
        found = Checkpoint.parse(line)
    except ValueError:
        raise Broken(near, f"a checkpoint in {where} is not readable") from None
    if key is None:
        raise UnavailableError(
            "The journal is signed, and there is no public key to check it with.",
            next_step="Give --public-key FILE, with the key that `sentinel audit key` printed.",
        )
    if found.key != key.fingerprint:
        raise Broken(found.head.seq, f"a checkpoint in {where} is signed with another key ({found.key[:16]})")
    if not found.is_signed_by(key):
        raise Broken(found.head.seq, f"the signature of a checkpoint in {where} does not hold")
    return found


_UNSIGNED = "no signed record says that they were pruned"
_SIGNING_TRIES, _SIGNING_PAUSE = 10, 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What holds, or the first thing found that does not.

    `records` were checked, beginning with number `first`; `head` is the last of them. `sealed` is the last record that
    a signature covers, None for a journal that was never signed. Records up to `pruned_through` were pruned.
    """

    intact: bool
    records: int
    head: ChainHead
    broken_at: int | None = None
    problem: str = ""
    first: int = 1
    sealed: int | None = None
    checkpoints: int = 0
    pruned_through: int = 0
    anchored: int | None = None
    key: str | None = None

    @property
    def unsealed(self) -> int:
        """Records after the last checkpoint: chained, but nothing proves yet that they are the ones written."""
        return self.head.seq - (self.sealed or 0)

    def to_dict(self) -> dict[str, JsonValue]:
        """In the form of `sentinel audit verify --json`."""
        return {
            "intact": self.intact,
            "records": self.records,
            "first": self.first,
            "last": self.head.seq,
            "head": self.head.digest.hex(),
            "sealed": self.sealed,
            "unsealed": self.unsealed,
            "pruned_through": self.pruned_through,
            "anchored": self.anchored,
            "key": self.key,
            "broken_at": self.broken_at,
            "problem": self.problem,
        }


def verify_journal(
    path: JournalPlace,
    *,
    known: ChainHead | None = None,
    public_key: PublicKey | None = None,
    anchor: Path | None = None,
) -> Verification:
    """Check the journal at `path`, its segments and its checkpoints, and those of `anchor`.

    `public_key` is the one beside the journal unless given; `known` is a head that somebody kept. Raises
    UnavailableError if there is nothing to read, or no public key for a journal that is signed.
    """
    beside = folder_of(path) / PUBLIC_FILE
    if public_key is None and beside.exists():
        public_key = PublicKey.load(beside)
    waited = 0
    while True:
        begins = _begins(path)
        found = _verify_once(path, known, public_key, anchor)
        # What was pruned while we read is missing from the middle of what we saw, and from nothing else.
        if found.intact or _begins(path) == begins:
            if not found.problem.endswith(_UNSIGNED) or waited == _SIGNING_TRIES:
                return found
            # Its signature follows at once where a gateway is pruning.
            waited += 1
            time.sleep(_SIGNING_PAUSE)


def _verify_once(
    path: JournalPlace, known: ChainHead | None, public_key: PublicKey | None, anchor: Path | None
) -> Verification:
    check = ChainCheck(public_key)
    # Each of several gateways keeps the checkpoints that it made, from its own beginning.
    shared = isinstance(path, PostgresPlace)
    places = [(CheckpointFile(checkpoints_of(path)), False)]
    if anchor is not None:
        places.append((CheckpointFile(anchor), True))
    anchored: int | None = None
    try:
        _require_journal(path, places, public_key)
        in_journal = _last_in_journal(path)
        sizes = [place.size() for place, _ in places]  # what is added from here on belongs to records not read yet
        _walk(path, check, known)
        _check_indexes(path)
        boundary_signed = False
        for (place, is_anchor), size in zip(places, sizes, strict=True):
            newest, boundary = _check_file(path, place, size, check, is_anchor=is_anchor)
            boundary_signed |= boundary
            anchored = newest if is_anchor else anchored
            if not is_anchor and not shared and in_journal is not None and (newest is None or newest < in_journal):
                raise Broken(in_journal, f"{place.path.name} lacks the checkpoint of record {in_journal}: it was cut")
        if public_key is not None and check.sealed is None and not boundary_signed:
            raise Broken(1, "no checkpoint is left, though the journal has a key")
        _check_beginning(check, boundary_signed)
    except Broken as broken:
        return check.result(broken, anchored)
    except DamagedJournal as damaged:
        problem = str(damaged).rstrip(".")
        return check.result(Broken(check.head.seq + 1, problem[:1].lower() + problem[1:]), anchored)
    whole = check.result(None, anchored)
    return replace(whole, pruned_through=whole.first - 1)


def _begins(path: JournalPlace) -> int | None:
    """The first record that is kept, as the live file says; None if nothing is."""
    if not isinstance(path, Path) or path.exists():
        with suppress(DamagedJournal), open_snapshot(path) as snapshot:
            if len(snapshot.parts) > 1:
                return snapshot.parts[0].first
            first: int | None = snapshot.live.execute("SELECT min(seq) FROM journal").fetchone()[0]
            return first
    return None


def _require_journal(path: JournalPlace, places: list[tuple[CheckpointFile, bool]], key: PublicKey | None) -> None:
    """A journal that is gone is found by what is left of it."""
    if not isinstance(path, Path) or path.exists():
        return
    for place, _ in places:
        last = None if key is None else place.last(key)
        if last is not None:
            raise Broken(1, f"{path.name} is gone, and {place.path.name} proves {last.head.seq} records")


def _last_in_journal(path: JournalPlace) -> int | None:
    with open_snapshot(path) as snapshot:
        if not snapshot.sealed:
            return None
        row = snapshot.live.execute("SELECT max(seq) FROM checkpoint").fetchone()
        return None if row[0] is None else int(row[0])


def _walk(path: JournalPlace, check: ChainCheck, known: ChainHead | None) -> None:
    """Every record, with the checkpoints of the file that holds it."""
    met = known is None or known == GENESIS
    for stored in stream(path):
        check.record(stored.seq, stored.record, stored.digest, (stored.audit_id, stored.kind))
        if stored.checkpoint is not None:
            found = check.checkpoint(stored.checkpoint, "the journal", stored.digest)
            if found.head.seq != stored.seq:
                raise Broken(stored.seq, f"the checkpoint of record {stored.seq} is one of record {found.head.seq}")
        if known is not None and stored.seq == known.seq:
            met = True
            if stored.digest != known.digest:
                raise Broken(stored.seq, "the record is not the one that was here at the known head")
    if not met and known is not None and known.seq >= (check.first or 1):
        raise Broken(
            check.head.seq + 1,
            f"the journal ends at record {check.head.seq}, before the known head {known.seq}: its tail was cut",
        )
    with open_snapshot(path) as snapshot:
        if snapshot.sealed:
            # Ends of segments, of which the live file keeps the checkpoints too, and records that are gone.
            lines = snapshot.live.execute(
                "SELECT line FROM checkpoint c WHERE NOT EXISTS (SELECT 1 FROM journal j WHERE j.seq = c.seq)"
            )
            for (line,) in lines:
                found = parse_signed(line, "the journal", check.key, check.head.seq)
                check.checkpoint(line, "the journal", _stored_hash(snapshot, check, found.head))


def _check_indexes(path: JournalPlace) -> None:
    """Calls are looked up by an index, which no hash covers: it must lead to the records, and to nothing else.
    An index of PostgreSQL is its server's to check."""
    if not isinstance(path, Path):
        return
    with open_snapshot(path) as snapshot:
        for part in snapshot.parts:
            (found,) = snapshot.connection(part).execute("PRAGMA integrity_check(journal)").fetchone()
            if found != "ok":
                raise Broken(
                    part.first,
                    f"the index of {name_of(part.path)} does not fit its records, which are whole: calls may not be "
                    "found by their id",
                )


def _stored_hash(snapshot: Snapshot, check: ChainCheck, claimed: ChainHead) -> bytes | None:
    """The hash of record `claimed.seq` as the journal has it; None if it should be there and is not."""
    first = check.first or 1
    if claimed.seq == GENESIS.seq:
        return GENESIS.digest
    if claimed.seq == first - 1:
        return bytes.fromhex(check.before_first)
    if claimed.seq < first:
        return claimed.digest  # of a record that was pruned: the signature is all there is
    connection = snapshot.connection(snapshot.holding(claimed.seq))
    row = connection.execute("SELECT hash FROM journal WHERE seq = ?", [claimed.seq]).fetchone()
    return None if row is None else bytes(row[0])


def _check_file(
    path: JournalPlace, place: CheckpointFile, size: int | None, check: ChainCheck, *, is_anchor: bool
) -> tuple[int | None, bool]:
    """The newest record that the lines of a file prove, and whether one is the boundary of what was pruned."""
    name = place.path.name
    shared = isinstance(path, PostgresPlace)
    if size is None:
        if is_anchor or (check.key is not None and not shared):
            raise Broken(check.head.seq, f"{name} is gone")
        return None, False
    first = check.first or 1
    newest: int | None = None
    boundary = False
    with open_snapshot(path) as snapshot:
        for number, line in enumerate(place.lines(size), 1):
            where = f"line {number} of {name}"
            found = parse_signed(line, where, check.key, check.head.seq)
            seq = found.head.seq
            if number == 1 and seq != GENESIS.seq and not is_anchor and not shared:
                raise Broken(1, f"{name} does not begin with the first checkpoint: it was removed or its start was cut")
            boundary |= seq == first - 1
            check.checkpoint(line, where, _stored_hash(snapshot, check, found.head))
            newest = max(newest or 0, seq)
    return newest, boundary


def _check_beginning(check: ChainCheck, boundary_signed: bool) -> None:
    """A journal that does not begin with record 1 must say itself, signed, where it begins."""
    if check.first is None or check.first == 1:
        return
    through = check.first - 1
    said = check.pruned.get((through, check.before_first))
    if said is None:
        raise Broken(1, f"records 1 to {through} are gone, and no record says that they were pruned")
    if check.key is not None and said > (check.sealed or 0):
        # Anybody can chain a record to the end, and a file is removed only after the signature.
        raise Broken(1, f"records 1 to {through} are gone, and {_UNSIGNED}")
    if check.key is not None and not boundary_signed:
        raise Broken(through, f"records 1 to {through} were pruned, and no checkpoint proves the last of them")


VERSION = 1


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: records `first` to `head`, sealed up to number `sealed` (None: not at all)."""

    records: int
    first: int | None
    head: ChainHead
    sealed: int | None


def export_records(
    path: JournalPlace, target: BinaryIO, *, since: datetime | None = None, until: datetime | None = None
) -> Exported:
    """Write the records of `[since, until)` of the journal at `path`, oldest first, and a few more: up to the one that
    the next checkpoint seals, because only a checkpoint proves what stands before it.

    Raises UnavailableError if there is no journal, DamagedJournal if a record cannot be read.
    """
    _write(target, {"export": {"v": VERSION, "since": _time(since), "until": _time(until)}})
    first, head, records, sealed = None, GENESIS, 0, None
    for stored in stream(path):
        at = _recorded_at(stored.seq, stored.record)
        if first is None:
            if since is not None and at < since:
                continue
            if until is not None and at >= until:
                break
            first = stored.seq
        elif until is not None and at >= until and sealed == head.seq:
            break
        target.write(stored.record + b"\n")
        head, records = ChainHead(stored.seq, stored.digest), records + 1
        if stored.checkpoint is not None:
            target.write(stored.checkpoint + b"\n")
            sealed = stored.seq
    _write(target, {"end": _end(first, head, records)})
    return Exported(records, first, head, sealed)


def verify_export(lines: Iterable[bytes], key: PublicKey) -> Verification:
    """Check an export, line by line."""
    check = ChainCheck(key)
    try:
        _follow(iter(lines), check)
        if check.records and check.sealed is None:
            raise Broken(check.head.seq, "no checkpoint is in the file, so nothing proves its records")
    except Broken as broken:
        return check.result(broken)
    return check.result(None)


def _follow(lines: Iterable[bytes], check: ChainCheck) -> None:
    begun = ended = False
    for line in lines:
        line = line.removesuffix(b"\n")
        body = _object(line, check)
        if not begun:
            if not isinstance(body.get("export"), dict) or body["export"].get("v") != VERSION:
                raise Broken(0, "the file is no export of `sentinel audit export`")
            begun = True
        elif ended:
            raise Broken(check.head.seq, "lines follow after the last one")
        elif "end" in body:
            if body["end"] != _end(check.first, check.head, check.records):
                raise Broken(check.head.seq, "the last line does not fit the records: some were cut or added")
            ended = True
        elif "checkpoint" in body:
            check.checkpoint(line, "the export", check.head.digest)
        elif isinstance(body.get("seq"), int):
            check.record(body["seq"], line, digest(line))
        else:
            raise Broken(check.head.seq + 1, "a line is neither a record nor a checkpoint")
    if not ended:
        raise Broken(check.head.seq + 1, "the file ends without its last line: it was cut")


def _object(line: bytes, check: ChainCheck) -> dict[str, Any]:
    try:
        body = json.loads(line)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise Broken(check.head.seq + 1, "a line is no JSON object")
    return body


def _end(first: int | None, head: ChainHead, records: int) -> dict[str, JsonValue]:
    return {"first": first, "last": head.seq if records else None, "records": records, "head": head.digest.hex()}


def _recorded_at(seq: int, record: bytes) -> datetime:
    try:
        return parse_time(json.loads(record)["at"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedJournal(
            f"Record {seq} of the journal cannot be read.",
            next_step="Run `sentinel audit verify` and restore the file from a copy.",
        ) from error


def _write(target: BinaryIO, line: dict[str, JsonValue]) -> None:
    target.write(canonical_json(line) + b"\n")


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else format_time(moment)
