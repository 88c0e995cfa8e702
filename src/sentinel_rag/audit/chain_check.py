"""Following a chain: each record against its hash and the one before, each checkpoint against its signature and record.

`verification` feeds it from a journal, `export` from a file of lines. It keeps the last place only, however long.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from sentinel_rag.audit.chain import GENESIS, ChainHead, digest
from sentinel_rag.audit.checkpoints import Checkpoint
from sentinel_rag.audit.signing import PublicKey
from sentinel_rag.audit.upkeep_events import RecordsPruned
from sentinel_rag.contracts.errors import UnavailableError


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
