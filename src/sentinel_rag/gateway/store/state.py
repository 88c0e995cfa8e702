"""The gateway's state: keys, sessions and journal, opened together, from a folder or from PostgreSQL.

Several gateways may use one folder, or one schema: each holds a lock of its own there, and one that starts closes the
calls of those that died. Every change of a key is put into the journal once, also those made while no gateway ran: how
far the journal has come is written in the transaction of the record itself.
"""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import anyio
import anyio.to_thread

from sentinel_rag.audit import (
    Database,
    Durability,
    Instance,
    Journal,
    PostgresPlace,
    RecordConnection,
    Sealing,
    StateDatabase,
)
from sentinel_rag.audit.journal import SEGMENT_RECORDS, Membership
from sentinel_rag.contracts.closing import Closing
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.gateway.approvals import DEFAULT_TTL_S, ApprovalStore
from sentinel_rag.gateway.store.handles import HandleStore
from sentinel_rag.gateway.store.keys import KeyStore
from sentinel_rag.gateway.store.session_tables import person_of
from sentinel_rag.gateway.store.sessions import REMEMBERED, PersistentSessions, ResourceLabels, SessionStore


def _tables(connection: RecordConnection) -> None:
    connection.execute(
        "CREATE TABLE key_journal (store_id TEXT PRIMARY KEY, seen INTEGER NOT NULL) STRICT, WITHOUT ROWID"
    )


MIGRATIONS = (_tables,)


class KeyJournal:
    """What is new in `keys` goes into `journal`, whose file is `database`."""

    def __init__(self, keys: KeyStore, database: StateDatabase, journal: Journal) -> None:
        self._keys = keys
        self._journal = journal
        self._one_at_a_time = anyio.Lock()
        database.migrate("keys", MIGRATIONS)
        self._seen: int = database.run_now(self._begin)

    async def catch_up(self) -> None:
        """Record what is new. Raises UnavailableError if it cannot be recorded; it stays new then."""
        if self._keys.last_change <= self._seen:
            return
        async with self._one_at_a_time:
            while changes := await anyio.to_thread.run_sync(self._keys.changes, self._seen):
                for number, event in changes:
                    with suppress(_Recorded):
                        await self._journal.append(event, alongside=self._claim(number))
                    self._seen = number

    def _begin(self, connection: RecordConnection) -> int:
        connection.execute("INSERT INTO key_journal VALUES (?, 0) ON CONFLICT DO NOTHING", [self._keys.store_id])
        row = connection.execute("SELECT seen FROM key_journal WHERE store_id = ?", [self._keys.store_id]).fetchone()
        return int(row[0])

    def _claim(self, number: int) -> Callable[[RecordConnection], object]:
        def work(connection: RecordConnection) -> None:
            claimed = connection.execute(
                "UPDATE key_journal SET seen = ? WHERE store_id = ? AND seen < ?", [number, self._keys.store_id, number]
            ).rowcount
            if not claimed:
                raise _Recorded

        return work


class _Recorded(Exception):
    """Another gateway has recorded this change."""


KEYS_FILE = "keys.sqlite"
JOURNAL_FILE = "journal.sqlite"
INSTANCES_FOLDER = "instances"


class Member(Membership, Protocol):
    """One of those who use the state; left at the end."""

    def close(self) -> None: ...


class ClosedDatabase(StateDatabase, Protocol):
    """A database that its owner closes."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class State(Closing):
    """Keys, journal and sessions of one folder or schema. Close it, or use it in a `with`."""

    keys: KeyStore
    database: ClosedDatabase
    journal: Journal
    sessions: SessionStore
    standing: PersistentSessions
    handles: HandleStore
    resources: ResourceLabels
    approvals: ApprovalStore
    key_journal: KeyJournal
    instance: Member
    clock: Clock

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
    memory: timedelta = REMEMBERED,
    anchor: Path | None = None,
    segment_records: int = SEGMENT_RECORDS,
    postgres: PostgresPlace | None = None,
) -> State:
    """Open or create the state in `folder`, or in `postgres` with its secrets in that folder; `approval_ttl_s` is how
    long a call waits for a person, `memory` how long an agent may remember what it was shown, `anchor` a second file
    for the journal's checkpoints, `segment_records` after how many records a file begins a new segment.

    Raises UnavailableError if the folder or the anchor cannot be used, JournalCut if the journal lacks a record that a
    checkpoint proves.
    """
    with ExitStack() as opened:
        database, instance, keys = _open(folder, durability, clock, postgres, opened)
        journal = opened.enter_context(
            closing(
                Journal(
                    database,
                    clock=clock,
                    membership=instance,
                    sealing=Sealing.of(database.place, anchor=anchor),
                    segment_records=segment_records,
                )
            )
        )
        sessions = SessionStore(database, journal, clock=clock, new_id=new_audit_id, memory=memory)
        standing = PersistentSessions(database, sessions, clock=clock)
        handles, resources = HandleStore(database), ResourceLabels(database)
        approvals = ApprovalStore(
            database, journal, clock=clock, new_id=new_approval_id, ttl_s=approval_ttl_s, person_of=person_of
        )
        key_journal = KeyJournal(keys, database, journal)
        opened.pop_all()
    return State(
        keys, database, journal, sessions, standing, handles, resources, approvals, key_journal, instance, clock
    )


def _open(
    folder: Path, durability: Durability, clock: Clock, postgres: PostgresPlace | None, opened: ExitStack
) -> tuple[ClosedDatabase, Member, KeyStore]:
    instance: Member
    database: ClosedDatabase
    if postgres is None:
        instance = opened.enter_context(closing(Instance(folder / INSTANCES_FOLDER)))
        keys = opened.enter_context(closing(KeyStore(folder / KEYS_FILE, clock=clock)))
        database = opened.enter_context(closing(Database(folder / JOURNAL_FILE, durability=durability)))
        return database, instance, keys
    if (folder / JOURNAL_FILE).exists():
        raise UsageError(
            "This home has its state in files, and SENTINEL_DATABASE_URL names a database: nobody could tell which of "
            "two journals holds what.",
            next_step=f"Move it: sentinel database move. Or put {JOURNAL_FILE} and {KEYS_FILE} away to begin anew.",
        )
    with needs_postgres():
        from sentinel_rag.gateway.store.postgres_keys import PostgresKeys
        from sentinel_rag.storage.postgres import PostgresDatabase, PostgresInstance
    keys = opened.enter_context(closing(KeyStore(PostgresKeys(postgres, serving=True), clock=clock)))
    database = opened.enter_context(closing(PostgresDatabase(postgres)))
    instance = opened.enter_context(closing(PostgresInstance(database)))
    return database, instance, keys


@contextmanager
def needs_postgres() -> Iterator[None]:
    """Around the import of what speaks to PostgreSQL: if its library is not installed, says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "psycopg":
            raise
        raise UnavailableError(
            "The state of the gateway in PostgreSQL needs the package psycopg, which is not installed.",
            next_step="Run: pip install 'sentinel-rag[postgres]'",
        ) from None


def new_audit_id() -> str:
    """The id under which a person finds a call again: a UUID of version 7 (RFC 9562), 74 bits of it random.

    The time in front keeps the journal's index of ids in order, so that an append costs the same however long it is.
    """
    value = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    return str(uuid.UUID(int=value & ~(0xF << 76 | 0b11 << 62) | 7 << 76 | 0b10 << 62))


def new_approval_id() -> str:
    """Random from its first character: people name an approval by its beginning."""
    return str(uuid.uuid4())
