"""Sessions: which key opened each, and the context label, the join of everything revealed in it.

A context label only rises. It rises in memory before anything is awaited, and on disk in the transaction of the intent
record, so that no parallel call is judged by the lower one. Several gateway processes may share the file: each call is
decided by what this process knows, and that transaction refuses it (`ContextMoved`) where the file knows more.

A session that an agent opens by itself starts at the floor, the join of all that its key may remember, and
rises with every other session of the key, so that neither a new one nor one kept ready launders anything. One that a
signed-in person opens for the agent starts clean; it rises by what is revealed in it, and by what is revealed meanwhile
in a session that the agent opened by itself, so that no read is taken out of it. What is revealed in another session of
a person does not raise it.

The session that stands for a key, and the labels of what calls wrote (TAINT-6).

The session of requests that name none ends after a day without one, and its hidden values with it. A resource is a text
such as `incident/55`; `incident/*` is the join over all below it. Labels only rise, and none is kept in memory; a call
that was decided by a label which has risen since is refused in its transaction (`ContextMoved`).
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from urllib.parse import quote

from sentinel_rag.audit import Journal, RecordConnection, SessionChanged, StateDatabase, Work
from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.labels import BOTTOM, Integrity, Label, Sensitivity, join_all
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.gateway.approvals.binding import Raised
from sentinel_rag.gateway.flow.named_values import NamedValue
from sentinel_rag.gateway.policy.model import AgentMemory, Remembers
from sentinel_rag.gateway.store.session_tables import (
    MIGRATIONS,
    RANK,
    Opener,
    note_use,
    raise_below,
    raise_one,
    remembered_since,
)
from sentinel_rag.telemetry import new_session_id

MAX_REMEMBERED = 10_000
"""Sessions kept in memory; others are read again when they are used."""

RECENT = timedelta(hours=24)
"""How long a session without a call is one that its opener still uses."""

REMEMBERED = timedelta(days=90)
"""How long an agent may remember what it was shown, where nobody says so: as long as conversations are kept."""

TOUCH = timedelta(minutes=1)
"""How exactly the time of a session's last call is kept."""

ALL = Remembers()
"""An agent of which nobody says anything."""

MAX_WORDS = 4_000
"""Characters of what a person said last that are kept to be shown."""

MAX_RAISES = 500
"""Newest raises of other sessions that are looked through for those that are told."""

MAX_NAMED = 2_000
"""Values that the words of one session can name."""

READ_ALREADY = "The session has read something already; a plan is committed to before."


class SessionClosed(SentinelError):
    """The session was closed by its key; it does not come back."""

    code = "conflict"


class TooManySessions(SentinelError):
    """The opener has had as many sessions of this key within `RECENT` as it may."""

    code = "too_many_sessions"


class PlanRefused(Exception):
    """The session does not take this plan; the message says why."""


class ContextMoved(Exception):
    """The file knows more of the session than this call was decided by: read it again and decide again."""


