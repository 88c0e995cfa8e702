"""Which alert of an incident began right before or right after another one."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.small_estate import NOW
from tests.support.small_estate_rows import alert_id

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.ports import Question
from sentinel_rag_testing.scripted_gateway import ScriptedGateway, rows_result

pytestmark = pytest.mark.anyio


def row(short: str, name: str, began: str) -> dict[str, Any]:
    return {
        "alert_id": alert_id(short), "name": name, "severity": "High", "status": "New", "description": "Text.",
        "time": "2024-07-05T00:00:00Z", "start_time": began, "incident_number": 12, "entities": [], "entity_count": 0,
    }  # fmt: skip


ROWS = (
    row("a1", "Rare mail attachment opened", "2024-07-02T09:00:00Z"),
    row("a2", "Credential dump", "2024-07-02T09:30:00.5Z"),
    row("a3", "Beacon traffic", "2024-07-02T09:30:00Z"),
    row("a4", "Beacon traffic", "2024-07-02T11:00:00Z"),
    row("a5", "Mailbox rule created", "2024-07-02T12:00:00Z"),
)


async def ask(question: str, *, total: int | None = None) -> tuple[Answer, ScriptedGateway]:
    gateway = ScriptedGateway({"query_alerts": rows_result(ROWS, total=len(ROWS) if total is None else total)})
    return await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question(question, "s")), gateway


@pytest.mark.parametrize(
    ("question", "neighbour"),
    [
        ("which alert came right before the credential dump in incident 12?", "Beacon traffic"),
        ("What happened after the credential dump in incident 12?", "Beacon traffic"),
        ("what alert preceded “Beacon traffic” in incident 12", "Rare mail attachment opened"),
        ("In incident 12, which alert followed the beacon traffic?", "Mailbox rule created"),
    ],
)
async def test_the_neighbour_goes_by_when_the_activity_began(question: str, neighbour: str) -> None:
    answer, gateway = await ask(question)
    assert answer.outcome is Outcome.ANSWERED
    assert f"is “{neighbour}”, which began at" in answer.text.splitlines()[0]
    assert [dict(call.arguments) for call in gateway.calls] == [{"incident": "12", "limit": 100}]


async def test_several_alerts_of_one_name_are_told_and_the_one_taken_is_said() -> None:
    answer, _ = await ask("which alert came before the beacon traffic in incident 12?")
    assert "2 alerts of that name are there; I took the earliest of them." in answer.text


async def test_before_the_first_there_is_none() -> None:
    answer, _ = await ask("which alert came before the rare mail attachment in incident 12?")
    assert answer.outcome is Outcome.NO_DATA
    assert answer.text.startswith("No alert of incident 12 began before “Rare mail attachment opened”")


async def test_words_that_fit_no_alert_are_not_found() -> None:
    answer, _ = await ask("which alert came before the wiper in incident 12?")
    assert answer.outcome is Outcome.NO_DATA
    assert "No alert of the incident is called so" in answer.text


async def test_a_part_of_the_alerts_is_said_to_be_one() -> None:
    answer, _ = await ask("which alert came after the credential dump in incident 12?", total=140)
    assert "Only 5 of the 140 alerts of the incident were compared." in answer.text
