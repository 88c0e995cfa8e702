"""Conversations as they are kept: their values, their tables, and the record that people read them from."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from sentinel_rag.contracts.conversations import QuestionCost
from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.storage import Migration, RecordConnection, RecordFile, Records
from sentinel_rag.surfaces.web.turns.events import Event, sentences_in, written_in


def _first(connection: RecordConnection) -> None:
    connection.execute(
        "CREATE TABLE conversation (conversation_id TEXT PRIMARY KEY, user_id TEXT NOT NULL, "
        "session_id TEXT NOT NULL, title TEXT NOT NULL, created_at TEXT NOT NULL, used_at TEXT NOT NULL) STRICT"
    )
    connection.execute("CREATE INDEX conversation_person ON conversation (user_id, used_at)")
    connection.execute(
        "CREATE TABLE turn (turn_id TEXT PRIMARY KEY, conversation_id TEXT NOT NULL "
        "REFERENCES conversation ON DELETE CASCADE, number INTEGER NOT NULL, user_id TEXT NOT NULL, "
        "request_id TEXT, question TEXT NOT NULL, state TEXT NOT NULL, asked_at TEXT NOT NULL, answer TEXT, "
        "events TEXT, UNIQUE (conversation_id, number), UNIQUE (user_id, request_id)) STRICT"
    )


def _second(connection: RecordConnection) -> None:
    """Which surface answers a turn, while it does."""
    connection.execute("ALTER TABLE turn ADD COLUMN surface TEXT")


def _third(connection: RecordConnection) -> None:
    """What the person thought of the answer, as JSON."""
    connection.execute("ALTER TABLE turn ADD COLUMN opinion TEXT")


MIGRATIONS: tuple[Migration, ...] = (_first, _second, _third)


MAX_TITLE = 80


class TurnState(StrEnum):
    """How a turn stands. STOPPED: by the person, or because the surface ended amid it."""

    RUNNING = "running"
    ANSWERED = "answered"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class KeptConversation:
    """`session_id` is the gateway's session that questions go to now."""

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
class KeptTurn:
    """`answer` is the agent's, in the form of `ask --json`; None until there is one. `events` is all that was told; in
    a list of turns those alone that have no answer have them. `opinion` is what the person thought of the answer."""

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
    opinion: Mapping[str, Any] | None = None

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
            "written_sentences": sentences_in(self.events) if self.answer is None else None,
            "opinion": None if self.opinion is None else dict(self.opinion),
        }


def title_of(question: str) -> str:
    """The first words of a question, in one line."""
    line = " ".join(question.split())
    return line if len(line) <= MAX_TITLE else line[: MAX_TITLE - 1] + "…"


def turn_of(row: tuple[Any, ...]) -> KeptTurn:
    """The turn of a row: its columns in the order of the fields, the last three as JSON."""
    turn_id, user_id, conversation_id, number, request_id, question, state, asked_at, answer, events, opinion = row
    return KeptTurn(
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
        None if opinion is None else json.loads(opinion),
    )


MAX_CONVERSATIONS = 1_000
"""Of one person; a new one beyond ends the one that was used longest ago."""
_ALL = 2**31 - 1
"""No limit, in the SQL of every place."""
_AT_ONCE = 500
"""Values of one statement."""


class RequestIdUsed(SentinelError):
    """The person has used this request id for another question."""

    code = "request_id_used"