class Session:
    """An open session of one key. There is one object for one session in this process, however many calls hold it."""

    __slots__ = (
        "__weakref__",
        "_of_key",
        "closed",
        "context",
        "key_id",
        "named",
        "session_id",
        "user_key_id",
    )

    def __init__(self, session_id: str, key_id: str, user_key_id: str | None, of_key: _OfKey | None = None) -> None:
        self.session_id = session_id
        self.key_id = key_id
        self.user_key_id = user_key_id
        self._of_key = of_key or _OfKey()
        self._of_key.add(self)
        self.context = BOTTOM
        self.closed = False
        self.named: dict[NamedValue, str] = {}

    def use(self, now: datetime, at_least: timedelta = timedelta(0)) -> Work[object]:
        """The write that notes that the session is in use: its agent remembers it, and all else that it knows, on from
        here. `at_least` is the policy's word for how long."""
        session_id, key_id = self.session_id, self.key_id
        since, stale = format_time(now - max(self._of_key.memory, at_least)), format_time(now - TOUCH)

        def write(connection: RecordConnection) -> None:
            # Asked of the file: what this process remembers may be of a write that was undone.
            used = "UPDATE session SET used_at = ? WHERE session_id = ? AND used_at < ?"
            connection.execute(used, [format_time(now), session_id, stale])
            note_use(connection, key_id, format_time(now), since=since, stale=stale)

        return write

    def raise_to(
        self, label: Label, *, audit_id: str, tool: str, now: datetime, at_least: timedelta = timedelta(0)
    ) -> Work[object]:
        """Raise the context label now, here and in the sessions that rise with this one, and return the write that
        makes it last, and notes the `use`. The write raises ContextMoved, and changes nothing, if the context was
        higher in the file than here, or the session is closed there."""
        decided = self.context
        raised = self.context = decided.join(label)
        if raised != decided:
            for other in self._of_key.opened_by_agent:
                other.context = other.context.join(raised)
        by_agent = self.user_key_id is None and label != BOTTOM
        if by_agent:
            self._of_key.raise_persons(label)
        session_id, key_id, use = self.session_id, self.key_id, self.use(now, at_least)

        def write(connection: RecordConnection) -> None:
            row = connection.execute(
                "SELECT sensitivity, integrity, closed_at FROM session WHERE session_id = ?", [session_id]
            ).fetchone()
            stored = _label(row[0], row[1])
            if not stored.flows_to(decided) or row[2] is not None:
                raise ContextMoved
            cause = (audit_id, tool, now)
            if raised != stored:
                raise_one(connection, session_id, raised, cause)
                raise_below(connection, Opener.AGENT, key_id, raised, cause)
            if by_agent:
                # Also where nothing new is revealed here: a person may have opened a clean session since.
                raise_below(connection, Opener.PERSON, key_id, label, cause)
            use(connection)

        return write

    def name(self, values: Iterable[NamedValue], by: str) -> tuple[list[NamedValue], Work[object]]:
        """Note what the user's words name, or an endorsement by that name derives from them; which values are new,
        and the write that makes it last."""
        fresh = [value for value in values if value not in self.named][: max(0, MAX_NAMED - len(self.named))]
        self.named.update(dict.fromkeys(fresh, by))
        session_id = self.session_id

        def write(connection: RecordConnection) -> None:
            connection.executemany(
                "INSERT INTO named_value VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                [(session_id, str(value.kind), value.text, by) for value in fresh],
            )

        return fresh, write

    def unname(self, values: Iterable[NamedValue]) -> None:
        """Take back what `name` noted, since its write failed: nothing is named that no record says, and the next time
        is the first again. What the file says after all is read from there."""
        for value in values:
            self.named.pop(value, None)

    def commit(self, plan: Sequence[NamedValue], by: str) -> Work[object]:
        """Note a plan, all of it, and return the write that makes it last. Raises PlanRefused, as the write does, where
        something was read already, there is a plan, or no room for all."""
        if self.context != BOTTOM:
            raise PlanRefused(READ_ALREADY)
        if by in self.named.values():
            raise PlanRefused("The session has a plan already; open another one for another plan.")
        if len(self.named) + len(plan) > MAX_NAMED:
            raise PlanRefused("The session names too much for all of the plan; open another one for it.")
        self.named.update(dict.fromkeys(plan, by))
        session_id = self.session_id

        def write(connection: RecordConnection) -> None:
            levels = connection.execute(
                "SELECT sensitivity, integrity FROM session WHERE session_id = ?", [session_id]
            ).fetchone()
            if _label(*levels) != BOTTOM:
                raise PlanRefused(READ_ALREADY)
            taken = connection.execute(
                "SELECT 1 FROM named_value WHERE session_id = ? AND source = ? LIMIT 1", [session_id, by]
            ).fetchone()
            if taken is not None:
                raise PlanRefused("The session has a plan already; open another one for another plan.")
            connection.executemany(
                "INSERT INTO named_value VALUES (?, ?, ?, ?)",
                [(session_id, str(value.kind), value.text, by) for value in plan],
            )

        return write

    def pass_once(self, step: NamedValue, by: str) -> Work[object]:
        """Note that a step of the session's plan, or a named value, passes now, and return the write that makes it
        last. Raises ContextMoved, as the write does, where it has passed already."""
        if step in self.named:
            raise ContextMoved
        self.named[step] = by
        session_id = self.session_id

        def write(connection: RecordConnection) -> None:
            passed = connection.execute(
                "INSERT INTO named_value VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                [session_id, str(step.kind), step.text, by],
            ).rowcount
            if not passed:
                raise ContextMoved

        return write


