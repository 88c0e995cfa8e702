"""A conversation that is going on in this process, as far as it is not the analyst's own: a value without a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sentinel_rag.agent.remembering.stored import StoredTurn, Version
from sentinel_rag.contracts.conversations import NO_PREFERENCES, CarriedFact, Preferences

MAX_UNSAVED = 30
"""Turns that wait for a store that fails; the oldest are given up."""
MAX_FACTS = 200


@dataclass(slots=True)
class OpenConversation:
    """A conversation in memory: what the store has of it, and what is not written yet."""

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
