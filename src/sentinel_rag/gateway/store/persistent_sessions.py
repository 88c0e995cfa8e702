"""The session that stands for a key: the one of its requests that name none, at whichever gateway of the state they
arrive. It ends after a day without such a request, and its hidden values with it.

Which session that is, is a row of the state beside the session's own; the session is one like any other, with its label
and its floor. Here is only which one it is, and until when.
"""

from __future__ import annotations

from sentinel_rag.audit import RecordConnection, StateDatabase
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.gateway.store.sessions import RECENT, TOUCH, Session, SessionStore

UNUSED = RECENT
"""Without a request for as long as that it ends: what it has seen counts no longer for its key's next one either."""

MAX_UNUSED = 1_000
"""Sessions that are told to be unused at a time."""


class _Taken(Exception):
    """Another request, maybe at another gateway, has changed which session stands for the key."""


class PersistentSessions:
    """Those of the sessions `sessions` keeps in `database`, whose tables it made."""

    def __init__(self, database: StateDatabase, sessions: SessionStore, *, clock: Clock) -> None:
        self._database = database
        self._sessions = sessions
        self._clock = clock

    async def enter(
        self, key_id: str, *, user_key_id: str | None = None, most: int | None = None
    ) -> tuple[Session, Session | None]:
        """The open session that stands for the key, with the opener that it should have; opened now if there is none.
        Then the one that stood before, which is to be ended, if it is open.

        Raises TooManySessions as `SessionStore.open` does.
        """
        while True:
            row = await self._database.look(lambda connection: _standing(connection, key_id))
            before: Session | None = None
            if row is not None:
                session_id, used_at, closed_at, opener = row
                now = self._clock()
                fits = closed_at is None and opener == user_key_id and used_at >= format_time(now - UNUSED)
                if fits and used_at < format_time(now - TOUCH):
                    fits = await self._touch(key_id, session_id, format_time(now))
                    if not fits:
                        continue
                if closed_at is None:
                    before = await self._sessions.find(session_id, key_id)
                if fits and before is not None and not before.closed:
                    return before, None
            try:
                return await self._open(key_id, user_key_id, most, None if row is None else row[0]), before
            except _Taken:
                continue

    async def unused(self) -> list[tuple[str, str]]:
        """The key and the session of those that are to be ended, since nobody used them for a day: no request takes one
        of them up again."""
        limit = format_time(self._clock() - UNUSED)
        rows = await self._database.look(
            lambda connection: connection.execute(
                f"SELECT key_id, session_id FROM standing_session WHERE used_at < ? ORDER BY used_at "  # noqa: S608  # a number
                f"LIMIT {MAX_UNUSED}",
                [limit],
            ).fetchall()
        )
        return [(key_id, session_id) for key_id, session_id in rows]

    async def _open(self, key_id: str, user_key_id: str | None, most: int | None, before: str | None) -> Session:
        at = format_time(self._clock())

        def stand(connection: RecordConnection, session_id: str) -> None:
            stands = connection.execute(
                "INSERT INTO standing_session VALUES (?1, ?2, ?3) ON CONFLICT (key_id) DO UPDATE SET "
                "session_id = excluded.session_id, used_at = excluded.used_at WHERE standing_session.session_id = ?4",
                [key_id, session_id, at, before or ""],
            ).rowcount
            if not stands:
                raise _Taken

        return await self._sessions.open(key_id, user_key_id=user_key_id, most=most, beside=stand)

    async def _touch(self, key_id: str, session_id: str, at: str) -> bool:
        """Note that it is used; False if it stands no longer."""
        touched = await self._database.run(
            lambda connection: (
                connection.execute(
                    "UPDATE standing_session SET used_at = ? WHERE key_id = ? AND session_id = ?",
                    [at, key_id, session_id],
                ).rowcount
            )
        )
        return touched == 1


def _standing(connection: RecordConnection, key_id: str) -> tuple[str, str, str | None, str | None] | None:
    row: tuple[str, str, str | None, str | None] | None = connection.execute(
        "SELECT session_id, standing_session.used_at, closed_at, user_key_id "
        "FROM standing_session LEFT JOIN session USING (session_id) WHERE standing_session.key_id = ?",
        [key_id],
    ).fetchone()
    return row
