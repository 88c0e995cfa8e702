"""A conversation as the store keeps it: values without a database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sentinel_rag.contracts.conversations import NO_PREFERENCES, CarriedFact, Preferences

MAX_TITLE = 80
STOPPED = "stopped"
"""The outcome of a turn that was cancelled, or that a crash cut off."""

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
