"""Dialogues of people who point at things: none is resolved to a wrong thing, and what is clear is hardly asked back.

`python -m bench dialogues` has two hundred of them, and those whose wordings were held apart.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.dialogues.judging import Thing, judge
from tests.support.dialogues.running import (
    WRITTEN,
    Session,
    Tally,
    alerts_shown,
    dialogues_of,
    run_generated,
    run_written,
)
from tests.support.small_estate import NOW, small_estate
from tests.support.small_estate_rows import alert_id

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("CHAT-6")
@pytest.mark.parametrize("dialogue", dialogues_of(WRITTEN["development"]), ids=lambda dialogue: dialogue["name"])
async def test_a_dialogue_that_was_written_by_hand(dialogue: dict[str, Any]) -> None:
    incidents = {thing.value: thing.incident for thing in (await alerts_shown(small_estate())).values()}

    def things(written: str) -> Thing:
        kind, _, value = written.partition(" ")
        return Thing(kind, alert_id(value), incidents[alert_id(value)]) if kind == "alert" else Thing(kind, value)

    told: list[str] = []
    tally = Tally(told.append)
    await run_written(dialogue, Session(small_estate(), NOW), things, tally)
    assert not tally.total()["wrong"], told
    assert tally.total()["missed"] <= 2, told


@pytest.mark.requirement("CHAT-6")
async def test_dialogues_that_are_made_up() -> None:
    alerts = await alerts_shown(small_estate())
    told: list[str] = []
    tally = Tally(told.append)
    for place in range(15):
        session = Session(small_estate(), NOW)
        await run_generated(f"shift/{place}", "development", session, alerts, tally)
    report = tally.report()
    assert report["wrong"] == 0, told
    assert report["references"] > 150
    assert report["resolved_where_a_careful_person_knows"] > 0.95, told


async def test_the_judge_knows_wrong_from_right() -> None:
    session = Session(small_estate(), NOW)
    await session.say("list open incidents")
    answer = await session.say("who owns [2]")
    assert answer is not None
    calls = session.gateway.calls
    assert judge([Thing("incident", "31")], answer, calls) == "right"
    assert judge([Thing("incident", "40")], answer, calls) == "wrong"
    assert judge([Thing("incident", "31"), Thing("incident", "40")], answer, calls) == "wrong"
    assert judge([], answer, calls) == "wrong"
    back = await session.say("who owns [9]")
    assert back is not None
    assert judge([Thing("incident", "40")], back, session.gateway.calls) == "asked"