class _Opened(Exception):
    """There is a session with this id already."""


class _ClosedAlready(Exception):
    """The session is closed in the file."""


class _OfKey:
    """The sessions of one key in this process, by who opened them."""

    __slots__ = ("__weakref__", "_persons_have", "memory", "opened_by_agent", "opened_by_person")

    def __init__(self, memory: timedelta = REMEMBERED) -> None:
        self.memory = memory
        self.opened_by_agent: weakref.WeakSet[Session] = weakref.WeakSet()
        self.opened_by_person: weakref.WeakSet[Session] = weakref.WeakSet()
        self._persons_have = BOTTOM

    def add(self, session: Session) -> None:
        if session.user_key_id is None:
            self.opened_by_agent.add(session)
        else:
            self.opened_by_person.add(session)
            self._persons_have = BOTTOM

    def raise_persons(self, label: Label) -> None:
        """Raise the sessions that persons opened; where all have that label already, none is looked at."""
        if not label.flows_to(self._persons_have):
            for each in self.opened_by_person:
                each.context = each.context.join(label)
            self._persons_have = self._persons_have.join(label)


class SessionStore:
    """The sessions in `database`; each opening and closing is a record of `journal`. What an agent was shown in a
    session counts as long as anything that it kept may live: `memory`, or longer where a policy says so."""

    def __init__(
        self,
        database: StateDatabase,
        journal: Journal,
        *,
        clock: Clock,
        new_id: Callable[[], str],
        memory: timedelta = REMEMBERED,
    ) -> None:
        self._memory = max(memory, RECENT)
        self._database = database
        self._journal = journal
        self._clock = clock
        self._new_id = new_id
        self._live: weakref.WeakValueDictionary[str, Session] = weakref.WeakValueDictionary()
        self._keys: weakref.WeakValueDictionary[str, _OfKey] = weakref.WeakValueDictionary()
        self._recent: OrderedDict[str, Session] = OrderedDict()
        database.migrate("sessions", MIGRATIONS)

    async def open(
        self,
        key_id: str,
        *,
        user_key_id: str | None = None,
        most: int | None = None,
        beside: Callable[[RecordConnection, str], object] = lambda _, __: None,
    ) -> Session:
        """A new session of `key_id` with an id that nobody can guess; clean if a person's key opens it. The id is hex,
        since one that began with a dash could not be an option's value on a command line. `beside` writes in the
        transaction that opens it; what it raises leaves none.

        Raises TooManySessions as `claim` does.
        """
        session_id = new_session_id()
        await self._insert(session_id, key_id, user_key_id, most, beside)
        session = await self._load(session_id)
        assert session is not None
        self._remember(session)
        return session

    async def claim(
        self, session_id: str, key_id: str, *, user_key_id: str | None = None, most: int | None = None
    ) -> Session | None:
        """The session with that id, opened now if there is none; None if another key opened it.

        Raises SessionClosed if this key has closed it, and TooManySessions instead of opening one more than `most`.
        """
        session = self._live.get(session_id) or await self._load(session_id)
        if session is None:
            with suppress(_Opened):  # by another call meanwhile
                await self._insert(session_id, key_id, user_key_id, most)
            session = await self._load(session_id)
            assert session is not None
        self._remember(session)
        if session.key_id != key_id:
            return None
        if session.closed:
            raise SessionClosed("This session is closed.", next_step="Open a new one with POST /v1/sessions.")
        return session

    async def find(self, session_id: str, key_id: str) -> Session | None:
        """The session with that id, if this key opened it or speaks for the person who did."""
        session = self._live.get(session_id) or await self._load(session_id)
        return session if session is not None and key_id in (session.key_id, session.user_key_id) else None

    async def refresh(self, session: Session) -> bool:
        """Take over what other gateway processes have written of the session; whether there was anything."""
        known = (session.context, session.closed, len(session.named))
        await self._load(session.session_id)
        return known != (session.context, session.closed, len(session.named))

    async def say(self, session: Session, words: str, at_least: timedelta = timedelta(0)) -> None:
        """Keep what the person said last, as whoever decides about a call of the session is shown it. A conversation in
        which somebody speaks is in use: what its agent was shown is remembered on, whether or not a call runs."""
        kept = words if len(words) <= MAX_WORDS else f"{words[:MAX_WORDS]} ..."
        use = session.use(self._clock(), at_least)

        def write(connection: RecordConnection) -> None:
            connection.execute("UPDATE session SET words = ? WHERE session_id = ?", [kept, session.session_id])
            use(connection)

        await self._database.run(write)

    async def words(self, session: Session) -> str:
        """What the person said last in the session; empty if nobody did."""
        row = await self._database.look(
            lambda connection: connection.execute(
                "SELECT words FROM session WHERE session_id = ?", [session.session_id]
            ).fetchone()
        )
        return "" if row is None else str(row[0])

    async def raises(self, session: Session, limit: int = 20) -> list[Raised]:
        """The calls that raised the context label, oldest first."""
        rows = await self._database.run(
            lambda connection: connection.execute(
                "SELECT audit_id, tool, sensitivity, integrity, at FROM session_raise WHERE session_id = ? "
                "ORDER BY rowid LIMIT ?",
                [session.session_id, limit],
            ).fetchall()
        )
        return [Raised(audit_id, tool, _label(high, low), at) for audit_id, tool, high, low, at in rows]

    async def seen_elsewhere(self, session: Session, remembers: Remembers) -> Label:
        """The join of what the agent was shown in all the sessions that it may remember in this one."""
        return await self._database.look(self._memory_of(session, remembers))

    def confirm_seen(self, session: Session, remembers: Remembers, decided: Label) -> Work[object]:
        """The check, in the transaction of an intent, that the file knows of no more than the call was decided by."""
        look = self._memory_of(session, remembers)

        def check(connection: RecordConnection) -> None:
            if not look(connection).flows_to(decided):
                raise ContextMoved

        return check

    async def raises_elsewhere(self, session: Session, remembers: Remembers, limit: int = 5) -> list[Raised]:
        """Calls in other sessions that raised what the agent may remember in this one, oldest first: of each tool and
        label the newest, of many the highest."""
        if remembers.memory is AgentMemory.CONVERSATION:
            return []
        person = " AND (user_key_id IS NULL OR user_key_id = ?4)" if remembers.memory is AgentMemory.PERSON else ""
        key_id, since = session.key_id, self._since(remembers)
        more = [session.session_id, session.user_key_id] if person else [session.session_id]
        rows = await self._database.run(
            lambda connection: connection.execute(
                "SELECT audit_id, tool, session_raise.sensitivity, session_raise.integrity, at FROM session_raise "  # noqa: S608  # constants
                f"JOIN session USING (session_id) WHERE key_id = ?1 AND used_at >= ?2 AND session_id <> ?3{person} "
                f"ORDER BY at DESC LIMIT {MAX_RAISES}",
                [key_id, remembered_since(connection, key_id, since), *more],
            ).fetchall()
        )
        newest: dict[tuple[str, int, int], Raised] = {}
        for audit_id, tool, high, low, at in rows:
            newest.setdefault((tool, high, low), Raised(audit_id, tool, _label(high, low), at))
        highest = sorted(newest, key=lambda each: (each[1], each[2]), reverse=True)[:limit]
        return sorted((newest[each] for each in highest), key=lambda each: each.at)

    def _since(self, remembers: Remembers = ALL) -> str:
        """When a session must have been used last for an agent to remember it, if it has not repeated it since."""
        return format_time(self._clock() - max(self._memory, remembers.at_least))

    def _memory_of(self, session: Session, remembers: Remembers) -> Callable[[RecordConnection], Label]:
        match remembers.memory:
            case AgentMemory.CONVERSATION:
                return lambda _: BOTTOM
            case AgentMemory.PERSON if session.user_key_id is not None:
                return partial(_seen_for, session.key_id, session.user_key_id, self._since(remembers))
            case _:
                return partial(_floor, session.key_id, self._since(remembers))

    async def close(self, session_id: str, key_id: str) -> bool:
        """Close a session, and with it its handles; False if this key has none with that id. Closing twice is once."""
        session = await self.find(session_id, key_id)
        if session is None:
            return False
        if not session.closed:
            session.closed = True
            now = format_time(self._clock())

            def write(connection: RecordConnection) -> None:
                closed = connection.execute(
                    "UPDATE session SET closed_at = ?, hidden_bytes = 0 WHERE session_id = ? AND closed_at IS NULL",
                    [now, session_id],
                ).rowcount
                if not closed:
                    raise _ClosedAlready
                connection.execute("DELETE FROM handle WHERE session_id = ?", [session_id])
                connection.execute(
                    "DELETE FROM standing_session WHERE key_id = ? AND session_id = ?", [session.key_id, session_id]
                )

            try:
                with suppress(_ClosedAlready):  # by another gateway, which has it on record
                    change = self._change(session_id, key_id, "closed", session.context)
                    await self._journal.append(change, alongside=write)
            except SentinelError:
                session.closed = False  # nothing was written
                raise
        return True

    async def _insert(
        self,
        session_id: str,
        key_id: str,
        user_key_id: str | None,
        most: int | None,
        beside: Callable[[RecordConnection, str], object] = lambda _, __: None,
    ) -> None:
        now = self._clock()
        if most is not None and await self._recent_sessions(key_id, user_key_id, now) >= most:
            raise TooManySessions(
                f"This key has had {most} sessions within a day.", next_step="Go on in one of them, or wait."
            )
        opener = user_key_id or key_id
        since = self._since()
        while True:
            floor = BOTTOM if user_key_id is not None else await self._database.look(partial(_floor, key_id, since))

            def write(connection: RecordConnection, floor: Label = floor) -> None:
                _insert((session_id, key_id, user_key_id), floor, since, now, connection)
                beside(connection, session_id)

            with suppress(ContextMoved):  # another session of the key rose in between
                await self._journal.append(self._change(session_id, opener, "opened", floor), alongside=write)
                return

    async def _recent_sessions(self, key_id: str, user_key_id: str | None, now: datetime) -> int:
        """How many the same opener has had; an agent that opens many takes no room from its person."""
        opener = "IS NULL" if user_key_id is None else "= ?3"
        statement = f"SELECT count(*) FROM session WHERE key_id = ?1 AND used_at >= ?2 AND user_key_id {opener}"  # noqa: S608  # one of two constants
        values = [key_id, format_time(now - RECENT), *filter(None, [user_key_id])]
        row = await self._database.look(lambda connection: connection.execute(statement, values).fetchone())
        return int(row[0])

    async def _load(self, session_id: str) -> Session | None:
        """The session as the file has it, in the one object of this process; None if there is none."""
        row, named = await self._database.run(lambda connection: _read(connection, session_id))
        if row is None:
            return None
        key_id, user_key_id, closed_at, sensitivity, integrity = row
        session = self._live.get(session_id)
        if session is None:
            session = Session(session_id, key_id, user_key_id, self._keys.setdefault(key_id, _OfKey(self._memory)))
            self._live[session_id] = session
        session.context = session.context.join(_label(sensitivity, integrity))
        session.closed = session.closed or closed_at is not None
        session.named = {**named, **session.named}
        return session

    def _remember(self, session: Session) -> None:
        self._recent[session.session_id] = session
        self._recent.move_to_end(session.session_id)
        if len(self._recent) > MAX_REMEMBERED:
            self._recent.popitem(last=False)

    def _change(self, session_id: str, key_id: str, change: str, context: Label) -> SessionChanged:
        return SessionChanged(
            audit_id=self._new_id(), key_id=key_id, session_id=session_id, change=change, context=context
        )


