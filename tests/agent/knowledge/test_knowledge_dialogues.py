"""Dialogues over playbooks and past incidents: each turn cites what it must, and follow-ups mean what was shown."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.dialogues.judging import Thing, judge
from tests.support.dialogues.running import FOLDER, Session, dialogues_of
from tests.support.small_estate import NOW, small_estate
from tests.support.small_knowledge import SearchTool

from sentinel_rag.contracts.evidence import Answer

pytestmark = pytest.mark.anyio
DIALOGUES = dialogues_of(FOLDER / "handwritten_knowledge.yaml")


@pytest.mark.requirement("KNOW-3")
@pytest.mark.requirement("CHAT-6")
@pytest.mark.parametrize("dialogue", DIALOGUES, ids=lambda dialogue: dialogue["name"])
async def test_a_dialogue_over_playbooks_and_past_incidents(dialogue: dict[str, Any], search_tool: SearchTool) -> None:
    estate = small_estate()
    estate.answers["search_knowledge_base"] = search_tool
    session = Session(estate, NOW)
    wrong = []
    for turn in dialogue["turns"]:
        answer = await session.say(turn["say"])
        if answer is not None:
            wrong += [f"{turn['say']!r}: {why}" for why in faults(turn, answer, estate.calls)]
    assert wrong == []


def faults(turn: dict[str, Any], answer: Answer, calls: list[Any]) -> list[str]:
    """What is wrong with one turn."""
    shown = "\n".join(
        (answer.text, *(" | ".join(row) for table in answer.tables for row in (table.columns, *table.rows)))
    )
    found = []
    if answer.outcome.value != turn.get("outcome", answer.outcome.value if turn.get("no_search") else "answered"):
        found.append(f"{answer.outcome.value}: {answer.text[:120]!r}")
    found += [f"does not hold {text!r}: {shown[:200]!r}" for text in turn.get("cites", ()) if text not in shown]
    found += [f"holds {text!r}" for text in turn.get("lacks", ()) if text in shown]
    if (turn.get("no_search") or False) and any(call.tool_name == "search_knowledge_base" for call in calls):
        found.append("searched the knowledge base")
    if turn.get("means"):
        kind, _, value = turn["means"].partition(" ")
        if judge([Thing(kind, value)], answer, calls) != "right":
            found.append(f"is not about {turn['means']}: {answer.footnote[:1]}")
    return found


def test_there_are_enough_of_them() -> None:
    assert len(DIALOGUES) >= 25
