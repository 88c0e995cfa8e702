"""The Interceptor's state folder, opened as a whole."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

from sentinel_rag.audit import Database, Durability, Journal
from sentinel_rag.audit.journal import utc_now
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.interceptor.store.keys import KeyStore
from sentinel_rag.interceptor.store.sessions import SessionStore

KEYS_FILE = "keys.sqlite"
JOURNAL_FILE = "journal.sqlite"


@dataclass(frozen=True, slots=True)
class State:
    """Keys, journal and sessions of one folder. Close it, or use it in a `with`."""

    keys: KeyStore
    database: Database
    journal: Journal
    sessions: SessionStore

    def __enter__(self) -> State:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.database.close()
        self.keys.close()


def open_state(folder: Path, *, durability: Durability = Durability.PROCESS, clock: Clock = utc_now) -> State:
    """Open or create the state in `folder`. Raises UnavailableError if it cannot be used."""
    keys = KeyStore(folder / KEYS_FILE)
    database = Database(folder / JOURNAL_FILE, durability=durability)
    try:
        journal = Journal(database, clock=clock)
        sessions = SessionStore(database, journal, clock=clock, new_id=new_audit_id)
    except BaseException:
        database.close()
        keys.close()
        raise
    return State(keys, database, journal, sessions)


def new_audit_id() -> str:
    """The id under which a person finds a call again."""
    return str(uuid.uuid4())
