"""What people asked and were answered: conversations with their turns, each a person's own, in one SQLite file.

Answers and events are kept as the agent gave them: hidden values are placeholders here, and are drawn anew for whoever
reads them. The agent's own memory of a conversation is apart from this and not read here.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from sentinel_rag.contracts.errors import SentinelError, UnavailableError
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.surfaces.web.turns.events import Event, written_in

MAX_TITLE = 80
MAX_CONVERSATIONS = 1_000
"""Of one person; a new one beyond ends the one that was used longest ago."""
BUSY_S = 5.0


class TurnState(StrEnum):
    """How a turn stands. STOPPED: by the person, or because the surface ended amid it."""

    RUNNING = "running"
    ANSWERED = "answered"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Conversation:
    """`session_id` is the Interceptor's session that questions go to now."""

    conversation_id: str
    user_id: str
    session_id: str
    title: str
    created_at: str
    used_at: str
    turns: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {
            "session_id": self.conversation_id,
            "title": self.title,
            "created_at": self.created_at,
            "used_at": self.used_at,
            "turns": self.turns,
        }


@dataclass(frozen=True, slots=True)
class Turn:
    """`answer` is the agent's, in the form of `ask --json`; None until there is one. `events` is all that was told; in
    a list of turns those alone that have no answer have them."""

    turn_id: str
    user_id: str
    conversation_id: str
    number: int
    request_id: str | None
    question: str
    state: TurnState
    asked_at: str
    answer: Mapping[str, Any] | None = None
    events: tuple[Event, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "turn_id": self.turn_id,
            "session_id": self.conversation_id,
            "number": self.number,
            "request_id": self.request_id,
            "question": self.question,
            "state": self.state.value,
            "asked_at": self.asked_at,
            "answer": None if self.answer is None else dict(self.answer),
            "written": written_in(self.events) if self.answer is None else None,
        }


class RequestIdUsed(SentinelError):
    """The person has used this request id for another question."""

    code = "request_id_used"


class ConversationRecord:
    """The record in the file `path`, or in memory alone without one; `keep_days` bounds how long. May be used from any
    thread. Methods raise UnavailableError if the file cannot be used."""

    def __init__(self, path: Path | None, *, clock: Clock, keep_days: int = 90) -> None:
        self._clock = clock
        self._keep = timedelta(days=keep_days)
        self._lock = threading.Lock()
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            name = ":memory:" if path is None else str(path)
            self._connection = sqlite3.connect(name, isolation_level=None, check_same_thread=False, timeout=BUSY_S)
            for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON", "secure_delete = ON"):
                self._connection.execute(f"PRAGMA {pragma}")
        except (OSError, sqlite3.Error) as error:
            raise _unusable(error) from error
        with self._transaction() as run:
            _migrate(run)
            # Whoever answered these is gone.
            run.execute("UPDATE turn SET state = ? WHERE state = ?", [TurnState.STOPPED, TurnState.RUNNING])

    def open(self, conversation_id: str, user_id: str, title: str) -> None:
        """A new conversation, which makes room by the bounds. Its id is that of its first session."""
        now = self._clock()
        with self._transaction() as run:
            run.execute("DELETE FROM conversation WHERE used_at < ?", [format_time(now - self._keep)])
            run.execute(
                "DELETE FROM conversation WHERE conversation_id IN (SELECT conversation_id FROM conversation "
                "WHERE user_id = ? ORDER BY used_at DESC, rowid DESC LIMIT -1 OFFSET ?)",
                [user_id, MAX_CONVERSATIONS - 1],
            )
            run.execute(
                "INSERT INTO conversation VALUES (?, ?, ?, ?, ?, ?)",
                [conversation_id, user_id, conversation_id, title_of(title), format_time(now), format_time(now)],
            )

    def find(self, conversation_id: str, user_id: str) -> Conversation | None:
        """The conversation, if it is that person's."""
        with self._transaction(reads=True) as run:
            row = run.execute(f"{_CONVERSATION} WHERE conversation_id = ? AND user_id = ?", [conversation_id, user_id])
            found = row.fetchone()
        return None if found is None else Conversation(*found)

    def list(self, user_id: str, limit: int) -> tuple[Conversation, ...]:
        """The person's conversations, the one that was used last first."""
        with self._transaction(reads=True) as run:
            rows = run.execute(
                f"{_CONVERSATION} WHERE user_id = ? ORDER BY used_at DESC, rowid DESC LIMIT ?", [user_id, limit]
            ).fetchall()
        return tuple(Conversation(*row) for row in rows)

    def owners(self, session_ids: Sequence[str]) -> dict[str, str]:
        """Session id -> the person whose conversation it is, for those that are known here."""
        with self._transaction(reads=True) as run:
            rows = run.execute(
                "SELECT session_id, user_id FROM conversation WHERE session_id IN (SELECT value FROM json_each(?))",
                [json.dumps(list(session_ids))],
            ).fetchall()
        return dict(rows)

    def rename(self, conversation_id: str, title: str) -> None:
        with self._transaction() as run:
            run.execute(
                "UPDATE conversation SET title = ? WHERE conversation_id = ?", [title_of(title), conversation_id]
            )

    def move(self, conversation_id: str, session_id: str) -> None:
        """Let questions go to another session from now on."""
        with self._transaction() as run:
            run.execute(
                "UPDATE conversation SET session_id = ? WHERE conversation_id = ?", [session_id, conversation_id]
            )

    def delete(self, conversation_id: str) -> None:
        """Remove a conversation; its bytes are overwritten."""
        with self._transaction() as run:
            run.execute("DELETE FROM conversation WHERE conversation_id = ?", [conversation_id])
        with self._lock:
            try:
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            except sqlite3.Error as error:
                raise _unusable(error) from error

    def begin(self, turn_id: str, conversation: Conversation, request_id: str | None, question: str) -> Turn:
        """A new turn of the conversation."""
        now = format_time(self._clock())
        with self._transaction() as run:
            (number,) = run.execute(
                "SELECT coalesce(max(number), 0) + 1 FROM turn WHERE conversation_id = ?",
                [conversation.conversation_id],
            ).fetchone()
            run.execute(
                "INSERT INTO turn (turn_id, conversation_id, number, user_id, request_id, question, state, asked_at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    turn_id,
                    conversation.conversation_id,
                    number,
                    conversation.user_id,
                    request_id,
                    question,
                    TurnState.RUNNING,
                    now,
                ],
            )
            run.execute(
                "UPDATE conversation SET used_at = ? WHERE conversation_id = ?", [now, conversation.conversation_id]
            )
        return Turn(
            turn_id,
            conversation.user_id,
            conversation.conversation_id,
            number,
            request_id,
            question,
            TurnState.RUNNING,
            now,
        )

    def end(self, turn_id: str, state: TurnState, answer: Mapping[str, Any] | None, events: Sequence[Event]) -> None:
        """How a turn ended, with all that was told of it."""
        told = json.dumps([[event.type, event.data] for event in events])
        with self._transaction() as run:
            run.execute(
                "UPDATE turn SET state = ?, answer = ?, events = ? WHERE turn_id = ?",
                [state, None if answer is None else json.dumps(answer), told, turn_id],
            )

    def turn(self, turn_id: str, user_id: str) -> Turn | None:
        """The turn, if it is that person's."""
        return self._turn("turn_id = ? AND user_id = ?", [turn_id, user_id])

    def turn_of_request(self, request_id: str, user_id: str) -> Turn | None:
        """The turn that the person's request with that id began."""
        return self._turn("request_id = ? AND user_id = ?", [request_id, user_id])

    def turns(self, conversation_id: str, after: int, limit: int) -> tuple[Turn, ...]:
        """Turns behind number `after`, oldest first; events come with those that have no answer."""
        with self._transaction(reads=True) as run:
            rows = run.execute(
                "SELECT turn_id, user_id, conversation_id, number, request_id, question, state, asked_at, answer, "
                "CASE WHEN answer IS NULL THEN events END FROM turn "
                "WHERE conversation_id = ? AND number > ? ORDER BY number LIMIT ?",
                [conversation_id, after, limit],
            ).fetchall()
        return tuple(map(_turn, rows))

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _turn(self, condition: str, values: Sequence[str]) -> Turn | None:
        with self._transaction(reads=True) as run:
            row = run.execute(
                "SELECT turn_id, user_id, conversation_id, number, request_id, question, state, asked_at, answer, "  # noqa: S608  # our own conditions
                f"events FROM turn WHERE {condition}",
                values,
            ).fetchone()
        return None if row is None else _turn(row)

    @contextmanager
    def _transaction(self, *, reads: bool = False) -> Iterator[sqlite3.Connection]:
        try:
            with self._lock:
                self._connection.execute("BEGIN" if reads else "BEGIN IMMEDIATE")
                try:
                    yield self._connection
                except BaseException:
                    self._connection.execute("ROLLBACK")
                    raise
                self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise _unusable(error) from error