def _read(
    connection: RecordConnection, session_id: str
) -> tuple[tuple[str, str | None, str | None, int, int] | None, Mapping[NamedValue, str]]:
    row = connection.execute(
        "SELECT key_id, user_key_id, closed_at, sensitivity, integrity FROM session WHERE session_id = ?", [session_id]
    ).fetchone()
    return row, named_in_file(connection, session_id)


def named_in_file(connection: RecordConnection, session_id: str) -> Mapping[NamedValue, str]:
    """What is named in a session, and who says so, as every process sees it."""
    named = connection.execute("SELECT kind, text, source FROM named_value WHERE session_id = ?", [session_id])
    return {NamedValue(kind, text): source for kind, text, source in named}


def _seen(label: Label) -> str:
    sensitivity, integrity = label.sensitivity.value, label.integrity.value
    return (
        f"SELECT {sensitivity} AS sensitivity, {integrity} AS integrity WHERE EXISTS (SELECT 1 FROM session "  # noqa: S608  # numbers
        f"WHERE key_id = ?1 AND {RANK} = {sensitivity * 2 + integrity} AND used_at >= ?2)"
    )


_LABELS = [Label(sensitivity, integrity) for sensitivity in Sensitivity for integrity in Integrity]
_SEEN = f"SELECT max(sensitivity), max(integrity) FROM ({' UNION ALL '.join(map(_seen, _LABELS))}) AS seen"  # noqa: S608  # numbers
"""The join of the labels that the key's sessions have: one look-up by index for each, however many there are."""