class ConversationRecord:
    """The record at `records`, by default the file `path`, or memory alone without one; `keep_days` bounds how long.
    Without `serves` it is only read, and turns of whoever serves go on. May be used from any thread. Methods raise
    UnavailableError if the place cannot be used."""

    def __init__(
        self,
        path: Path | None,
        *,
        clock: Clock,
        keep_days: int = 90,
        records: Records | None = None,
        serves: bool = True,
    ) -> None:
        self._clock = clock
        self.keep_days = keep_days
        self._records = records or RecordFile(path, MIGRATIONS, what="The record of conversations")
        if serves:
            with self._records.transaction() as run:
                self._stop_abandoned(run)

    @property
    def shared(self) -> bool:
        """Whether other surfaces answer from this record too."""
        return self._records.shared

    def open(self, conversation_id: str, user_id: str, title: str) -> None:
        """A new conversation, which makes room by the bounds. Its id is that of its first session."""
        now = self._clock()
        with self._transaction() as run:
            run.execute(
                "DELETE FROM conversation WHERE used_at < ?", [format_time(now - timedelta(days=self.keep_days))]
            )
            run.execute(
                "DELETE FROM conversation WHERE conversation_id IN (SELECT conversation_id FROM conversation "
                "WHERE user_id = ? ORDER BY used_at DESC, rowid DESC LIMIT ? OFFSET ?)",
                [user_id, _ALL, MAX_CONVERSATIONS - 1],
            )
            run.execute(
                "INSERT INTO conversation VALUES (?, ?, ?, ?, ?, ?)",
                [conversation_id, user_id, conversation_id, title_of(title), format_time(now), format_time(now)],
            )

    def find(self, conversation_id: str, user_id: str) -> KeptConversation | None:
        """The conversation, if it is that person's."""
        with self._transaction(reads=True) as run:
            row = run.execute(f"{_CONVERSATION} WHERE conversation_id = ? AND user_id = ?", [conversation_id, user_id])
            found = row.fetchone()
        return None if found is None else KeptConversation(*found)

    def list(self, user_id: str, limit: int, words: str = "") -> tuple[KeptConversation, ...]:
        """The person's conversations with `words` in their title or a question, the one that was used last first."""
        met = "%" + re.sub(r"([\\%_])", r"\\\1", words) + "%"
        with self._transaction(reads=True) as run:
            rows = run.execute(
                f"{_CONVERSATION} WHERE user_id = ? AND (lower(title) LIKE lower(?) ESCAPE '\\' OR conversation_id IN "  # noqa: S608  # a constant
                "(SELECT conversation_id FROM turn WHERE user_id = ? AND lower(question) LIKE lower(?) ESCAPE '\\')) "
                "ORDER BY used_at DESC, rowid DESC LIMIT ?",
                [user_id, met, user_id, met, limit],
            ).fetchall()
        return tuple(KeptConversation(*row) for row in rows)

    def owners(self, session_ids: Sequence[str]) -> dict[str, str]:
        """Session id -> the person whose conversation it is, for those that are known here."""
        found: dict[str, str] = {}
        with self._transaction(reads=True) as run:
            for begin in range(0, len(session_ids), _AT_ONCE):
                asked = session_ids[begin : begin + _AT_ONCE]
                marks = ", ".join("?" * len(asked))
                found |= dict(
                    run.execute(f"SELECT session_id, user_id FROM conversation WHERE session_id IN ({marks})", asked)  # noqa: S608  # marks
                )
        return found

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
        self._records.forget()

    def begin(self, turn_id: str, conversation: KeptConversation, request_id: str | None, question: str) -> KeptTurn:
        """A new turn of the conversation, or the one that the same request began at another surface at this moment."""
        now = format_time(self._clock())
        with self._transaction() as run:
            if request_id is not None:
                known = _one_turn(run, "request_id = ? AND user_id = ?", [request_id, conversation.user_id])
                if known is not None:
                    return known
            (number,) = run.execute(
                "SELECT coalesce(max(number), 0) + 1 FROM turn WHERE conversation_id = ?",
                [conversation.conversation_id],
            ).fetchone()
            run.execute(
                "INSERT INTO turn (turn_id, conversation_id, number, user_id, request_id, question, state, asked_at, "
                "surface) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    turn_id,
                    conversation.conversation_id,
                    number,
                    conversation.user_id,
                    request_id,
                    question,
                    TurnState.RUNNING.value,
                    now,
                    self._records.holder,
                ],
            )
            run.execute(
                "UPDATE conversation SET used_at = ? WHERE conversation_id = ?", [now, conversation.conversation_id]
            )
        return KeptTurn(
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
                [state.value, None if answer is None else json.dumps(answer), told, turn_id],
            )

    def think(self, turn_id: str, opinion: Mapping[str, Any] | None) -> None:
        """Keep what the person thought of the turn's answer; None takes it back."""
        with self._transaction() as run:
            told = None if opinion is None else json.dumps(opinion)
            run.execute("UPDATE turn SET opinion = ? WHERE turn_id = ?", [told, turn_id])

    def turn(self, turn_id: str, user_id: str) -> KeptTurn | None:
        """The turn, if it is that person's."""
        return self._turn("turn_id = ? AND user_id = ?", [turn_id, user_id])

    def turn_of_request(self, request_id: str, user_id: str) -> KeptTurn | None:
        """The turn that the person's request with that id began."""
        return self._turn("request_id = ? AND user_id = ?", [request_id, user_id])

    def turns(self, conversation_id: str, after: int, limit: int) -> tuple[KeptTurn, ...]:
        """Turns behind number `after`, oldest first; events come with those that have no answer."""
        with self._transaction(reads=True) as run:
            rows = run.execute(
                "SELECT turn_id, user_id, conversation_id, number, request_id, question, state, asked_at, answer, "
                "CASE WHEN answer IS NULL THEN events END, opinion FROM turn "
                "WHERE conversation_id = ? AND number > ? ORDER BY number LIMIT ?",
                [conversation_id, after, limit],
            ).fetchall()
        return tuple(map(turn_of, rows))

    def costs(self, since: str, until: str) -> tuple[QuestionCost, ...]:
        """What each question of that time took, whoever asked it."""
        with self._transaction(reads=True) as run:
            rows = run.execute(
                "SELECT user_id, question, asked_at, answer, opinion FROM turn WHERE asked_at >= ? AND asked_at < ? "
                "ORDER BY asked_at",
                [since, until],
            )
            return tuple(_cost(*row) for row in rows)

    def shown_last(self, conversation_id: str) -> str:
        """The text of the conversation's newest answer; empty where there is none."""
        turn = self._turn("conversation_id = ? AND answer IS NOT NULL ORDER BY number DESC LIMIT 1", [conversation_id])
        return str(turn.answer["answer"]) if turn and turn.answer else ""

    def is_next(self, turn_id: str, conversation_id: str) -> bool:
        """Whether no surface answers an earlier turn of the conversation: one is answered after the other, in their
        order, wherever they were asked. Turns of this surface do not count, which has an order of its own."""
        with self._transaction(reads=True) as run:
            rows = run.execute(
                "SELECT DISTINCT surface FROM turn WHERE conversation_id = ? AND state = ? AND surface <> ? "
                "AND number < (SELECT number FROM turn WHERE turn_id = ?)",
                [conversation_id, TurnState.RUNNING.value, self._records.holder, turn_id],
            ).fetchall()
            return not any(self._records.is_live(run, surface) for (surface,) in rows)

    def settled(self, turn_id: str, user_id: str) -> KeptTurn | None:
        """The turn as `turn` gives it; one whose surface is gone is stopped first."""
        found = self.turn(turn_id, user_id)
        if found is None or found.state is not TurnState.RUNNING:
            return found
        with self._transaction() as run:
            self._stop_abandoned(run)
        return self.turn(turn_id, user_id)

    def close(self) -> None:
        self._records.close()

    def _turn(self, condition: str, values: Sequence[str]) -> KeptTurn | None:
        with self._transaction(reads=True) as run:
            return _one_turn(run, condition, values)

    def _transaction(self, *, reads: bool = False) -> AbstractContextManager[RecordConnection]:
        return self._records.transaction(reads=reads)

    def _stop_abandoned(self, run: RecordConnection) -> None:
        """Whoever answered these is gone."""
        running = TurnState.RUNNING.value
        rows = run.execute("SELECT DISTINCT coalesce(surface, '') FROM turn WHERE state = ?", [running]).fetchall()
        gone = [surface for (surface,) in rows if not self._records.is_live(run, surface)]
        run.executemany(
            "UPDATE turn SET state = ? WHERE state = ? AND coalesce(surface, '') = ?",
            [(TurnState.STOPPED.value, running, surface) for surface in gone],
        )


def _cost(user_id: str, question: str, asked_at: str, answer: str | None, opinion: str | None) -> QuestionCost:
    told = json.loads(answer) if answer else {}
    helped = json.loads(opinion)["good"] if opinion else None
    return QuestionCost(asked_at, str(told.get("session_id", "")), question, told.get("model"), helped, user_id)


def _one_turn(run: RecordConnection, condition: str, values: Sequence[str]) -> KeptTurn | None:
    row = run.execute(
        "SELECT turn_id, user_id, conversation_id, number, request_id, question, state, asked_at, answer, "  # noqa: S608  # our own conditions
        f"events, opinion FROM turn WHERE {condition}",
        values,
    ).fetchone()
    return None if row is None else turn_of(row)


_CONVERSATION = (
    "SELECT conversation_id, user_id, session_id, title, created_at, used_at, "
    "(SELECT count(*) FROM turn t WHERE t.conversation_id = conversation.conversation_id) FROM conversation"
)
