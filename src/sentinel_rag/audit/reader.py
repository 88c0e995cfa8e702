"""The reading side of the journal: pages, one call, and the check of the chain.

Opens the file read-only for each question, so it works beside a running Interceptor and on a copy. It changes nothing.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentinel_rag.audit.chain import GENESIS, Head, digest
from sentinel_rag.audit.events import CallIntended, OutcomeStatus
from sentinel_rag.contracts.errors import SentinelError, UnavailableError
from sentinel_rag.contracts.json_values import JsonValue

MAX_PAGE = 1_000
MAX_PAGE_BYTES = 8_000_000


_SELECT = """
SELECT j.seq, j.audit_id, j.kind, j.record, j.hash,
       CASE WHEN j.kind = 'intent'
            THEN (SELECT o.record FROM journal o WHERE o.audit_id = j.audit_id AND o.kind = 'outcome' LIMIT 1) END
FROM journal j
"""
_SELECT_PAGE = _SELECT + "WHERE j.seq > ? ORDER BY j.seq LIMIT ?"
_SELECT_LAST = _SELECT + "ORDER BY j.seq DESC LIMIT ?"
_SELECT_CALL = _SELECT + "WHERE j.audit_id = ? ORDER BY j.seq"


class DamagedJournal(SentinelError):
    """A record cannot be read back; `verify` says where the chain breaks."""

    code = "journal_damaged"


@dataclass(frozen=True, slots=True)
class Entry:
    """One record. `outcome` is set for an intent: the status of its outcome record, `unknown` while there is none
    (the call still runs, or the Interceptor died; a restart writes which)."""

    seq: int
    audit_id: str
    kind: str
    record: dict[str, Any]
    digest: bytes
    outcome: OutcomeStatus | None = None

    def to_dict(self) -> dict[str, JsonValue]:
        """The wire form: the record as it was hashed, with its hash and the outcome of an intent beside it."""
        return {
            "record": self.record,
            "hash": self.digest.hex(),
            "outcome": None if self.outcome is None else self.outcome.value,
        }


@dataclass(frozen=True, slots=True)
class Verification:
    """`intact` with the number of records and the head, or the first place where the chain does not hold."""

    intact: bool
    records: int
    head: Head
    broken_at: int | None = None
    problem: str = ""


class JournalReader:
    """Reads the journal at `path`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, after_seq: int = 0, limit: int = 100) -> list[Entry]:
        """At most `limit` (up to 1 000) records with a sequence number above `after_seq`, oldest first.

        A page also ends after about 8 MB, so only an empty one means that there is no more.
        """
        return self._entries(_SELECT_PAGE, [after_seq, max(0, min(limit, MAX_PAGE))])

    def last(self, limit: int) -> list[Entry]:
        """The newest `limit` (up to 1 000) records, oldest first."""
        return self._entries(_SELECT_LAST, [max(0, min(limit, MAX_PAGE))])[::-1]

    def find(self, audit_id: str) -> list[Entry]:
        """All records of one call, oldest first; empty if there are none."""
        return self._entries(_SELECT_CALL, [audit_id])

    def verify(self, known: Head | None = None) -> Verification:
        """Walk the chain from the first record. With `known`, a head kept outside the file, a cut tail and a
        rewritten end are found too; without it they cannot be."""
        with closing(self._connect()) as connection:
            head = GENESIS
            met = known is None or known == GENESIS
            rows = connection.execute("SELECT seq, audit_id, kind, record, hash FROM journal ORDER BY seq")
            for seq, audit_id, kind, record, stored in rows:
                problem = _broken_link(head, seq, audit_id, kind, record, stored)
                if not problem and known is not None and seq == known.seq:
                    met = True
                    problem = (
                        "" if stored == known.digest else "the record is not the one that was here at the known head"
                    )
                if problem:
                    return Verification(False, head.seq, head, broken_at=seq, problem=problem)
                head = Head(seq, stored)
            if not met:
                assert known is not None
                problem = f"the journal ends at record {head.seq}, before the known head {known.seq}: its tail was cut"
                return Verification(False, head.seq, head, broken_at=head.seq + 1, problem=problem)
            return Verification(True, head.seq, head)

    def _entries(self, query: str, values: list[object]) -> list[Entry]:
        with closing(self._connect()) as connection:
            return list(_decode(_page(connection.execute(query, values))))

    def _connect(self) -> sqlite3.Connection:
        if not self._path.exists():
            raise UnavailableError(
                "There is no audit journal yet: no Interceptor has run with this home folder.",
                next_step="Ask something first, or set SENTINEL_HOME to the folder that you mean.",
            )
        try:
            connection = sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
            with ExitStack() as opened:
                opened.enter_context(closing(connection))
                connection.execute("SELECT seq FROM journal LIMIT 1")
                opened.pop_all()
        except sqlite3.Error as error:
            raise UnavailableError(
                f"The journal {self._path.name} cannot be opened: {error}.",
                next_step="Check that the file is yours to read, and that its disk is mounted.",
            ) from error
        return connection


Row = tuple[int, str, str, bytes, bytes, bytes | None]


def _page(rows: Iterable[Row]) -> Iterator[Row]:
    size = 0
    for row in rows:
        yield row
        size += len(row[3])
        if size > MAX_PAGE_BYTES:
            return


def _decode(rows: Iterable[Row]) -> Iterator[Entry]:
    for seq, audit_id, kind, record, stored, outcome in rows:
        try:
            status = None
            if kind == CallIntended.kind:
                status = OutcomeStatus.UNKNOWN if outcome is None else OutcomeStatus(json.loads(outcome)["status"])
            yield Entry(seq, audit_id, kind, json.loads(record), stored, status)
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedJournal(
                f"Record {seq} of the journal cannot be read.",
                next_step="Run `sentinel audit verify` and restore the file from a copy.",
            ) from error


def _broken_link(head: Head, seq: int, audit_id: str, kind: str, record: bytes, stored: bytes) -> str:
    """What is wrong with the record that should follow `head`; empty if nothing is."""
    if seq != head.seq + 1:
        return f"record {head.seq + 1} is missing"
    if digest(record) != stored:
        return "the record's bytes do not have its hash"
    try:
        body = json.loads(record)
        links = (body["seq"], body["previous"], body["audit_id"], body["kind"])
    except (ValueError, KeyError, TypeError):
        return "the record is not readable"
    if links[:2] != (seq, head.digest.hex()):
        return "the record does not follow the one before it"
    if links[2:] != (audit_id, kind):
        return "the index columns differ from the record"
    return ""
