"""The reading side of the journal: pages, one call, a search. What is true of the chain says `verification`.

Opens the files read-only for each question and sees one moment of them, segments included. It changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sentinel_rag.audit.chain import ChainHead, PublicKey
from sentinel_rag.audit.events import CallIntended, OutcomeStatus
from sentinel_rag.audit.files import DamagedJournal, RecordRange, Snapshot, open_snapshot, well_typed
from sentinel_rag.audit.verification import Verification, verify_journal
from sentinel_rag.contracts.json_values import JsonValue, canonical_json
from sentinel_rag.contracts.query_results import parse_time
from sentinel_rag.storage.port import JournalPlace, RecordConnection

MAX_PAGE = 1_000
MAX_PAGE_BYTES = 8_000_000
LEAST_PAGE, LARGEST_PAGE = 16, 256
"""Records that a server is asked for at once; a record can be a megabyte."""
MAX_LOOKED_AT = 20_000
"""Records that one question backwards looks at, so that a rare one costs several short questions and not a long one."""

_SELECT = """
SELECT j.seq, j.audit_id, j.kind, j.record, j.hash,
       CASE WHEN j.kind = 'intent'
            THEN (SELECT o.record FROM journal o WHERE o.audit_id = j.audit_id AND o.kind = 'outcome' LIMIT 1) END
FROM journal j
"""
_SELECT_PAGE = _SELECT + "WHERE j.seq > ? AND j.seq <= ? ORDER BY j.seq LIMIT ?"
_SELECT_BACKWARDS = _SELECT + "WHERE j.seq BETWEEN ? AND ? ORDER BY j.seq DESC"
_SELECT_CALL = _SELECT + "WHERE j.audit_id = ? AND j.seq BETWEEN ? AND ? ORDER BY j.seq"
_SELECT_OUTCOME = "SELECT record FROM journal WHERE audit_id = ? AND kind = 'outcome' LIMIT 1"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One record. `outcome` is set for an intent: the status of its outcome record, `unknown` while there is none
    (the call still runs, or the gateway died; a restart writes which)."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFilter:
    """Which records to find; what is None does not matter. A tool is matched by its name and by the name that was asked
    for, an incident by the argument of that name. `since` is compared with the record's own time."""

    kind: str | None = None
    keys: frozenset[str] | None = None
    """Any of these keys: whose record it is, whom it is about, or who changed a key (by name)."""
    sessions: frozenset[str] = frozenset()
    """With `keys`: sessions whose records count for them, whoever wrote these."""
    incident: str | None = None
    session_id: str | None = None
    tool: str | None = None
    decision: str | None = None
    reason: str | None = None
    since: datetime | None = None

    def accepts(self, record: dict[str, Any]) -> bool:
        return (
            (self.kind is None or record.get("kind") == self.kind)
            and (self.keys is None or self._is_of_keys(record))
            and (self.incident is None or _incident_of(record) == self.incident)
            and (self.session_id is None or record.get("session_id") == self.session_id)
            and (self.tool is None or self.tool in (record.get("tool"), record.get("requested_tool")))
            and (self.decision is None or record.get("decision") == self.decision)
            and (self.reason is None or record.get("reason") == self.reason)
            and (self.since is None or parse_time(record["at"]) >= self.since)
        )

    def _is_of_keys(self, record: dict[str, Any]) -> bool:
        named = {record.get("key_id"), record.get("requested_by"), record.get("by")}
        return not named.isdisjoint(self.keys or ()) or record.get("session_id") in self.sessions

    def needles(self) -> list[bytes]:
        """Bytes that an accepted record contains, so that most others need not be parsed."""
        return [
            canonical_json(text)
            for text in (self.kind, self.session_id, self.incident, self.tool, self.decision, self.reason)
            if text is not None
        ]


