"""Conversations and turns as they are kept: the values that `record` stores and every route shows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sentinel_rag.surfaces.web.turns.events import Event, sentences_in, written_in

MAX_TITLE = 80


class TurnState(StrEnum):
    """How a turn stands. STOPPED: by the person, or because the surface ended amid it."""

    RUNNING = "running"
    ANSWERED = "answered"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Conversation:
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
class Turn:
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


def turn_of(row: tuple[Any, ...]) -> Turn:
    """The turn of a row: its columns in the order of the fields, the last three as JSON."""
    turn_id, user_id, conversation_id, number, request_id, question, state, asked_at, answer, events, opinion = row
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
        None if opinion is None else json.loads(opinion),
    )
