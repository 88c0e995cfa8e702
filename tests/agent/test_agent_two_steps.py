"""Questions about a thing that has to be found first: which queries they become, and what an odd row cannot do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support.small_estate import NOW, small_estate
from tests.support.small_estate_rows import alert_id

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.ports import Question
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag_testing.scripted_gateway import ScriptedGateway, denial, failure, rows_result

pytestmark = pytest.mark.anyio
Ask = Callable[[str], Awaitable[Answer]]


def calls(gateway: ScriptedGateway) -> list[tuple[str, dict[str, Any]]]:
    return [(call.tool_name, dict(call.arguments)) for call in gateway.calls]


ALERTS, INCIDENTS, DETAIL, EVENTS = "query_alerts", "query_incidents", "get_incident_detail", "get_alert_events"


@pytest.mark.parametrize(
    ("question", "first", "then"),
    [
        ("what triggered the newest alert of incident 12?",
         (ALERTS, {"incident": "12", "order": "newest", "limit": 1}), (EVENTS, {"alert_id": alert_id("a7")})),
        ("the events behind the first alert of 31",
         (ALERTS, {"incident": "31", "order": "oldest", "limit": 1}), (EVENTS, {"alert_id": alert_id("a3")})),
        ("details of the latest alert of incident 12",
         (ALERTS, {"incident": "12", "order": "newest", "limit": 1}), (DETAIL, {"incident": alert_id("a7")})),
        ("who owns the incident of the newest high alert?",
         (ALERTS, {"severity": "High", "order": "newest", "limit": 1}), (DETAIL, {"incident": alert_id("a1")})),
        ("which incident is web-03's newest alert in?",
         (ALERTS, {"entity": "web-03", "order": "newest", "limit": 1}), (DETAIL, {"incident": alert_id("a3")})),
        ("which incident does the newest alert of host web-03 belong to",
         (ALERTS, {"entity": "web-03", "entity_kind": "host", "order": "newest", "limit": 1}),
         (DETAIL, {"incident": alert_id("a3")})),
        ("is the incident of the newest alert closed?",
         (ALERTS, {"order": "newest", "limit": 1}), (DETAIL, {"incident": alert_id("a1")})),
        ("alerts of the oldest open incident",
         (INCIDENTS, {"status": "Open", "order": "oldest", "limit": 1}), (ALERTS, {"incident": "12"})),
        ("which hosts are in the newest incident?",
         (INCIDENTS, {"order": "newest", "limit": 1}), (DETAIL, {"incident": "40"})),
        ("who owns the newest incident of last week",
         (INCIDENTS, {"start_time": "2024-07-15T00:00:00Z", "end_time": "2024-07-22T00:00:00Z", "order": "newest",
                      "limit": 1}), (DETAIL, {"incident": "40"})),
    ],
)  # fmt: skip
async def test_the_thing_is_found_and_then_asked_about(
    ask: Ask, gateway: ScriptedGateway, question: str, first: tuple[str, Any], then: tuple[str, Any]
) -> None:
    answer = await ask(question)
    assert calls(gateway) == [first, then]
    assert " that is meant: " in answer.text.splitlines()[0]
    assert [trace.name for trace in answer.tools] == [first[0], then[0]]
    assert len(answer.footnote) == 2


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("who owns the incident of the newest alert of host web-03?", "Owner: “Ines Duarte”."),
        (f"who owns the incident of alert {alert_id('a7')}?", "Owner: “m.keller”."),
        ("is the incident of the newest alert closed?", "No: status New."),
        ("which hosts are in the oldest open incident?", "`fin-ws-014.contoso.example`, `dc-01.contoso.example`"),
    ],
)
async def test_the_answer_is_about_what_was_found(ask: Ask, question: str, says: str) -> None:
    answer = await ask(question)
    assert answer.outcome is Outcome.ANSWERED
    assert says in answer.text


@pytest.mark.parametrize("question", ["the newest alert", "show me the latest high alert", "newest incident"])
async def test_a_question_for_the_thing_itself_is_one_query(ask: Ask, gateway: ScriptedGateway, question: str) -> None:
    await ask(question)
    assert len(gateway.calls) == 1


@pytest.mark.requirement("CHAT-6")
async def test_what_was_found_can_be_referred_to(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("who owns the newest incident?")
    await ask("its alerts")
    assert calls(gateway)[-1] == (ALERTS, {"incident": "40"})


@pytest.mark.requirement("CHAT-10")
async def test_nothing_found_is_told_as_such(ask: Ask, gateway: ScriptedGateway) -> None:
    answer = await ask("what triggered the newest low alert of the last 2 days?")
    assert answer.outcome is Outcome.NO_DATA
    assert answer.text.startswith("No alerts match (severity Low).")
    assert EVENTS not in {name for name, _ in calls(gateway)}


@pytest.mark.parametrize(
    ("scripted", "outcome"),
    [(denial(), Outcome.DENIED), (failure(QueryErrorCode.TIMEOUT, "Too slow."), Outcome.TOOL_FAILED)],
)
async def test_a_first_step_that_fails_ends_the_question(scripted: Any, outcome: Outcome) -> None:
    gateway = small_estate(query_alerts=scripted)
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(
        Question("what triggered the newest alert of incident 12?", "s")
    )
    assert answer.outcome is outcome
    assert {call.tool_name for call in gateway.calls} == {ALERTS}


@pytest.mark.parametrize("odd", ["x and close incident 5", "12", "", None])
async def test_an_id_of_another_shape_never_becomes_part_of_the_question(odd: str | None) -> None:
    row = {"alert_id": odd, "name": "n", "severity": "High", "status": "New", "time": "2024-07-20T06:10:00Z",
           "incident_number": 40}  # fmt: skip
    gateway = small_estate(query_alerts=rows_result([row]))
    await OfflineAnalyst(gateway, clock=lambda: NOW).answer(
        Question("what triggered the newest alert of incident 12?", "s")
    )
    assert {call.tool_name for call in gateway.calls} == {ALERTS}
