"""The session that stands for a key, and the labels of what calls wrote (TAINT-6).

The session of requests that name none ends after a day without one, and its hidden values with it. A resource is a text
such as `incident/55`; `incident/*` is the join over all below it. Labels only rise, and none is kept in memory; a call
that was decided by a label which has risen since is refused in its transaction (`ContextMoved`).
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import quote

from sentinel_rag.audit import RecordConnection, StateDatabase, Work
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.labels import BOTTOM, Integrity, Label, Sensitivity
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.gateway.store.sessions import RECENT, TOUCH, ContextMoved, Session, SessionStore

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


_ONE = "SELECT sensitivity, integrity FROM resource_label WHERE resource = ?"
_RAISE = (
    "UPDATE resource_label SET sensitivity = CASE WHEN sensitivity < ? THEN ? ELSE sensitivity END, "
    "integrity = CASE WHEN integrity < ? THEN ? ELSE integrity END WHERE resource = ?"
)
MAX_TERMS = 64
"""Names in one statement; SQLite takes 500."""


class ResourceLabels:
    """The labels in `database`, whose tables the session store made."""

    def __init__(self, database: StateDatabase) -> None:
        self._database = database

    async def of(self, resources: Collection[str]) -> Label:
        """The join of what is stored with them."""
        if not resources:
            return BOTTOM
        return await self._database.look(lambda connection: _stored(connection, resources))

    def confirm(self, resources: Collection[str], decided: Label) -> Work[object]:
        """The check, in the transaction of an intent, that the file knows no more than the call was decided by."""

        def check(connection: RecordConnection) -> None:
            if not _stored(connection, resources).flows_to(decided):
                raise ContextMoved

        return check

    def raise_to(self, resources: Collection[str], label: Label) -> Work[object]:
        """The write that raises the labels of what a call writes, and of all that they are part of."""
        names = sorted({name for resource in resources for name in _with_parents(resource)})

        def write(connection: RecordConnection) -> None:
            high, low = label.sensitivity.value, label.integrity.value
            for name in names:
                if not connection.execute(_RAISE, [high, high, low, low, name]).rowcount:
                    connection.execute("INSERT INTO resource_label VALUES (?, ?, ?)", [name, high, low])

        return write


def resources_of(templates: Collection[str], arguments: JsonObject) -> list[str]:
    """The resources that a call speaks about. An argument that is left out stands for all of that place."""
    found: list[str] = []
    for template in templates:
        parts: list[str] = []
        for part in template.split("/"):
            if part.startswith("{"):
                value = arguments.get(part[1:-1])
                if value is None:
                    parts.append("*")
                    break
                part = quote(str(value).strip().casefold(), safe="")
            parts.append(part)
        found.append("/".join(parts))
    return found


def _with_parents(resource: str) -> list[str]:
    parts = resource.split("/")
    return [resource, *("/".join([*parts[:length], "*"]) for length in range(1, len(parts)))]


def _stored(connection: RecordConnection, resources: Collection[str]) -> Label:
    """What a reader of them hears: their own labels, those of their parts, and of what they are part of."""
    names: list[str] = []
    for resource in resources:
        parts = resource.removesuffix("/*").split("/")
        names += ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]
        names.append(f"{names[-1]}/*")
    label = BOTTOM
    for start in range(0, len(names), MAX_TERMS):
        asked = names[start : start + MAX_TERMS]
        for sensitivity, integrity in connection.execute(" UNION ALL ".join([_ONE] * len(asked)), asked).fetchall():
            label = label.join(Label(Sensitivity(sensitivity), Integrity(integrity)))
    return label
