"""Questions in any order: whatever was asked before, each turn ends in an answer that its results hold."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import yaml
from tests.support.small_estate import NOW, small_estate

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.ports import Question
from sentinel_rag.contracts.tool_calls import Denied, Reason, ToolCall

pytestmark = pytest.mark.anyio

BENCH = Path(__file__).resolve().parents[2] / "bench"
WAITS = Denied(ToolCall("", "", ""), Reason.APPROVAL_REQUIRED, "Denied.", "r", approval_id="3f2c9a10")
FOLLOW_UPS = (
    "[1]", "[2]", "yes", "no", "it", "do it now", "again", "never mind", "and [3]?", "next", "the second one", "both",
    "close it", "compare them", "without those", "in Berlin time", "except [1]", "only the high ones", "list them",
    "show all of them", "same for last week", "in the last 7 days", "T1566", "who owns it?",
    "close [1] as undetermined",
    "which are not assigned", "lateral movement", "what triggered the newest one?", "analyze it", "how many are there?",
)  # fmt: skip


def questions() -> list[str]:
    asked = yaml.safe_load((BENCH / "questions" / "development.yaml").read_text())["questions"]
    return [str(item["q"]) for item in asked]


@pytest.mark.requirement("CHAT-13")
@pytest.mark.parametrize("seed", range(25))
async def test_a_dialogue_in_any_order_has_an_answer_to_each_question(seed: int) -> None:
    choice = random.Random(seed)
    pool = questions()
    analyst = OfflineAnalyst(
        small_estate(update_incident=WAITS, add_incident_comment=WAITS), clock=lambda: NOW, timezone="Europe/Berlin"
    )
    dialogue: list[str] = []
    for turn in range(8):
        dialogue.append(choice.choice(FOLLOW_UPS if turn % 2 else pool))
        answer = await analyst.answer(Question(dialogue[-1], "s"))
        assert answer.text.strip(), dialogue
        assert "does not have the agreed shape" not in answer.text, dialogue
        assert [answer.text[each.start : each.end] for each in answer.sentences] == [
            each.text for each in answer.sentences
        ], dialogue
        assert answer.to_dict()["session_id"] == "s"


@pytest.mark.parametrize(
    ("before", "question", "tool"),
    [
        ("whats the operating system of host dc-01", "T1566", "query_alerts"),
        ("hash of mimi.exe", "in the last 7 days", "query_alerts"),
        ("incidents with more than 1 alert", "only the high ones", "query_incidents"),
        ("which alerts name both web-03 and svc-backup?", "only the medium ones", "query_alerts"),
    ],
)
async def test_a_narrowed_look_up_lists_its_rows(before: str, question: str, tool: str) -> None:
    gateway = small_estate()
    analyst = OfflineAnalyst(gateway, clock=lambda: NOW)
    await analyst.answer(Question(before, "s"))
    answer = await analyst.answer(Question(question, "s"))
    assert gateway.calls[-1].tool_name in (tool, "get_top_entities")
    assert " match" in answer.text or "Nothing names" in answer.text
