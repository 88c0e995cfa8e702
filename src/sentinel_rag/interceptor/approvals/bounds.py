"""How often a person may be asked, so that a hijacked agent cannot flood whoever decides.

Judged inside the transaction that would ask, over what the table says. Whoever is turned away gets no approval and a
time after which asking can be useful again; their call stays denied.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from sentinel_rag.audit import Connection
from sentinel_rag.interceptor.approvals.table import micros

MAX_WAIT_S = 60
"""The longest wait that is suggested while questions are open: somebody may decide one at any moment."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """`pending` questions in all and `pending_per_key` of one key at the same time; `asked_per_key` of one key within
    the life of a question, decided ones included."""

    pending: int = 100
    pending_per_key: int = 10
    asked_per_key: int = 30


@dataclass(frozen=True, slots=True)
class TurnedAway:
    """Nobody was asked. `sentence` names neither data nor other keys; `retry_after_s` is at least 1."""

    sentence: str
    retry_after_s: int


def turned_away(
    connection: Connection, bounds: Bounds, key_id: str, binding_sha256: str, now: datetime, life: timedelta
) -> TurnedAway | None:
    """Why this key may not ask about this binding now; None if it may."""
    denied = _earliest(
        connection,
        "SELECT 1, max(decided_at) FROM approval WHERE binding_sha256 = ? AND state = 'denied' AND decided_at > ?",
        [binding_sha256, micros(now - life)],
    )
    if denied[1] is not None:
        return TurnedAway("A person has denied exactly this call a short while ago.", _seconds(denied[1], now, life))
    mine = _earliest(
        connection,
        "SELECT count(*), min(asked_at) FROM approval WHERE key_id = ? AND state = 'pending' AND ends_at > ?",
        [key_id, micros(now)],
    )
    if mine[0] >= bounds.pending_per_key:
        sentence = f"This key has {mine[0]} calls waiting for a person's approval already, and no more are taken."
        return TurnedAway(sentence, min(MAX_WAIT_S, _seconds(mine[1], now, life)))
    recent = _earliest(
        connection,
        "SELECT count(*), min(asked_at) FROM approval WHERE key_id = ? AND asked_at > ?",
        [key_id, micros(now - life)],
    )
    if recent[0] >= bounds.asked_per_key:
        sentence = f"This key has asked for {recent[0]} approvals within {life.total_seconds() / 60:.0f} minutes."
        return TurnedAway(sentence, _seconds(recent[1], now, life))
    everyone = _earliest(
        connection,
        "SELECT count(*), min(asked_at) FROM approval WHERE state = 'pending' AND ends_at > ?",
        [micros(now)],
    )
    if everyone[0] >= bounds.pending:
        sentence = "Too many calls of all keys are waiting for a person's approval."
        return TurnedAway(sentence, min(MAX_WAIT_S, _seconds(everyone[1], now, life)))
    return None


def _earliest(connection: Connection, query: str, values: list[object]) -> tuple[int, int | None]:
    count, moment = connection.execute(query, values).fetchone()
    return int(count), moment


def _seconds(since: int | None, now: datetime, life: timedelta) -> int:
    """Whole seconds until `life` after `since` has passed, at least 1."""
    passed = (micros(now) - (since or 0)) / 1e6
    return max(1, math.ceil(life.total_seconds() - passed))
