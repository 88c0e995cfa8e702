"""Conversations in a file of the home or in a database, so that one can be resumed after a restart or a crash.

Every write is one transaction: what a killed process leaves is the state after some turn. Nothing here knows an
analyst; hidden values reach it as placeholders only, because the agent never has them.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from sentinel_rag.agent.remembering.stored import (
    STOPPED,
    ConversationEntry,
    StoredConversation,
    StoredTurn,
    Version,
    title_of,
)
from sentinel_rag.contracts.conversations import CarriedFact, Preferences, Verbosity
from sentinel_rag.contracts.errors import SentinelError, UsageError
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.records import Connection, Migration, RecordFile, Records

WAIT_FOR_LOCK_S = 1.0
MAX_TURNS_READ = 200
MAX_RESULTS = 8_000_000
"""Characters of one turn's results that are kept."""
_ALL = 2**31 - 1
"""No limit, in the SQL of every place."""


def _first(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE conversation ("
        "id TEXT PRIMARY KEY, started_at TEXT NOT NULL, used_at TEXT NOT NULL, title TEXT NOT NULL, "
        "workspace TEXT, timezone TEXT, verbosity TEXT, "
        "state TEXT NOT NULL, carried TEXT NOT NULL, cleared_turns INTEGER NOT NULL) STRICT"
    )
    connection.execute("CREATE INDEX conversation_by_use ON conversation (used_at)")
    connection.execute(
        "CREATE TABLE turn ("
        "conversation_id TEXT NOT NULL REFERENCES conversation (id) ON DELETE CASCADE, number INTEGER NOT NULL, "
        "asked_at TEXT NOT NULL, question TEXT NOT NULL, outcome TEXT, answer TEXT NOT NULL, facts TEXT NOT NULL, "
        "memory TEXT, PRIMARY KEY (conversation_id, number)) STRICT, WITHOUT ROWID"
    )


def _second(connection: Connection) -> None:
    connection.execute("ALTER TABLE turn ADD COLUMN shown TEXT")


def _third(connection: Connection) -> None:
    connection.execute("ALTER TABLE turn ADD COLUMN results TEXT")


MIGRATIONS: tuple[Migration, ...] = (_first, _second, _third)
"""The tables, as numbered steps."""


class ConversationDeletedError(SentinelError):
    """The conversation was deleted in another window meanwhile."""

    code = "conversation_deleted"


class ConversationStore:
    """The conversations at `place`, a file or another place; `keep_days` and `keep` bound how long and how many.
    Thread-safe.

    Methods raise UnavailableError, with a sentence for the person, if the place cannot be used just now (locked, full,
    damaged, away); the next call tries anew.
    """

    def __init__(self, place: Path | Records, *, clock: Clock, keep_days: int = 90, keep: int = 200) -> None:
        self._records = conversation_file(place) if isinstance(place, Path) else place
        self._clock = clock
        self._keep_days = keep_days
        self._keep = keep

    @property
    def place(self) -> str:
        """Where they are, as a person calls it."""
        return self._records.name

    def save(self, conversation: StoredConversation, *, known: bool) -> Version:
        """Write the conversation's memory and those of its turns that are given (others stay); its version then.

        `known` says that it was written before: then it is not made again, and ConversationDeletedError tells that a
        person deleted it. A new one makes room by the bounds.
        """
        now = format_time(self._clock())
        with self._records.transaction() as run:
            found = run.execute(
                "UPDATE conversation SET used_at = ?, workspace = ?, timezone = ?, verbosity = ?, state = ?, "
                "carried = ?, cleared_turns = ? WHERE id = ?",
                [now, *_memory(conversation), conversation.conversation_id],
            ).rowcount
            if not found and known:
                raise ConversationDeletedError("This conversation was deleted in another window.")
            if not found:
                title = title_of(_clean(conversation.turns[0].question)) if conversation.turns else ""
                run.execute(
                    "INSERT INTO conversation VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    [conversation.conversation_id, now, now, title, *_memory(conversation)],
                )
                self._purge(run, conversation.conversation_id)
            run.executemany(
                "INSERT INTO turn VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (conversation_id, number) DO UPDATE SET asked_at = excluded.asked_at, "
                "question = excluded.question, outcome = excluded.outcome, answer = excluded.answer, "
                "facts = excluded.facts, memory = excluded.memory, shown = excluded.shown, results = excluded.results",
                [_turn_row(conversation.conversation_id, turn) for turn in conversation.turns],
            )
            version = _version(run, conversation.conversation_id)
        assert version is not None  # written in this transaction
        return version

    def version(self, conversation_id: str) -> Version | None:
        """Which version of it is kept now; None if there is none of that id. Another than a process knows was written
        by another process."""
        if not self._records.exists():
            return None
        with self._records.transaction(reads=True) as run:
            return _version(run, conversation_id)

    def load(
        self,
        conversation_id: str,
        *,
        turns: int = MAX_TURNS_READ,
        with_answers: bool = False,
        with_results: bool = False,
    ) -> StoredConversation | None:
        """The conversation with its newest `turns`; None if there is none of that id. The whole answers (`shown`) and
        the results are read only where they are asked for: they are long."""
        if not self._records.exists():  # reading makes no file
            return None
        with self._records.transaction(reads=True) as run:
            row = run.execute(
                "SELECT workspace, timezone, verbosity, state, carried, cleared_turns FROM conversation WHERE id = ?",
                [conversation_id],
            ).fetchone()
            rows = run.execute(
                "SELECT number, asked_at, question, outcome, answer, facts, memory, "
                "CASE WHEN ? = 1 THEN shown END, CASE WHEN ? = 1 THEN results END "
                "FROM turn WHERE conversation_id = ? ORDER BY number DESC LIMIT ?",
                [int(with_answers), int(with_results), conversation_id, turns],
            ).fetchall()
            version = _version(run, conversation_id)
        if row is None:
            return None
        *chosen, state, carried, cleared = row
        return StoredConversation(
            conversation_id,
            _preferences(*chosen),
            _json(state, {}),
            _facts(carried),
            cleared,
            tuple(_turn(*each) for each in reversed(rows)),
            version,
        )

    def list(self, limit: int = 50) -> tuple[ConversationEntry, ...]:
        """The conversations, the one that was used last first."""
        if not self._records.exists():
            return ()
        with self._records.transaction(reads=True) as run:
            rows = run.execute(
                "SELECT id, title, started_at, used_at, "
                "(SELECT count(*) FROM turn WHERE conversation_id = id), workspace, timezone, verbosity "
                "FROM conversation ORDER BY used_at DESC, rowid DESC LIMIT ?",
                [limit],
            ).fetchall()
        return tuple(
            ConversationEntry(key, title, started, used, turns, _preferences(*chosen))
            for key, title, started, used, turns, *chosen in rows
        )

    def count(self) -> int:
        """How many conversations are kept."""
        if not self._records.exists():
            return 0
        with self._records.transaction(reads=True) as run:
            return int(run.execute("SELECT count(*) FROM conversation").fetchone()[0])

    def find(self, beginning: str) -> str:
        """The id that starts with `beginning`. Raises UsageError if none does, or several."""
        rows = self._beginning_with(beginning) if beginning and self._records.exists() else []
        if len(rows) != 1:
            many = "More than one conversation begins" if rows else "No conversation begins"
            raise UsageError(f"{many} with {beginning!r}.", next_step="sentinel chat --list shows their ids.")
        return rows[0]

    def _beginning_with(self, beginning: str) -> Sequence[str]:
        with self._records.transaction(reads=True) as run:
            rows = run.execute(
                "SELECT id FROM conversation WHERE substr(id, 1, CAST(? AS INTEGER)) = ? LIMIT 2",
                [len(beginning), beginning],
            ).fetchall()
        return [str(conversation_id) for (conversation_id,) in rows]

    def delete(self, conversation_id: str) -> bool:
        """Remove a conversation and overwrite its bytes; whether there was one."""
        with self._records.transaction() as run:
            found = run.execute("DELETE FROM conversation WHERE id = ?", [conversation_id]).rowcount
        if found:
            self._records.forget()
        return bool(found)

    def close(self) -> None:
        """Let go of the place. It may be used again afterwards."""
        self._records.close()

    def _purge(self, run: Connection, newest: str) -> None:
        """Hold the bounds. Single questions go before conversations: a script that asks often displaces no chat."""
        oldest = format_time(self._clock() - timedelta(days=self._keep_days))
        run.execute("DELETE FROM conversation WHERE used_at < ?", [oldest])
        if run.execute("SELECT count(*) FROM conversation").fetchone()[0] <= self._keep:
            return  # ordering them all costs in proportion to what is kept, at each new one
        run.execute(
            "DELETE FROM conversation WHERE id IN "
            "(SELECT id FROM conversation WHERE id <> ? ORDER BY "
            "(SELECT count(*) > 1 FROM turn WHERE conversation_id = id) DESC, used_at DESC, rowid DESC "
            "LIMIT ? OFFSET ?)",
            [newest, _ALL, self._keep - 1],
        )


def _version(run: Connection, conversation_id: str) -> Version | None:
    row = run.execute(
        "SELECT used_at, cleared_turns, (SELECT coalesce(max(number), 0) FROM turn WHERE conversation_id = id) "
        "FROM conversation WHERE id = ?",
        [conversation_id],
    ).fetchone()
    return None if row is None else (str(row[0]), int(row[1]), int(row[2]))


def conversation_file(path: Path) -> RecordFile:
    """Conversations in the file `path`."""
    return RecordFile(
        path,
        MIGRATIONS,
        what=f"The file of conversations {path}",
        again="the next question tries again",
        busy_s=WAIT_FOR_LOCK_S,
    )


def _memory(conversation: StoredConversation) -> tuple[Any, ...]:
    chosen = conversation.preferences
    carried = _text([fact.to_dict() for fact in conversation.carried])
    return (
        chosen.workspace,
        chosen.timezone,
        None if chosen.verbosity is None else chosen.verbosity.value,
        _text(conversation.state),
        carried,
        conversation.cleared_turns,
    )


def _turn_row(conversation_id: str, turn: StoredTurn) -> Sequence[Any]:
    memory = None if turn.memory is None else _text(turn.memory)
    facts = _text([fact.to_dict() for fact in turn.facts])
    question, answer = _clean(turn.question), _clean(turn.answer)
    shown = None if turn.shown is None else _text(turn.shown)
    kept = _packed(turn.results)
    return (conversation_id, turn.number, turn.asked_at, question, turn.outcome, answer, facts, memory, shown, kept)


def _turn(
    number: int,
    asked_at: str,
    question: str,
    outcome: str | None,
    answer: str,
    facts: str,
    memory: str | None,
    shown: str | None,
    results: str | None,
) -> StoredTurn:
    # Whoever reads a turn without an outcome looks at one that nobody answers any more.
    read = None if memory is None else _json(memory, {})
    whole = None if shown is None else _json(shown, None)
    kept = _unpacked(results)
    return StoredTurn(number, asked_at, question, outcome or STOPPED, answer, _facts(facts), read, whole, kept)


def _preferences(workspace: str | None, timezone: str | None, verbosity: str | None) -> Preferences:
    known = verbosity in tuple(Verbosity)
    return Preferences(workspace, timezone, Verbosity(verbosity) if verbosity is not None and known else None)


def _facts(text: str) -> tuple[CarriedFact, ...]:
    with suppress(KeyError, TypeError):
        return tuple(CarriedFact.from_dict(fact) for fact in _json(text, []))
    return ()


def _text(value: Any) -> str:
    return json.dumps(value, default=_plain, separators=(",", ":"))


def _plain(value: Any) -> Any:
    return dict(value) if hasattr(value, "keys") else list(value)


def _packed(results: Sequence[Mapping[str, Any]]) -> str | None:
    """Results as compressed text, those beyond MAX_RESULTS left out. Rows of a log come to a tenth of their size."""
    kept: list[str] = []
    size = 0
    for text in map(_text, results):
        size += len(text)
        if size <= MAX_RESULTS:
            kept.append(text)
    return b64encode(zlib.compress(f"[{','.join(kept)}]".encode(), level=1)).decode() if kept else None


def _unpacked(text: str | None) -> tuple[Mapping[str, Any], ...]:
    if text is None:
        return ()
    with suppress(ValueError, zlib.error):
        return tuple(json.loads(zlib.decompress(b64decode(text))))
    return ()


def _json(text: str, otherwise: Any) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return otherwise


def _clean(text: str) -> str:
    """`text` without lone surrogates, which SQLite does not take."""
    return text.encode("utf-8", "replace").decode("utf-8")
