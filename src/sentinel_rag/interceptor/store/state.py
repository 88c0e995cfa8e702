"""The Interceptor's state folder: keys, sessions and journal, opened together.

Several Interceptors may use one folder: each holds a lock of its own there, and one that starts closes the calls of
those that died. The head of the chain is read inside the transaction that writes the next record.
"""

from __future__ import annotations

import secrets
import time
import uuid
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from sentinel_rag.audit import Database, Durability, Instance, Journal, Sealing
from sentinel_rag.audit.archive import SEGMENT_RECORDS
from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.interceptor.approvals import DEFAULT_TTL_S, ApprovalStore
from sentinel_rag.interceptor.store.handles import HandleStore
from sentinel_rag.interceptor.store.key_journal import KeyJournal
from sentinel_rag.interceptor.store.keys import KeyStore
from sentinel_rag.interceptor.store.resources import ResourceLabels
from sentinel_rag.interceptor.store.session_tables import person_of
from sentinel_rag.interceptor.store.sessions import SessionStore

KEYS_FILE = "keys.sqlite"
JOURNAL_FILE = "journal.sqlite"
INSTANCES_FOLDER = "instances"


@dataclass(frozen=True, slots=True)
class State:
    """Keys, journal and sessions of one folder. Close it, or use it in a `with`."""

    keys: KeyStore
    database: Database
    journal: Journal
    sessions: SessionStore
    handles: HandleStore
    resources: ResourceLabels
    approvals: ApprovalStore
    key_journal: KeyJournal
    instance: Instance

    def __enter__(self) -> State:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.journal.close()
        self.database.close()
        self.keys.close()
        self.instance.close()


def open_state(
    folder: Path,
    *,
    durability: Durability = Durability.PROCESS,
    clock: Clock = utc_now,
    approval_ttl_s: float = DEFAULT_TTL_S,
    anchor: Path | None = None,
    segment_records: int = SEGMENT_RECORDS,
) -> State:
    """Open or create the state in `folder`; `approval_ttl_s` is how long a call waits for a person, `anchor` a second
    file for the journal's checkpoints, `segment_records` after how many records it begins a new segment.

    Raises UnavailableError if the folder or the anchor cannot be used, JournalCut if the journal lacks a record that a
    checkpoint proves.
    """
    with ExitStack() as opened:
        instance = opened.enter_context(Instance(folder / INSTANCES_FOLDER))
        keys = opened.enter_context(closing(KeyStore(folder / KEYS_FILE, clock=clock)))
        database = opened.enter_context(Database(folder / JOURNAL_FILE, durability=durability))
        journal = opened.enter_context(
            closing(
                Journal(
                    database,
                    clock=clock,
                    membership=instance,
                    sealing=Sealing.of_folder(folder, anchor=anchor),
                    segment_records=segment_records,
                )
            )
        )
        sessions = SessionStore(database, journal, clock=clock, new_id=new_audit_id)
        handles, resources = HandleStore(database), ResourceLabels(database)
        approvals = ApprovalStore(
            database, journal, clock=clock, new_id=new_approval_id, ttl_s=approval_ttl_s, person_of=person_of
        )
        key_journal = KeyJournal(keys, database, journal)
        opened.pop_all()
    return State(keys, database, journal, sessions, handles, resources, approvals, key_journal, instance)


def new_audit_id() -> str:
    """The id under which a person finds a call again: a UUID of version 7 (RFC 9562), 74 bits of it random.

    The time in front keeps the journal's index of ids in order, so that an append costs the same however long it is.
    """
    value = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    return str(uuid.UUID(int=value & ~(0xF << 76 | 0b11 << 62) | 7 << 76 | 0b10 << 62))


def new_approval_id() -> str:
    """Random from its first character: people name an approval by its beginning."""
    return str(uuid.uuid4())
