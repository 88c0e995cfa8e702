"""Two questions in one are both answered, and a window is about the time that the verb names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC

import pytest
from tests.support.small_estate import NOW

from sentinel_rag.agent.planner.tools import parts_of
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.language.frames import Reader
from sentinel_rag.language.times import Now, read_time_in_its_zone
from sentinel_rag_testing.scripted_gateway import ScriptedGateway

pytestmark = pytest.mark.anyio
Ask = Callable[[str], Awaitable[Answer]]


def calls(gateway: ScriptedGateway) -> list[tuple[str, dict[str, object]]]:
    return [(call.tool_name, dict(call.arguments)) for call in gateway.calls]


async def test_both_counts_are_answered_each_with_its_evidence(ask: Ask, gateway: ScriptedGateway) -> None:
    answer = await ask("how many high alerts and how many incidents are there?")
    assert answer.outcome is Outcome.ANSWERED
    assert [name for name, _ in calls(gateway)] == ["query_alerts", "query_incidents"]
    assert {piece.call_id for piece in answer.evidence} == {tool.call_id for tool in answer.tools}
    assert len(answer.footnote) == 2
    assert "alerts" in answer.text
    assert "incidents" in answer.text


async def test_two_severities_that_are_no_threshold_are_two_counts(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("how many low and informational alerts?")
    assert calls(gateway) == [
        ("query_alerts", {"severity": "Low"}),
        ("query_alerts", {"severity": "Informational"}),
    ]


async def test_high_and_medium_is_one_threshold(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("how many high and medium alerts?")
    assert calls(gateway) == [("query_alerts", {"min_severity": "Medium"})]


READER = Reader(lambda text: read_time_in_its_zone(text, Now(NOW, UTC)))


@pytest.mark.parametrize(
    "question",
    ["which accounts and hosts are in incident 12?", "how many alerts has it and which hosts?", "high and low", ""],
)
def test_other_conjunctions_are_one_question(question: str) -> None:
    assert parts_of(READER.read(question)) == (question,)


def test_many_counts_are_bounded() -> None:
    question = " and ".join(["how many alerts"] * 40)
    assert len(parts_of(READER.read(question))) <= 4


@pytest.mark.parametrize(
    ("question", "time_field"),
    [
        ("how many incidents were closed in july 2024?", "closed"),
        ("how many incidents did we close in july 2024?", "closed"),
        ("incidents resolved in july 2024", "closed"),
        ("which incidents were updated in july 2024", "updated"),
        ("incidents that changed in july 2024", "updated"),
        ("how many incidents were created in july 2024?", None),
        ("closed incidents of july 2024", None),
        ("incidents not closed in july 2024", None),
        ("how many incidents were closed?", None),
    ],
)
async def test_the_verb_says_which_time_a_window_is_about(
    ask: Ask, gateway: ScriptedGateway, question: str, time_field: str | None
) -> None:
    await ask(question)
    name, arguments = calls(gateway)[0]
    assert name == "query_incidents"
    assert arguments.get("time_field") == time_field
    assert ("start_time" in arguments) is ("july" in question)
