"""How often a person may be asked, so that a hijacked agent cannot flood whoever decides.

Judged inside the transaction that would ask, over what the table says. Whoever is turned away gets no approval and a
time after which asking can be useful again; their call stays denied.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from sentinel_rag.audit import RecordConnection
from sentinel_rag.gateway.approvals.binding import Binding
from sentinel_rag.gateway.approvals.table import asker_of, micros

MAX_WAIT_S = 60
"""The longest wait that is suggested while questions are open: somebody may decide one at any moment."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """`pending` questions in all, and of one conversation and of one person at the same time; `asked` of each within
    the life of a question, decided ones included. Sessions that an agent opens by itself are one conversation of its
    key."""

    pending: int = 100
    pending_per_conversation: int = 10
    asked_per_conversation: int = 30
    pending_per_person: int = 20
    asked_per_person: int = 60


@dataclass(frozen=True, slots=True)
class TurnedAway:
    """Nobody was asked. `sentence` names neither data nor other conversations; `retry_after_s` is at least 1."""

    sentence: str
    retry_after_s: int


def turned_away(
    connection: RecordConnection, bounds: Bounds, binding: Binding, person: str | None, now: datetime, life: timedelta
) -> TurnedAway | None:
    """Why this question may not be asked now; None if it may."""
    denied = _earliest(
        connection,
        "SELECT 1, max(decided_at) FROM approval WHERE binding_sha256 = ? AND state = 'denied' AND decided_at > ?",
        [binding.sha256(), micros(now - life)],
    )
    if denied[1] is not None:
        return TurnedAway("A person has denied exactly this call a short while ago.", _seconds(denied[1], now, life))
    counted = [
        (
            "This conversation",
            "asker",
            asker_of(binding, person),
            bounds.pending_per_conversation,
            bounds.asked_per_conversation,
        )
    ]
    if person is not None:
        counted.append(("This person", "person", person, bounds.pending_per_person, bounds.asked_per_person))
    for who, column, value, pending, asked in counted:
        mine = _earliest(
            connection,
            f"SELECT count(*), min(asked_at) FROM approval WHERE {column} = ? AND state = 'pending' AND ends_at > ?",  # noqa: S608  # one of two constants
            [value, micros(now)],
        )
        if mine[0] >= pending:
            sentence = f"{who} has {mine[0]} calls waiting for a person's approval already, and no more are taken."
            return TurnedAway(sentence, min(MAX_WAIT_S, _seconds(mine[1], now, life)))
        recent = _earliest(
            connection,
            f"SELECT count(*), min(asked_at) FROM approval WHERE {column} = ? AND asked_at > ?",  # noqa: S608  # one of two constants
            [value, micros(now - life)],
        )
        if recent[0] >= asked:
            sentence = f"{who} has asked for {recent[0]} approvals within {life.total_seconds() / 60:.0f} minutes."
            return TurnedAway(sentence, _seconds(recent[1], now, life))
    everyone = _earliest(
        connection,
        "SELECT count(*), min(asked_at) FROM approval WHERE state = 'pending' AND ends_at > ?",
        [micros(now)],
    )
    if everyone[0] >= bounds.pending:
        sentence = "Too many calls of all conversations are waiting for a person's approval."
        return TurnedAway(sentence, min(MAX_WAIT_S, _seconds(everyone[1], now, life)))
    return None


def _earliest(connection: RecordConnection, query: str, values: list[object]) -> tuple[int, int | None]:
    count, moment = connection.execute(query, values).fetchone()
    return int(count), moment


def _seconds(since: int | None, now: datetime, life: timedelta) -> int:
    """Whole seconds until `life` after `since` has passed, at least 1."""
    passed = (micros(now) - (since or 0)) / 1e6
    return max(1, math.ceil(life.total_seconds() - passed))
