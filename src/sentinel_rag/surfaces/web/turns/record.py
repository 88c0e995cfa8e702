"""What people asked and were answered: conversations with their turns, each a person's own, in a file or in a database
that several surfaces share.

Answers and events are kept as the agent gave them: hidden values are placeholders here, and are drawn anew for whoever
reads them. The agent's own memory of a conversation is apart from this and not read here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from typing import Any

from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.storage import RecordConnection, RecordFile, Records
from sentinel_rag.surfaces.web.turns.events import Event
from sentinel_rag.surfaces.web.turns.kept import Conversation, Turn, TurnState, title_of, turn_of
from sentinel_rag.surfaces.web.turns.schema import MIGRATIONS

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
    May be used from any thread. Methods raise UnavailableError if the place cannot be used."""

    def __init__(self, path: Path | None, *, clock: Clock, keep_days: int = 90, records: Records | None = None) -> None:
        self._clock = clock
        self._keep = timedelta(days=keep_days)
        self._records = records or RecordFile(path, MIGRATIONS, what="The record of conversations")
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
            run.execute("DELETE FROM conversation WHERE used_at < ?", [format_time(now - self._keep)])
            run.execute(
                "DELETE FROM conversation WHERE conversation_id IN (SELECT conversation_id FROM conversation "
                "WHERE user_id = ? ORDER BY used_at DESC, rowid DESC LIMIT ? OFFSET ?)",
                [user_id, _ALL, MAX_CONVERSATIONS - 1],
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

    def begin(self, turn_id: str, conversation: Conversation, request_id: str | None, question: str) -> Turn:
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
                [state.value, None if answer is None else json.dumps(answer), told, turn_id],
            )

    def think(self, turn_id: str, opinion: Mapping[str, Any] | None) -> None:
        """Keep what the person thought of the turn's answer; None takes it back."""
        with self._transaction() as run:
            told = None if opinion is None else json.dumps(opinion)
            run.execute("UPDATE turn SET opinion = ? WHERE turn_id = ?", [told, turn_id])

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
                "CASE WHEN answer IS NULL THEN events END, opinion FROM turn "
                "WHERE conversation_id = ? AND number > ? ORDER BY number LIMIT ?",
                [conversation_id, after, limit],
            ).fetchall()
        return tuple(map(turn_of, rows))

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

    def settled(self, turn_id: str, user_id: str) -> Turn | None:
        """The turn as `turn` gives it; one whose surface is gone is stopped first."""
        found = self.turn(turn_id, user_id)
        if found is None or found.state is not TurnState.RUNNING:
            return found
        with self._transaction() as run:
            self._stop_abandoned(run)
        return self.turn(turn_id, user_id)

    def close(self) -> None:
        self._records.close()

    def _turn(self, condition: str, values: Sequence[str]) -> Turn | None:
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


def _one_turn(run: RecordConnection, condition: str, values: Sequence[str]) -> Turn | None:
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
