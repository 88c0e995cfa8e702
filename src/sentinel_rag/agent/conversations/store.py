"""Conversations in a file of the home or in a database, so that one can be resumed after a restart or a crash.

Every write is one transaction: what a killed process leaves is the state after some turn. Nothing here knows an
analyst; hidden values reach it as placeholders only, because the agent never has them.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from sentinel_rag.contracts.conversations import NO_PREFERENCES, CarriedFact, Preferences, QuestionCost, Verbosity
from sentinel_rag.contracts.errors import SentinelError, UsageError
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.storage import Migration, RecordConnection, RecordFile, Records

WAIT_FOR_LOCK_S = 1.0
MAX_TITLE = 80
MAX_TURNS_READ = 200
MAX_RESULTS = 8_000_000
"""Characters of one turn's results that are kept."""
STOPPED = "stopped"
"""The outcome of a turn that was cancelled, or that a crash cut off."""
_ALL = 2**31 - 1
"""No limit, in the SQL of every place."""

Version = tuple[str, int, int]
"""When a conversation was written last, its `cleared_turns`, and the number of its newest turn."""


def _first(connection: RecordConnection) -> None:
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


def _second(connection: RecordConnection) -> None:
    connection.execute("ALTER TABLE turn ADD COLUMN shown TEXT")


def _third(connection: RecordConnection) -> None:
    connection.execute("ALTER TABLE turn ADD COLUMN results TEXT")


def _fourth(connection: RecordConnection) -> None:
    """What the person thought of the answer, as JSON."""
    connection.execute("ALTER TABLE turn ADD COLUMN opinion TEXT")


MIGRATIONS: tuple[Migration, ...] = (_first, _second, _third, _fourth)
"""The tables, as numbered steps."""
_VERSION = (
    "SELECT used_at, cleared_turns, (SELECT coalesce(max(number), 0) FROM turn WHERE conversation_id = id) "
    "FROM conversation WHERE id = ?"
)


