"""Ports: where one zone's code meets the world it does not own.

Each has a shipped second implementation under `testing` or a second real one, and both pass the same tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from sentinel_rag.contracts.conversations import NO_PREFERENCES, CarriedFact, Preferences, Remembered
from sentinel_rag.contracts.evidence import Answer, Progress
from sentinel_rag.contracts.tool_calls import ToolCall, ToolOutcome

ProgressListener = Callable[[Progress], None]
Clock = Callable[[], datetime]
"""The current time in UTC, aware; an argument so that "yesterday" can be tested."""

MAX_QUESTION_CHARACTERS = 8_000
"""The longest question that is read; surfaces refuse a longer one before an analyst sees it."""


def utc_now() -> datetime:
    """The clock of the product."""
    return datetime.now(UTC)


class ToolGateway(Protocol):
    """The only way in which an agent gets anything done."""

    async def execute(self, call: ToolCall) -> ToolOutcome:
        """Judge and run one call. Never raises for a refusal, a failing tool or a gateway that is away."""
        ...

    async def offered_tools(self) -> frozenset[str]:
        """Names of the tools that can be called at all now; none if the gateway cannot tell. Never raises."""
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a conversation, as a surface puts it."""

    text: str
    session_id: str
    preferences: Preferences = NO_PREFERENCES
    """The workspace that the surface asks for, by name; the zone (an IANA name) in which "today" begins and times are
    shown too; how much the person wants to read. None leaves it to the question, the conversation and the default."""
    progress: ProgressListener | None = None


class Analyst(Protocol):
    """Answers one question of a conversation; the offline analyst and the model-driven loop both do."""

    async def answer(self, question: Question) -> Answer:
        """One turn. The analyst keeps what it needs of the session's earlier turns. Never raises for a tool; raises
        UsageError for a time zone that is not known."""
        ...

    def clear(self, session_id: str, carried: Sequence[CarriedFact]) -> None:
        """Drop what was said (the user's /clear), but for `carried`, which stay as data of their time. What was shown
        under a number keeps it."""
        ...

    def forget(self, session_id: str) -> None:
        """Drop all of the conversation."""
        ...

    def remembered(self, session_id: str) -> Remembered | None:
        """What the conversation's memory is after its newest turn; None for one that is not known here."""
        ...

    def recall(self, session_id: str, remembered: Remembered) -> None:
        """Take over the memory of a conversation that was stored. Parts that cannot be read are left out."""
        ...


class Chat(Protocol):
    """What surfaces talk to: an analyst whose conversations are kept."""

    async def answer(self, question: Question) -> Answer:
        """One turn, as `Analyst.answer`. What is None stays as it was in this conversation."""
        ...

    async def clear(self, session_id: str, *, carry: bool) -> tuple[CarriedFact, ...]:
        """Start over. With `carry` in the same session: supported facts stay, and are returned; else all is dropped."""
        ...

    async def delete(self, session_id: str) -> None:
        """Remove the conversation, with what is kept of its turns. Raises UnavailableError if that cannot be done."""
        ...
