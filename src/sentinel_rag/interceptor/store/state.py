"""The Interceptor's state folder, opened as a whole by one process at a time.

Labels live in the memory of their owner, so a second owner would judge by older ones. The lock is SQLite's own on an
empty file: it works on every platform and ends with its process, kill -9 included.
"""

from __future__ import annotations

import os
import sqlite3
import uuid
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from sentinel_rag.audit import Database, Durability, Journal
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.interceptor.approvals import DEFAULT_TTL_S, ApprovalStore
from sentinel_rag.interceptor.store.handles import HandleStore
from sentinel_rag.interceptor.store.key_journal import KeyJournal
from sentinel_rag.interceptor.store.keys import KeyStore
from sentinel_rag.interceptor.store.resources import ResourceLabels
from sentinel_rag.interceptor.store.sessions import SessionStore

KEYS_FILE = "keys.sqlite"
JOURNAL_FILE = "journal.sqlite"
OWNER_FILE = "owner.lock"

OWNER_SECONDS = 6.0
"""How long to wait for an owner that is stopping."""


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
    owner: sqlite3.Connection

    def __enter__(self) -> State:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.database.close()
        self.keys.close()
        self.owner.close()


def open_state(
    folder: Path,
    *,
    durability: Durability = Durability.PROCESS,
    clock: Clock = utc_now,
    approval_ttl_s: float = DEFAULT_TTL_S,
) -> State:
    """Open or create the state in `folder`; `approval_ttl_s` is how long a call waits for a person.

    Raises UnavailableError if the folder cannot be used, or is used already.
    """
    with ExitStack() as opened:
        owner = opened.enter_context(closing(_own(folder)))
        keys = opened.enter_context(closing(KeyStore(folder / KEYS_FILE, clock=clock)))
        database = opened.enter_context(Database(folder / JOURNAL_FILE, durability=durability))
        journal = Journal(database, clock=clock)
        sessions = SessionStore(database, journal, clock=clock, new_id=new_audit_id)
        handles, resources = HandleStore(database), ResourceLabels(database)
        approvals = ApprovalStore(database, journal, clock=clock, new_id=new_audit_id, ttl_s=approval_ttl_s)
        key_journal = KeyJournal(keys, database, journal)
        opened.pop_all()
    return State(keys, database, journal, sessions, handles, resources, approvals, key_journal, owner)


def _own(folder: Path) -> sqlite3.Connection:
    """Hold the folder until the connection is closed."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(folder / OWNER_FILE, os.O_RDWR | os.O_CREAT, 0o600))
        connection = sqlite3.connect(
            folder / OWNER_FILE, isolation_level=None, check_same_thread=False, timeout=OWNER_SECONDS
        )
        with ExitStack() as opened:
            opened.enter_context(closing(connection))
            connection.execute("BEGIN EXCLUSIVE")
            opened.pop_all()
    except (OSError, sqlite3.Error) as error:
        if "locked" in str(error):
            raise UnavailableError(
                "Another Interceptor uses this state folder.",
                next_step="Stop it (sentinel status shows it), or set SENTINEL_HOME to another folder.",
            ) from error
        raise UnavailableError(
            f"The state folder {folder.name} cannot be used: {error}.",
            next_step="Check its permissions, or set SENTINEL_HOME to another folder.",
        ) from error
    return connection


def new_audit_id() -> str:
    """The id under which a person finds a call again."""
    return str(uuid.uuid4())
