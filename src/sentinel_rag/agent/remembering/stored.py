"""A conversation as the store keeps it, and one that is going on in this process: values without a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sentinel_rag.contracts.conversations import NO_PREFERENCES, CarriedFact, Preferences

MAX_TITLE = 80
STOPPED = "stopped"
"""The outcome of a turn that was cancelled, or that a crash cut off."""

MAX_UNSAVED = 30
"""Turns that wait for a store that fails; the oldest are given up."""
MAX_FACTS = 200

Version = tuple[str, int, int]
"""When a conversation was written last, its `cleared_turns`, and the number of its newest turn."""


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """One question with its answer. `outcome` is one of `Outcome`, or STOPPED, or None while it is being answered;
    `memory` is the analyst's own form of the turn. `shown` is the whole answer in the form of `ask --json`, for the
    person's record and never for a memory; None where it was not kept, or not read. `results` are its calls with their
    results (`answers.results_file`), as far as they were kept and read. Hidden values stand in all of them as their
    placeholders."""

    number: int
    asked_at: str
    question: str
    outcome: str | None = None
    answer: str = ""
    facts: tuple[CarriedFact, ...] = ()
    memory: Mapping[str, Any] | None = None
    shown: Mapping[str, Any] | None = None
    results: tuple[Mapping[str, Any], ...] = ()


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


def title_of(question: str) -> str:
    """The first words of a question, in one line."""
    line = " ".join(question.split())
    return line if len(line) <= MAX_TITLE else line[: MAX_TITLE - 1] + "…"


@dataclass(slots=True)
class OpenConversation:
    """A conversation in memory, without what is the analyst's own: what the store has of it and what waits for it."""

    preferences: Preferences = NO_PREFERENCES
    carried: tuple[CarriedFact, ...] = ()
    facts: tuple[CarriedFact, ...] = ()
    turns: int = 0
    cleared_turns: int = 0
    saved: bool = False
    unsaved: list[StoredTurn] = field(default_factory=list)
    newest_memory: Mapping[str, Any] | None = None
    unread: bool = False
    """True while what the store has of it is not recalled, so that it must not be written over."""
    version: Version | None = None
    """What the store has of it, as far as this process knows."""
    kept: frozenset[tuple[int, str, str]] = frozenset()
    """Number, time and question of each turn that was read from the store."""

    def take(self, waiting: Sequence[StoredTurn]) -> None:
        """Go on after turns that were asked before the conversation could be read."""
        for turn in waiting:
            if not self.has(turn):
                self.turns += 1
                turn = replace(turn, number=self.turns)
            self.note(turn)
            self.learn(turn.facts)

    def has(self, turn: StoredTurn) -> bool:
        """Whether the store has `turn`, written by a process that was never told so: the connection broke."""
        return (turn.number, turn.asked_at, turn.question) in self.kept

    def note(self, turn: StoredTurn) -> None:
        """Let `turn` be written next; it takes the place of what was noted of the same turn before."""
        self.unsaved = [*(each for each in self.unsaved if each.number != turn.number), turn][-MAX_UNSAVED:]

    def learn(self, facts: Sequence[CarriedFact]) -> None:
        """Facts that a /clear may carry on."""
        self.facts = (*self.facts, *facts)[-MAX_FACTS:]