class ConversationDeletedError(SentinelError):
    """The conversation was deleted in another window meanwhile."""

    code = "conversation_deleted"


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """One question with its answer. Hidden values stand in all of it as their placeholders."""

    number: int
    asked_at: str
    question: str
    outcome: str | None = None
    """One of `Outcome`, or STOPPED, or None while it is being answered."""
    answer: str = ""
    facts: tuple[CarriedFact, ...] = ()
    memory: Mapping[str, Any] | None = None
    """The analyst's own form of the turn."""
    shown: Mapping[str, Any] | None = None
    """The whole answer in the form of `ask --json`, for the person's record and never for a memory; None where it was
    not kept, or not read."""
    results: tuple[Mapping[str, Any], ...] = ()
    """Its calls with their results (`answers.results_file`), as far as they were kept and read."""


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """All that is kept of a conversation. `turns` are the newest, oldest first; those up to number `cleared_turns` are
    the person's record only, and no memory. `version` is what was read of it, if it was."""

    conversation_id: str
    preferences: Preferences = NO_PREFERENCES
    state: Mapping[str, Any] = field(default_factory=dict)
    carried: tuple[CarriedFact, ...] = ()
    cleared_turns: int = 0
    turns: tuple[StoredTurn, ...] = ()
    version: Version | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ConversationEntry:
    """A line of the list of conversations. `title` is the beginning of the first question; times are ISO 8601, UTC."""

    conversation_id: str
    title: str
    started_at: str
    used_at: str
    turns: int
    preferences: Preferences

    def to_dict(self) -> dict[str, Any]:
        """The form of `sentinel chat --list --json`."""
        return {
            "session_id": self.conversation_id,
            "title": self.title,
            "started_at": self.started_at,
            "used_at": self.used_at,
            "turns": self.turns,
            "workspace": self.preferences.workspace,
            "timezone": self.preferences.timezone,
            "verbosity": self.preferences.verbosity,
        }


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
        now, key, chosen = format_time(self._clock()), conversation.conversation_id, conversation.preferences
        memory = (
            *(chosen.workspace, chosen.timezone, None if chosen.verbosity is None else chosen.verbosity.value),
            *(_text(conversation.state), _text(conversation.carried), conversation.cleared_turns),
        )
        with self._records.transaction() as run:
            found = run.execute(
                "UPDATE conversation SET used_at = ?, workspace = ?, timezone = ?, verbosity = ?, state = ?, "
                "carried = ?, cleared_turns = ? WHERE id = ?",
                [now, *memory, key],
            ).rowcount
            if not found and known:
                raise ConversationDeletedError("This conversation was deleted in another window.")
            if not found:
                title = _title(conversation.turns[0].question) if conversation.turns else ""
                run.execute(
                    "INSERT INTO conversation VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [key, now, now, title, *memory]
                )
                self._purge(run, key)
            run.executemany(
                "INSERT INTO turn (conversation_id, number, asked_at, question, outcome, answer, facts, memory, shown, "
                "results) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (conversation_id, number) DO UPDATE SET asked_at = excluded.asked_at, "
                "question = excluded.question, outcome = excluded.outcome, answer = excluded.answer, "
                "facts = excluded.facts, memory = excluded.memory, shown = excluded.shown, results = excluded.results",
                [_turn_row(key, turn) for turn in conversation.turns],
            )
            return _version(run.execute(_VERSION, [key]).fetchone())

    def version(self, conversation_id: str) -> Version | None:
        """Which version of it is kept now; None if there is none of that id. Another than a process knows was written
        by another process."""
        rows = self._read(_VERSION, [conversation_id])
        return _version(rows[0]) if rows else None

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
        if not self._records.exists():
            return None
        with self._records.transaction(reads=True) as run:
            row = run.execute(
                "SELECT workspace, timezone, verbosity, state, carried FROM conversation WHERE id = ?",
                [conversation_id],
            ).fetchone()
            if row is None:
                return None
            rows = run.execute(
                "SELECT number, asked_at, question, outcome, answer, facts, memory, "
                "CASE WHEN ? = 1 THEN shown END, CASE WHEN ? = 1 THEN results END "
                "FROM turn WHERE conversation_id = ? ORDER BY number DESC LIMIT ?",
                [int(with_answers), int(with_results), conversation_id, turns],
            ).fetchall()
            version = _version(run.execute(_VERSION, [conversation_id]).fetchone())
        *chosen, state, carried = row
        read = tuple(map(_turn, reversed(rows)))
        preferences, facts = _preferences(*chosen), _facts(carried)
        return StoredConversation(conversation_id, preferences, _json(state) or {}, facts, version[1], read, version)

    def list(self, limit: int = 50, words: str = "") -> tuple[ConversationEntry, ...]:
        """The conversations with `words` in their title or a question, the one that was used last first."""
        met = "%" + re.sub(r"([\\%_])", r"\\\1", words) + "%"
        rows = self._read(
            "SELECT id, title, started_at, used_at, "
            "(SELECT count(*) FROM turn WHERE conversation_id = id), workspace, timezone, verbosity "
            "FROM conversation WHERE lower(title) LIKE lower(?) ESCAPE '\\' OR id IN "
            "(SELECT conversation_id FROM turn WHERE lower(question) LIKE lower(?) ESCAPE '\\') "
            "ORDER BY used_at DESC, rowid DESC LIMIT ?",
            [met, met, limit],
        )
        return tuple(
            ConversationEntry(key, title, started, used, turns, _preferences(*chosen))
            for key, title, started, used, turns, *chosen in rows
        )

    def count(self) -> int:
        """How many conversations are kept."""
        return sum(int(count) for (count,) in self._read("SELECT count(*) FROM conversation"))

    def find(self, beginning: str) -> str:
        """The id that starts with `beginning`. Raises UsageError if none does, or several."""
        sql = "SELECT id FROM conversation WHERE substr(id, 1, CAST(? AS INTEGER)) = ? LIMIT 2"
        rows = self._read(sql, [len(beginning), beginning]) if beginning else []
        if len(rows) != 1:
            many = "More than one conversation begins" if rows else "No conversation begins"
            raise UsageError(f"{many} with {beginning!r}.", next_step="sentinel chat --list shows their ids.")
        return str(rows[0][0])

    def rename(self, conversation_id: str, title: str) -> bool:
        """Give the conversation another title; whether there is one."""
        with self._records.transaction() as run:
            changed = run.execute("UPDATE conversation SET title = ? WHERE id = ?", [_title(title), conversation_id])
        return bool(changed.rowcount)

    def think(self, conversation_id: str, opinion: Mapping[str, Any] | None) -> bool:
        """Keep what the person thought of the newest answer, None to take it back; whether there is one."""
        with self._records.transaction() as run:
            changed = run.execute(
                "UPDATE turn SET opinion = ? WHERE conversation_id = ? AND shown IS NOT NULL AND number = "
                "(SELECT max(number) FROM turn WHERE conversation_id = ?)",
                [None if opinion is None else _text(opinion), conversation_id, conversation_id],
            )
        return bool(changed.rowcount)

    def costs(self, since: str, until: str) -> tuple[QuestionCost, ...]:
        """What each question of that time took, as far as its conversation is kept."""
        rows = self._read(
            "SELECT asked_at, conversation_id, question, shown, opinion FROM turn WHERE asked_at >= ? AND asked_at < ? "
            "ORDER BY asked_at",
            [since, until],
        )
        return tuple(
            QuestionCost(at, key, question, (_json(shown) or {}).get("model"), (_json(opinion) or {}).get("good"))
            for at, key, question, shown, opinion in rows
        )

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

    def _read(self, sql: str, values: Sequence[Any] = ()) -> Sequence[Any]:
        if not self._records.exists():  # reading makes no file
            return ()
        with self._records.transaction(reads=True) as run:
            return run.execute(sql, values).fetchall()

    def _purge(self, run: RecordConnection, newest: str) -> None:
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


