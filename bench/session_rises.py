"""What it costs when a call raises all sessions of its key, by how many the key has open; beside the same rise with two
statements for each session, in one run, alternating."""

from __future__ import annotations

import itertools
import statistics
import time
from typing import Any

from sentinel_rag.audit import RecordConnection
from sentinel_rag.contracts.labels import BOTTOM, TOP
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.gateway.store import State
from sentinel_rag.gateway.store.session_tables import Opener, raise_below, raise_one

SESSIONS, ROUNDS = (1, 1_000, 20_000), 5


def rises(state: State) -> dict[str, Any]:
    """Milliseconds in one transaction of `state`, medians; the ratio is that of one statement after another."""
    keys = (f"rising-{number}" for number in itertools.count())
    found: dict[str, Any] = {}
    for many in SESSIONS:
        at_once: list[float] = []
        one_by_one: list[float] = []
        for _ in range(ROUNDS):
            at_once.append(_timed(state, next(keys), many, _at_once))
            one_by_one.append(_timed(state, next(keys), many, _one_by_one))
        found[f"sessions_{many}"] = {
            "rise_ms": round(statistics.median(at_once) * 1e3, 2),
            "one_by_one_ms": round(statistics.median(one_by_one) * 1e3, 2),
            "ratio_to_one_by_one": round(
                statistics.median(ours / theirs for ours, theirs in zip(at_once, one_by_one, strict=True)), 3
            ),
        }
    return found


def _timed(state: State, key_id: str, many: int, rise: Any) -> float:
    at = format_time(utc_now())
    rows = [(f"{key_id}-{number}", key_id, at, at, *_levels()) for number in range(many)]
    state.database.run_now(
        lambda connection: connection.executemany(
            "INSERT INTO session (session_id, key_id, opened_at, used_at, sensitivity, integrity) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            rows,
        )
    )
    began = time.perf_counter()
    state.database.run_now(lambda connection: rise(connection, key_id))
    return time.perf_counter() - began


def _levels() -> tuple[int, int]:
    return BOTTOM.sensitivity.value, BOTTOM.integrity.value


def _at_once(connection: RecordConnection, key_id: str) -> None:
    raise_below(connection, Opener.AGENT, key_id, TOP, ("call", "read", utc_now()))


def _one_by_one(connection: RecordConnection, key_id: str) -> None:
    below = connection.execute(
        "SELECT session_id FROM session WHERE key_id = ? AND user_key_id IS NULL AND closed_at IS NULL "
        "AND sensitivity = ? AND integrity = ?",
        [key_id, *_levels()],
    ).fetchall()
    for (session_id,) in below:
        raise_one(connection, session_id, TOP, ("call", "read", utc_now()))