_CONVERSATION = (
    "SELECT conversation_id, user_id, session_id, title, created_at, used_at, "
    "(SELECT count(*) FROM turn t WHERE t.conversation_id = conversation.conversation_id) FROM conversation"
)


def title_of(question: str) -> str:
    """The first words of a question, in one line."""
    line = " ".join(question.split())
    return line if len(line) <= MAX_TITLE else line[: MAX_TITLE - 1] + "…"


def _migrate(run: sqlite3.Connection) -> None:
    """Bring the file to this version. Raises UnavailableError for one that a newer version wrote."""
    (version,) = run.execute("PRAGMA user_version").fetchone()
    if version > 1:
        raise UnavailableError(
            "The record of conversations was written by a newer version of Sentinel RAG.",
            next_step="Use that version, or set SENTINEL_HOME to another folder.",
        )
    if version == 0:
        run.execute(
            "CREATE TABLE conversation (conversation_id TEXT PRIMARY KEY, user_id TEXT NOT NULL, "
            "session_id TEXT NOT NULL, title TEXT NOT NULL, created_at TEXT NOT NULL, used_at TEXT NOT NULL) STRICT"
        )
        run.execute("CREATE INDEX conversation_person ON conversation (user_id, used_at)")
        run.execute(
            "CREATE TABLE turn (turn_id TEXT PRIMARY KEY, conversation_id TEXT NOT NULL "
            "REFERENCES conversation ON DELETE CASCADE, number INTEGER NOT NULL, user_id TEXT NOT NULL, "
            "request_id TEXT, question TEXT NOT NULL, state TEXT NOT NULL, asked_at TEXT NOT NULL, answer TEXT, "
            "events TEXT, UNIQUE (conversation_id, number), UNIQUE (user_id, request_id)) STRICT"
        )
        run.execute("PRAGMA user_version = 1")


def _turn(row: tuple[Any, ...]) -> Turn:
    turn_id, user_id, conversation_id, number, request_id, question, state, asked_at, answer, events = row
    return Turn(
        turn_id,
        user_id,
        conversation_id,
        number,
        request_id,
        question,
        TurnState(state),
        asked_at,
        None if answer is None else json.loads(answer),
        tuple(Event(*each) for each in json.loads(events or "[]")),
    )


def _unusable(error: Exception) -> UnavailableError:
    return UnavailableError(
        f"The record of conversations cannot be used: {error}.",
        next_step="Check the permissions and the free space of its folder, web in SENTINEL_HOME.",
    )