def conversation_file(path: Path) -> RecordFile:
    """Conversations in the file `path`."""
    return RecordFile(
        path,
        MIGRATIONS,
        what=f"The file of conversations {path}",
        again="the next question tries again",
        busy_s=WAIT_FOR_LOCK_S,
    )


def _version(row: Sequence[Any]) -> Version:
    used_at, cleared, newest = row
    return str(used_at), int(cleared), int(newest)


def _title(question: str) -> str:
    """The first words of a question, in one line."""
    line = " ".join(_clean(question).split())
    return line if len(line) <= MAX_TITLE else line[: MAX_TITLE - 1] + "…"


def _turn_row(conversation_id: str, turn: StoredTurn) -> Sequence[Any]:
    memory, shown = (None if value is None else _text(value) for value in (turn.memory, turn.shown))
    said = (_clean(turn.question), turn.outcome, _clean(turn.answer), _text(turn.facts))
    return (conversation_id, turn.number, turn.asked_at, *said, memory, shown, _packed(turn.results))


def _turn(row: Sequence[Any]) -> StoredTurn:
    number, asked_at, question, outcome, answer, facts, memory, shown, results = row
    # Whoever reads a turn without an outcome looks at one that nobody answers any more.
    said = (number, asked_at, question, outcome or STOPPED, answer, _facts(facts))
    return StoredTurn(*said, _json(memory), _json(shown), _unpacked(results))


def _preferences(workspace: str | None, timezone: str | None, verbosity: str | None) -> Preferences:
    return Preferences(workspace, timezone, Verbosity(verbosity) if verbosity in tuple(Verbosity) else None)


def _facts(text: str) -> tuple[CarriedFact, ...]:
    with suppress(msgspec.ValidationError):
        return msgspec.convert(_json(text) or [], tuple[CarriedFact, ...])
    return ()


def _text(value: Any) -> str:
    return json.dumps(value, default=_plain, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, CarriedFact):
        return value.to_dict()
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
    with suppress(ValueError, zlib.error):
        return () if text is None else tuple(json.loads(zlib.decompress(b64decode(text))))
    return ()


def _json(text: str | None) -> Any:
    with suppress(ValueError):
        return None if text is None else json.loads(text)
    return None


def _clean(text: str) -> str:
    """`text` without lone surrogates, which SQLite does not take."""
    return text.encode("utf-8", "replace").decode("utf-8")
