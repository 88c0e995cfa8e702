"""A time that points at an answer before is resolved or asked back; dropped, it would widen the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag_testing.scripted_gateway import ScriptedGateway

pytestmark = pytest.mark.anyio
Ask = Callable[[str], Awaitable[Answer]]
LAST_WEEK = {"start_time": "2024-07-15T00:00:00Z", "end_time": "2024-07-22T00:00:00Z"}
BUSIEST = {"start_time": "2024-07-17T00:00:00Z", "end_time": "2024-07-18T00:00:00Z"}


def last_call(gateway: ScriptedGateway) -> tuple[str, dict[str, object]]:
    return gateway.calls[-1].tool_name, dict(gateway.calls[-1].arguments)


@pytest.mark.requirement("CHAT-6")
@pytest.mark.parametrize(
    ("question", "tool"),
    [
        ("show the alerts of that day", "query_alerts"),
        ("alerts on the busiest day", "query_alerts"),
        ("which incidents were created on that same day?", "query_incidents"),
        ("what happened that day?", "get_threat_summary"),
    ],
)
async def test_the_peak_of_a_trend_is_that_day(ask: Ask, gateway: ScriptedGateway, question: str, tool: str) -> None:
    """Finding R3: all alerts of the whole retention were listed."""
    await ask("alerts per day last week")
    await ask(question)
    name, arguments = last_call(gateway)
    assert name == tool
    assert {key: arguments[key] for key in BUSIEST} == BUSIEST


async def test_the_day_goes_on_being_meant(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("alerts on 17 July 2024")
    await ask("and the incidents of that day?")
    name, arguments = last_call(gateway)
    assert name == "query_incidents"
    assert {key: arguments[key] for key in BUSIEST} == BUSIEST


async def test_the_busiest_day_behind_a_window_is_of_that_window(ask: Ask, gateway: ScriptedGateway) -> None:
    """Finding R5: the window was dropped, and the peak was that of all retained alerts."""
    await ask("alerts per day last week")
    await ask("what was the busiest day?")
    assert last_call(gateway) == ("get_alert_trend", {**LAST_WEEK, "interval": "1d"})
    await ask("show the alerts of that day")
    assert last_call(gateway) == ("query_alerts", BUSIEST)


@pytest.mark.parametrize(
    "question",
    ["show the alerts of that day", "alerts of that night", "incidents of the same week", "alerts on the busiest day"],
)
async def test_a_time_that_nothing_told_of_is_asked_back(ask: Ask, gateway: ScriptedGateway, question: str) -> None:
    await ask("show the newest alerts")
    before = len(gateway.calls)
    answer = await ask(question)
    assert answer.outcome is Outcome.CLARIFICATION
    assert "date" in answer.text
    assert len(gateway.calls) == before


async def test_the_day_of_an_incident_is_offered(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("details of incident 12")
    answer = await ask("show the alerts of that day")
    assert answer.outcome is Outcome.CLARIFICATION
    await ask("[1]")
    assert last_call(gateway) == (
        "query_alerts",
        {"start_time": "2024-07-02T00:00:00Z", "end_time": "2024-07-03T00:00:00Z"},
    )


async def test_a_bucket_of_another_width_is_no_day(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("alerts per hour on 17 July 2024")
    answer = await ask("incidents of that week")
    assert answer.outcome is Outcome.CLARIFICATION


async def test_words_in_quotation_marks_are_no_time(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask('incidents with "that day" in the title')
    assert gateway.calls[0].arguments == {"title_contains": "that day"}