def _floor(key_id: str, since: str, connection: RecordConnection) -> Label:
    row = connection.execute(_SEEN, [key_id, remembered_since(connection, key_id, since)]).fetchone()
    return BOTTOM if row[0] is None else _label(row[0], row[1])


def _seen_for(key_id: str, user_key_id: str, since: str, connection: RecordConnection) -> Label:
    """What the key's sessions of one person have seen, and those that it opened by itself."""
    since = remembered_since(connection, key_id, since)
    rows = [
        connection.execute(
            "SELECT max(sensitivity), max(integrity) FROM session "  # noqa: S608  # one of two constants
            f"WHERE key_id = ?1 AND user_key_id {whose} AND used_at >= ?2",
            [key_id, since, *more],
        ).fetchone()
        for whose, more in (("IS NULL", []), ("= ?3", [user_key_id]))
    ]
    return join_all(_label(*row) for row in rows if row[0] is not None)


def _insert(
    ids: tuple[str, str, str | None], floor: Label, since: str, now: datetime, connection: RecordConnection
) -> None:
    """Write a new session: its id, its key and the person's. Raises ContextMoved if its key's floor is higher,
    and _Opened if there is a session with that id."""
    _, key_id, user_key_id = ids
    if user_key_id is None and not _floor(key_id, since, connection).flows_to(floor):
        raise ContextMoved
    at = format_time(now)
    opened = connection.execute(
        "INSERT INTO session (session_id, key_id, user_key_id, opened_at, used_at, sensitivity, integrity) "
        "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [*ids, at, at, floor.sensitivity.value, floor.integrity.value],
    ).rowcount
    if not opened:
        raise _Opened


def _label(sensitivity: int, integrity: int) -> Label:
    return Label(Sensitivity(sensitivity), Integrity(integrity))


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