def _incident_of(record: dict[str, Any]) -> str | None:
    """The incident that a call is about; the gateway writes its number as a text."""
    found = (record.get("arguments") or {}).get("incident")
    return found if isinstance(found, str) else None


@dataclass(frozen=True, slots=True)
class JournalPage:
    """Records, newest first. `next_before` is where to go on; None where the first record was reached."""

    entries: tuple[JournalEntry, ...]
    next_before: int | None


class JournalReader:
    """Reads the journal at `path`, and the segments in the folder beside a file."""

    def __init__(self, path: JournalPlace) -> None:
        self.path = path

    def read(self, after_seq: int = 0, limit: int = 100) -> list[JournalEntry]:
        """At most `limit` (up to 1 000) records with a sequence number above `after_seq`, oldest first.

        A page also ends after about 8 MB, so only an empty one means that there is no more.
        """
        limit = max(0, min(limit, MAX_PAGE))
        with open_snapshot(self.path) as snapshot:
            return list(_entries(snapshot, _page(_forwards(snapshot, after_seq, limit))))

    def last(self, limit: int) -> list[JournalEntry]:
        """The newest `limit` (up to 1 000) records, oldest first."""
        return self.search(RecordFilter(), limit)

    def sessions_of(self, keys: frozenset[str], before: int | None = None) -> frozenset[str]:
        """Sessions that these keys opened, as far as `back` looks."""
        opened = self.back(RecordFilter(kind="session", keys=keys), before, MAX_PAGE).entries
        return frozenset(str(entry.record["session_id"]) for entry in opened)

    def search(self, wanted: RecordFilter, limit: int) -> list[JournalEntry]:
        """The newest `limit` (up to 1 000) records that `wanted` accepts, oldest first.

        Looks back until it has enough, the first record, or one older than `since`.
        """
        limit = max(0, min(limit, MAX_PAGE))
        found: list[JournalEntry] = []
        needles = wanted.needles()
        with open_snapshot(self.path) as snapshot:
            rows = (row for row in _backwards(snapshot, wanted.since) if all(needle in row[3] for needle in needles))
            entries = _entries(snapshot, rows)
            while len(found) < limit and (entry := next(entries, None)) is not None:
                if wanted.since is not None and parse_time(entry.record["at"]) < wanted.since:
                    break
                if wanted.accepts(entry.record):
                    found.append(entry)
        return found[::-1]

    def back(self, wanted: RecordFilter, before: int | None = None, limit: int = 100) -> JournalPage:
        """At most `limit` (up to 1 000) records before number `before` that `wanted` accepts, newest first; from the
        newest on without one.

        It looks at 20 000 records at the most, and a page ends after about 8 MB: few or none found do not mean that
        there are no more, only `next_before` does.
        """
        limit = max(1, min(limit, MAX_PAGE))
        needles = wanted.needles()
        found: list[JournalEntry] = []
        looked_at = size = 0
        reached: int | None = None
        with open_snapshot(self.path) as snapshot:
            for row in _backwards(snapshot, wanted.since, before):
                looked_at += 1
                reached = row[0]
                if all(needle in row[3] for needle in needles):
                    [entry] = _entries(snapshot, [row])
                    if wanted.accepts(entry.record):
                        found.append(entry)
                        size += len(row[3])
                if len(found) == limit or looked_at == MAX_LOOKED_AT or size > MAX_PAGE_BYTES:
                    break
            else:
                reached = None
            first = snapshot.parts[0].first
        return JournalPage(tuple(found), None if reached is None or reached <= first else reached)

    def find(self, audit_id: str) -> list[JournalEntry]:
        """All records of one call, oldest first; empty if there are none."""
        with open_snapshot(self.path) as snapshot:
            rows = (
                row
                for part in snapshot.parts
                for row in snapshot.connection(part).execute(_SELECT_CALL, [audit_id, part.first, part.last])
            )
            return list(_entries(snapshot, rows))

    def verify(
        self, known: ChainHead | None = None, *, public_key: PublicKey | None = None, anchor: Path | None = None
    ) -> Verification:
        """Check everything that can be checked; see `verification.verify_journal`."""
        return verify_journal(self.path, known=known, public_key=public_key, anchor=anchor)


