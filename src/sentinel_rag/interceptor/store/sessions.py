"""Sessions: which key opened each, and the context label, the join of everything revealed in it.

A context label only rises. It rises in memory before anything is awaited, and on disk in the transaction of the intent
record, so that no parallel call is judged by the lower one.
"""

from __future__ import annotations

import secrets
import sqlite3
import weakref
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress

from sentinel_rag.audit import Database, Journal, SessionChanged
from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.contracts.labels import Integrity, Label, Sensitivity
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.query_results import format_time

MAX_REMEMBERED = 10_000
"""Sessions kept in memory; others are read again when they are used."""

Work = Callable[[sqlite3.Connection], object]


class SessionClosed(SentinelError):
    """The session was closed by its key; it does not come back."""

    code = "conflict"


class Session:
    """An open session of one key. There is one object for one session in this process, however many calls hold it."""

    __slots__ = ("__weakref__", "closed", "context", "key_id", "session_id")

    def __init__(self, session_id: str, key_id: str, context: Label, closed: bool) -> None:
        self.session_id = session_id
        self.key_id = key_id
        self.context = context
        self.closed = closed

    def raise_to(self, label: Label) -> Work:
        """Raise the context label now, and return the write that makes it last."""
        self.context = self.context.join(label)
        raised, session_id = self.context, self.session_id

        def write(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE session SET sensitivity = max(sensitivity, ?), integrity = max(integrity, ?) "
                "WHERE session_id = ?",
                [raised.sensitivity.value, raised.integrity.value, session_id],
            )

        return write


def _tables(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE session (session_id TEXT PRIMARY KEY, key_id TEXT NOT NULL, opened_at TEXT NOT NULL, "
        "closed_at TEXT, sensitivity INTEGER NOT NULL, integrity INTEGER NOT NULL) STRICT, WITHOUT ROWID"
    )
    connection.execute("CREATE INDEX session_key ON session (key_id, opened_at)")


class SessionStore:
    """The sessions in `database`; each opening and closing is a record of `journal`."""

    def __init__(self, database: Database, journal: Journal, *, clock: Clock, new_id: Callable[[], str]) -> None:
        self._database = database
        self._journal = journal
        self._clock = clock
        self._new_id = new_id
        self._live: weakref.WeakValueDictionary[str, Session] = weakref.WeakValueDictionary()
        self._recent: OrderedDict[str, Session] = OrderedDict()
        database.migrate("sessions", (_tables,))

    async def open(self, key_id: str) -> Session:
        """A new session with an id that nobody can guess."""
        session = await self.claim(secrets.token_urlsafe(24), key_id)
        assert session is not None
        return session

    async def claim(self, session_id: str, key_id: str) -> Session | None:
        """The session with that id, opened now if there is none; None if another key opened it.

        Raises SessionClosed if this key has closed it.
        """
        session = await self._find(session_id)
        if session is None:
            with suppress(sqlite3.IntegrityError):  # another call opened it meanwhile
                await self._insert(session_id, key_id)
            session = await self._find(session_id)
            assert session is not None
        if session.key_id != key_id:
            return None
        if session.closed:
            raise SessionClosed("This session is closed.", next_step="Open a new one with POST /v1/sessions.")
        return session

    async def close(self, session_id: str, key_id: str) -> bool:
        """Close a session; False if this key has none with that id. Closing twice is once."""
        session = await self._find(session_id)
        if session is None or session.key_id != key_id:
            return False
        if not session.closed:
            session.closed = True
            await self._journal.append(
                self._change(session_id, key_id, "closed"),
                alongside=lambda connection: connection.execute(
                    "UPDATE session SET closed_at = ? WHERE session_id = ?", [format_time(self._clock()), session_id]
                ),
            )
        return True

    async def _insert(self, session_id: str, key_id: str) -> None:
        await self._journal.append(
            self._change(session_id, key_id, "opened"),
            alongside=lambda connection: connection.execute(
                "INSERT INTO session VALUES (?, ?, ?, NULL, 0, 0)", [session_id, key_id, format_time(self._clock())]
            ),
        )

    async def _find(self, session_id: str) -> Session | None:
        session = self._live.get(session_id)
        if session is None:
            row = await self._database.run(
                lambda connection: connection.execute(
                    "SELECT key_id, closed_at, sensitivity, integrity FROM session WHERE session_id = ?", [session_id]
                ).fetchone()
            )
            if row is None:
                return None
            loaded = Session(session_id, row[0], Label(Sensitivity(row[2]), Integrity(row[3])), row[1] is not None)
            session = self._live.setdefault(session_id, loaded)
        self._recent[session_id] = session
        self._recent.move_to_end(session_id)
        if len(self._recent) > MAX_REMEMBERED:
            self._recent.popitem(last=False)
        return session

    def _change(self, session_id: str, key_id: str, change: str) -> SessionChanged:
        return SessionChanged(audit_id=self._new_id(), key_id=key_id, session_id=session_id, change=change)
