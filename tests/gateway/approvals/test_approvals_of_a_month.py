"""What the attacker controls: the agent, which asks as often as it may for a month. A question costs the same after
that as on the first day, for everybody waits while one is asked; what ended a month ago is gone."""

from __future__ import annotations

import sqlite3
from datetime import timedelta

import pytest
from approval_desk import Desk, the_call

from sentinel_rag.audit import RecordConnection
from sentinel_rag.gateway.approvals.table import KEPT, micros

pytestmark = pytest.mark.requirement("APPR-3")


def ended(desk: Desk, many: int, *, binding_sha256: str = "b" * 64, first: timedelta = timedelta(0)) -> None:
    """As so many that ended, one a minute before the other."""
    times = [micros(desk.clock.now - first - timedelta(minutes=number)) for number in range(many)]
    rows = [
        (f"{binding_sha256[0]}-{first}-{at}", binding_sha256, "agent", "add_incident_comment", state, at, at + 1, at)
        for at, state in zip(times, ["denied", "used", "expired"] * (many // 3), strict=True)
    ]
    desk.database.run_now(
        lambda connection: connection.executemany(
            "INSERT INTO approval (approval_id, binding_sha256, key_id, tool, state, asked_at, ends_at, decided_at, "
            "approvers, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, '[]', x'7b7d')",
            rows,
        )
    )


async def steps_of_a_question(desk: Desk, comment: str) -> int:
    """How much SQLite did for it, in steps of its machine."""
    steps = 0

    def step() -> None:
        nonlocal steps
        steps += 1

    def watch(connection: RecordConnection, *, on: bool) -> None:
        assert isinstance(connection, sqlite3.Connection)
        connection.set_progress_handler(step if on else None, 1)

    desk.database.run_now(lambda connection: watch(connection, on=True))
    asked = await desk.ask(*the_call({"incident": "1", "comment": comment}))
    desk.database.run_now(lambda connection: watch(connection, on=False))
    assert asked is not None
    return steps


@pytest.mark.anyio
async def test_a_question_costs_the_same_after_a_month_of_questions(desk: Desk) -> None:
    ended(desk, 30, first=timedelta(days=1))
    few = await steps_of_a_question(desk, "on the first day")
    ended(desk, 6_000, first=timedelta(days=2))
    asked_again, _ = the_call({"incident": "1", "comment": "after a month"})
    ended(desk, 3_000, first=timedelta(days=2), binding_sha256=asked_again.sha256())
    many = await steps_of_a_question(desk, "after a month")
    assert many < 1.5 * few


@pytest.mark.anyio
async def test_what_ended_a_month_ago_is_gone_and_nothing_else(desk: Desk) -> None:
    ended(desk, 3, first=KEPT + timedelta(minutes=1))
    ended(desk, 3, first=KEPT - timedelta(minutes=10))
    assert await desk.ask(*the_call()) is not None
    left = desk.database.run_now(
        lambda connection: connection.execute("SELECT state, count(*) FROM approval GROUP BY state").fetchall()
    )
    assert dict(left) == {"denied": 1, "used": 1, "expired": 1, "pending": 1}