Row = tuple[int, str, str, bytes, bytes, bytes | None]


def _forwards(snapshot: Snapshot, after_seq: int, limit: int) -> Iterator[Row]:
    for part in snapshot.parts:
        if limit > 0 and part.last > after_seq:
            after = max(after_seq, part.first - 1)
            if not isinstance(part.path, Path):
                yield from _forwards_by_pages(snapshot.connection(part), after, part.last, limit)
                return
            for row in snapshot.connection(part).execute(_SELECT_PAGE, [after, part.last, limit]):
                limit -= 1
                yield row


def _backwards(snapshot: Snapshot, since: datetime | None, before: int | None = None) -> Iterator[Row]:
    for part in reversed(snapshot.parts):
        if before is not None and part.first >= before:
            continue
        last = part.last if before is None else min(part.last, before - 1)
        if since is not None and part.last_at is not None and parse_time(part.last_at) < since:
            return
        if not isinstance(part.path, Path):
            yield from _backwards_by_pages(snapshot.connection(part), part.first, last)
            continue
        for row in snapshot.connection(part).execute(_SELECT_BACKWARDS, [part.first, last]):  # noqa: UP028  # closing `yield from` early would close the cursor after its connection
            yield row


def _forwards_by_pages(connection: RecordConnection, after: int, last: int, limit: int) -> Iterator[Row]:
    """A server sends all that it is asked for, so it is asked for little, and for more if that was not enough."""
    size = LEAST_PAGE
    while limit > 0 and (rows := connection.execute(_SELECT_PAGE, [after, last, min(size, limit)]).fetchall()):
        yield from rows
        limit -= len(rows)
        after, size = rows[-1][0], min(2 * size, LARGEST_PAGE)


def _backwards_by_pages(connection: RecordConnection, first: int, last: int) -> Iterator[Row]:
    """The same from the newest on."""
    size = LEAST_PAGE
    while rows := connection.execute(f"{_SELECT_BACKWARDS} LIMIT ?", [first, last, size]).fetchall():
        yield from rows
        last, size = rows[-1][0] - 1, min(2 * size, LARGEST_PAGE)


def _page(rows: Iterable[Row]) -> Iterator[Row]:
    size = 0
    for row in rows:
        yield row
        size += len(row[3])
        if size > MAX_PAGE_BYTES:
            return


def _entries(snapshot: Snapshot, rows: Iterable[Row]) -> Iterator[JournalEntry]:
    for seq, audit_id, kind, record, stored, outcome in rows:
        try:
            if not well_typed((seq, audit_id, kind, record, stored, outcome)):
                raise TypeError("not of its type")
            status = None
            if kind == CallIntended.kind:
                outcome = outcome or _later_outcome(snapshot, seq, audit_id)
                status = OutcomeStatus.UNKNOWN if outcome is None else OutcomeStatus(json.loads(outcome)["status"])
            yield JournalEntry(seq, audit_id, kind, json.loads(record), stored, status)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DamagedJournal(
                f"Record {seq} of the journal cannot be read.",
                next_step="Run `sentinel audit verify` and restore the file from a copy.",
            ) from error


def _later_outcome(snapshot: Snapshot, seq: int, audit_id: str) -> bytes | None:
    """The outcome of a call whose two records are in different parts."""
    for part in _parts_after(snapshot, seq):
        row: tuple[bytes] | None = snapshot.connection(part).execute(_SELECT_OUTCOME, [audit_id]).fetchone()
        if row is not None:
            return row[0]
    return None


def _parts_after(snapshot: Snapshot, seq: int) -> list[RecordRange]:
    return [part for part in snapshot.parts if part.first > seq]
