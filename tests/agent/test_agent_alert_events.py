"""Field report G4 in words: the events behind an alert that was listed, named or is in focus."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.small_estate import NOW, small_estate
from tests.support.small_estate_rows import alert_id

from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.ports import Question
from sentinel_rag_testing.scripted_gateway import ScriptedGateway, denial

pytestmark = pytest.mark.anyio

POWERSHELL = alert_id("a3")


def calls(gateway: ScriptedGateway) -> list[tuple[str, dict[str, Any]]]:
    return [(call.tool_name, dict(call.arguments)) for call in gateway.calls]


@pytest.mark.parametrize(
    "question",
    [
        "show the events behind alert 3",
        "show the events behind alert [3]",
        "show me the raw events behind [3]",
        "what triggered alert 3?",
        "which raw events are behind the third one",
        "which events triggered alert [3]",
        "show the underlying events of [3]",
        "what are the rows behind alert 3",
        "run the stored query of [3]",
        "show the logs behind the third alert",
        "why did alert 3 fire?",
        "what is the query behind alert [3]?",
    ],
)
async def test_events_behind_a_listed_alert_are_asked_for_by_its_id(ask: Any, gateway: Any, question: str) -> None:
    """Field report G4: 'show the events behind alert [1]'."""
    await ask("newest 5 alerts")
    answer = await ask(question)
    assert calls(gateway)[-1] == ("get_alert_events", {"alert_id": POWERSHELL}), question
    assert answer.outcome is Outcome.ANSWERED
    assert "finds 3 events" in answer.text
    assert "The alert itself told 4 when it was raised." in answer.text
    assert [row[-1] for row in answer.tables[-1].rows][1] == "whoami.exe /all"


@pytest.mark.parametrize(
    "question",
    ["what triggered this alert?", "show the events behind it", "which raw events are behind that alert?"],
)
async def test_events_behind_the_alert_in_focus(ask: Any, gateway: Any, question: str) -> None:
    await ask(f"details of alert {POWERSHELL}")
    await ask(question)
    assert calls(gateway)[-1] == ("get_alert_events", {"alert_id": POWERSHELL})


async def test_events_behind_an_alert_named_by_its_id_and_how_many(ask: Any, gateway: Any) -> None:
    answer = await ask(f"show the first 2 events behind alert {POWERSHELL}")
    assert calls(gateway)[-1] == ("get_alert_events", {"alert_id": POWERSHELL, "limit": 2})
    assert "Rows shown: 2." in answer.text
    assert len(answer.tables[-1].rows) == 2


async def test_every_figure_of_the_answer_has_its_place_in_the_result(ask: Any, gateway: Any) -> None:
    answer: Answer = await ask(f"what triggered alert {POWERSHELL}?")
    assert {"/coverage/rows_total", "/summary/events_told"} <= {piece.pointer for piece in answer.evidence}
    assert any(piece.pointer == "/rows/2/ProcessCommandLine" for piece in answer.evidence)


async def test_an_alert_without_a_query_is_answered_with_its_evidence(ask: Any) -> None:
    answer = await ask(f"show the events behind alert {alert_id('a6')}")
    assert answer.outcome is Outcome.ANSWERED
    assert answer.text.startswith("No query is stored with this alert.")
    assert "stores no query with its alerts" in answer.text
    assert any("dropper.exe" in cell for table in answer.tables for row in table.rows for cell in row)


async def test_a_query_that_may_not_run_is_shown_as_data_with_the_reason(ask: Any) -> None:
    answer = await ask(f"what triggered alert {alert_id('a2')}?")
    assert "was not run" in answer.text
    assert "externaldata reads from outside the workspace" in answer.text
    assert "`externaldata(x: string) ['https://files.example/list.csv']`" in answer.text


async def test_an_incident_has_alerts_to_choose_from(ask: Any, gateway: Any) -> None:
    answer = await ask("what triggered incident 31?")
    assert calls(gateway)[-1] == ("query_alerts", {"incident": "31"})
    assert "Events stand behind a single alert." in answer.text
    await ask("show the events behind [2]")
    assert calls(gateway)[-1][0] == "get_alert_events"


async def test_no_alert_in_sight_is_asked_back(ask: Any, gateway: Any) -> None:
    answer = await ask("show the events behind the alert")
    assert answer.outcome is Outcome.CLARIFICATION
    assert not calls(gateway)


async def test_an_alert_that_does_not_exist_is_said(ask: Any) -> None:
    answer = await ask("show the events behind alert 3f1c2b6a-0d7e-4c55-9b1f-6f0f2a9d1e99")
    assert answer.outcome is Outcome.NO_DATA
    assert "There is no such alert" in answer.text


async def test_a_refusal_of_the_gateway_is_no_empty_result() -> None:
    from sentinel_rag.agent.offline import OfflineAnalyst

    gateway = small_estate(get_alert_events=denial("raw_events_never"))
    analyst = OfflineAnalyst(gateway, clock=lambda: NOW)
    answer = await analyst.answer(Question(f"what triggered alert {POWERSHELL}?", "s"))
    assert answer.outcome is Outcome.DENIED
    assert "raw_events_never" in answer.text


@pytest.mark.parametrize(
    ("question", "tool"),
    [
        ("show the newest alerts", "query_alerts"),
        ("how many alerts fired yesterday", "query_alerts"),
        ("which alerts name web-03", "query_alerts"),
        ("which queries can you run", "list_kql_templates"),
        ("what happened in the last 24 hours", "get_threat_summary"),
        ("timeline of incident 12", "get_incident_detail"),
    ],
)
async def test_other_questions_are_still_what_they_were(ask: Any, gateway: Any, question: str, tool: str) -> None:
    await ask(question)
    assert calls(gateway)[0][0] == tool
