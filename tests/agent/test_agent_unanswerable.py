"""What cannot be answered as it was asked is asked back or named, and no part of a question is dropped for the rest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from tests.support.small_estate import NOW, rows_result, small_estate

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.ports import Question
from sentinel_rag.sentinel.templates.template_registry import load_templates
from sentinel_rag_testing.scripted_gateway import ScriptedGateway

pytestmark = pytest.mark.anyio
Ask = Callable[[str], Awaitable[Answer]]
SHIPPED = [template.to_row() for template in load_templates().values()]


def last_call(gateway: ScriptedGateway) -> tuple[str, dict[str, object]]:
    return gateway.calls[-1].tool_name, dict(gateway.calls[-1].arguments)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("incidents in the next 24 hours", "has happened"),
        ("alerts over the coming 3 days", "has happened"),
        ("how many incidents will there be next week?", "has happened"),
        ("alerts tomorrow", "has happened"),
        ("which alerts have no incident?", "cannot leave that out"),
        ("alerts without an incident", "cannot leave that out"),
        ("alerts that are not part of any incident", "cannot leave that out"),
        ("who closes the most incidents?", "closed by"),
        ("who closed the fewest incidents in july?", "fewest"),
        ("what did she do?", "Name the account"),
        ("alerts before that", "before that"),
    ],
)
async def test_what_no_tool_answers_is_asked_back(ask: Ask, gateway: ScriptedGateway, question: str, told: str) -> None:
    """Finding R33: such questions were answered by the words that were left of them."""
    answer = await ask(question)
    assert answer.outcome is Outcome.CLARIFICATION
    assert told in answer.text
    assert not gateway.calls


async def test_before_that_is_asked_back_where_no_time_was_spoken_of(ask: Ask, gateway: ScriptedGateway) -> None:
    """Finding R13: "that" became the incident, and "before" was dropped."""
    await ask("details of incident 12")
    before = len(gateway.calls)
    answer = await ask("show the alerts before that")
    assert answer.outcome is Outcome.CLARIFICATION
    assert "“before that”" in answer.text
    assert len(gateway.calls) == before


@pytest.mark.parametrize(
    "question",
    [
        "incidents owned by nobody",
        "incidents assigned to no one",
        "incidents whose owner is none",
        "nobody owns which incidents?",
    ],
)
async def test_nobody_is_no_name(ask: Ask, gateway: ScriptedGateway, question: str) -> None:
    await ask(question)
    assert last_call(gateway) == ("query_incidents", {"owner": "unassigned"})


@pytest.mark.parametrize("technique", ["T1021.002", "T1078"])
async def test_a_technique_that_narrows_no_incidents_is_asked_back(
    ask: Ask, gateway: ScriptedGateway, technique: str
) -> None:
    """Alerts are filtered by technique, incidents are not: it is no word of their titles."""
    answer = await ask(f"list incidents with {technique}")
    assert answer.outcome is Outcome.CLARIFICATION
    assert f"cannot be narrowed by “{technique}”" in answer.text
    assert not gateway.calls
    await ask(f"list alerts with {technique}")
    assert last_call(gateway) == ("query_alerts", {"tactic": technique})


async def test_an_average_is_not_of_the_incident_looked_at_before() -> None:
    gateway = small_estate(list_kql_templates=lambda _: rows_result(SHIPPED, table="", time_column=""))
    analyst = OfflineAnalyst(gateway, clock=lambda: NOW)
    await analyst.answer(Question("details of incident 12", "s"))
    await analyst.answer(Question("average time to close", "s"))
    assert last_call(gateway) == ("run_kql_query", {"template": "mean_time_to_close"})


async def test_both_parts_are_answered_when_and_by_whom(ask: Ask) -> None:
    """Finding R13: only the first was."""
    answer = await ask("when was incident 23 closed and by whom?")
    assert "Closed 2024-" in answer.text
    assert "Who closed it is not recorded" in answer.text


async def test_reopened_is_answered_or_said_not_to_be_told(ask: Ask) -> None:
    answer = await ask("was incident 12 ever reopened?")
    assert "does not tell whether it was ever reopened" in answer.text


async def test_events_of_a_host_are_no_alerts(ask: Ask, gateway: ScriptedGateway) -> None:
    answer = await ask("events on web-03 between 12:00 and 15:10 UTC on 17 July 2024")
    assert answer.outcome is Outcome.CLARIFICATION
    assert "“events”" in answer.text
    assert "query_alerts" not in [call.tool_name for call in gateway.calls]
