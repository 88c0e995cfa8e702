"""References across turns: lists, "that incident", refinements, and a memory that is bounded and never an answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support.small_estate import NOW, small_estate

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.agent.offline.conversation import Conversations
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.ports import Question
from sentinel_rag_testing.scripted_gateway import ScriptedGateway, rows_result

Ask = Callable[[str], Awaitable[Answer]]


def last_call(gateway: ScriptedGateway) -> tuple[str, dict[str, Any]]:
    return gateway.calls[-1].tool_name, dict(gateway.calls[-1].arguments)


@pytest.mark.anyio
@pytest.mark.requirement("CHAT-6")
@pytest.mark.parametrize(
    ("before", "question", "tool", "arguments"),
    [
        (["list open incidents"], "[3]", "get_incident_detail", {"incident": "18"}),
        (["list open incidents"], "2", "get_incident_detail", {"incident": "31"}),
        (["list open incidents"], "tell me more about the second one", "get_incident_detail", {"incident": "31"}),
        (["list open incidents"], "the last one", "get_incident_detail", {"incident": "12"}),
        (["list open incidents"], "alerts of [4]", "query_alerts", {"incident": "12"}),
        (["list open incidents"], "what is the last incident", "get_incident_detail", {"incident": "40"}),
        (["what is incident 12 about"], "its alerts", "query_alerts", {"incident": "12"}),
        (["what is incident 12 about"], "who owns that incident?", "get_incident_detail", {"incident": "12"}),
        (["what is incident 12 about"], "which hosts are involved", "get_incident_detail", {"incident": "12"}),
        (["list open incidents", "tell me about [2]"], "and its comments?", "get_incident_detail", {"incident": "31"}),
        (["newest 5 alerts"], "details of [2]", "get_incident_detail", {"incident": "31"}),
        (["newest 5 alerts"], "+-10 minutes around alert [2]", "query_alerts",
         {"start_time": "2024-07-19T07:50:00Z", "end_time": "2024-07-19T08:10:00Z"}),
        (["newest 5 alerts", "details of [2]"], "5 min before and after that alert", "query_alerts",
         {"start_time": "2024-07-19T07:55:00Z", "end_time": "2024-07-19T08:05:00Z"}),
        (["top accounts"], "alerts for the first one", "query_alerts",
         {"entity": "m.keller", "entity_kind": "account"}),
        (["alerts of the last 30 days"], "only the high ones", "query_alerts",
         {"time_window": "last_30d", "severity": "High"}),
        (["high alerts"], "and medium and up?", "query_alerts", {"min_severity": "Medium"}),
        (["incidents this week"], "same for last week", "query_incidents",
         {"start_time": "2024-07-15T00:00:00Z", "end_time": "2024-07-22T00:00:00Z"}),
        (["list open incidents"], "and the closed ones?", "query_incidents", {"status": "Closed"}),
        (["alerts of host dc-01"], "what about host web-03?", "query_alerts",
         {"entity": "web-03", "entity_kind": "host"}),
        (["alerts for user m.keller"], "in the last 30 days", "query_alerts",
         {"entity": "m.keller", "entity_kind": "account", "time_window": "last_30d"}),
        (["who owns incident 12"], "and 18?", "get_incident_detail", {"incident": "18"}),
        (["top hosts"], "and accounts?", "get_top_entities", {"kind": "account"}),
        (["list incidents"], "tell me about the third", "get_incident_detail", {"incident": "23"}),
        (["what is incident 12 about"], "show me the alerts", "query_alerts", {"incident": "12"}),
        (["how many high alerts"], "list them", "query_alerts", {"severity": "High"}),
        (["show 3 alerts"], "show more", "query_alerts", {"limit": 3, "offset": 3}),
        (["show 3 alerts", "show more"], "the next page", "query_alerts", {"limit": 3, "offset": 6}),
        (["show 3 alerts"], "the next 2", "query_alerts", {"limit": 2, "offset": 3}),
        (["show 3 alerts"], "show the rest", "query_alerts", {"limit": 100, "offset": 3}),
        (["show 3 incidents", "next"], "only the high ones", "query_incidents", {"severity": "High", "limit": 3}),
        (["list incidents"], "all of them", "query_incidents", {"limit": 100}),
    ],
)  # fmt: skip
async def test_what_a_reference_means(
    ask: Ask, gateway: ScriptedGateway, before: list[str], question: str, tool: str, arguments: dict[str, Any]
) -> None:
    for earlier in before:
        await ask(earlier)
    await ask(question)
    assert last_call(gateway) == (tool, arguments)


@pytest.mark.anyio
async def test_the_next_page_goes_on_numbering(ask: Ask) -> None:
    first = await ask("show 3 alerts")
    more = await ask("show more")
    assert [row[0] for row in first.tables[0].rows] == ["[1]", "[2]", "[3]"]
    assert [row[0] for row in more.tables[0].rows] == ["[4]", "[5]", "[6]"]
    assert (await ask("details of [1]")).text.startswith("“Inbox rule forwards mail outside”")


@pytest.mark.anyio
@pytest.mark.parametrize(
    "question", ["[9]", "that incident", "its alerts", "the second one", "show more", "yes", "that host"]
)
async def test_a_reference_to_nothing_is_asked_back(ask: Ask, gateway: ScriptedGateway, question: str) -> None:
    answer = await ask(question)
    assert answer.outcome is Outcome.CLARIFICATION
    assert not gateway.calls


@pytest.mark.anyio
@pytest.mark.requirement("CHAT-16")
async def test_a_question_about_a_state_queries_again(ask: Ask, gateway: ScriptedGateway) -> None:
    for _ in range(3):
        await ask("status of incident 12")
    assert len(gateway.calls) == 3


@pytest.mark.anyio
@pytest.mark.requirement("CHAT-16")
async def test_a_change_between_two_turns_is_seen() -> None:
    states = [
        rows_result([{"number": 12, "title": "One", "status": status}], summary={"matched_by": "incident_number"})
        for status in ("Active", "Closed")
    ]
    analyst = OfflineAnalyst(small_estate(get_incident_detail=states), clock=lambda: NOW)
    assert "Status: Active." in (await analyst.answer(Question("status of incident 12", "s"))).text
    assert "Status: Closed." in (await analyst.answer(Question("what is its status now", "s"))).text


@pytest.mark.anyio
async def test_sessions_do_not_see_each_other(analyst: OfflineAnalyst) -> None:
    await analyst.answer(Question("list open incidents", "one"))
    other = await analyst.answer(Question("[1]", "two"))
    assert other.outcome is Outcome.CLARIFICATION


@pytest.mark.anyio
@pytest.mark.requirement("CHAT-6")
@pytest.mark.requirement("CHAT-7")
async def test_numbers_stay_valid_after_a_clear_and_a_call_id_is_never_reused(
    ask: Ask, analyst: OfflineAnalyst
) -> None:
    first = await ask("list open incidents")
    analyst.clear("shift-1", ())
    again = await ask("who owns [2]")
    assert again.tools[0].arguments == {"incident": "31"}
    assert first.tools[0].call_id != again.tools[0].call_id


@pytest.mark.anyio
async def test_a_clear_drops_the_last_query_and_what_was_offered(ask: Ask, analyst: OfflineAnalyst) -> None:
    await ask("what is incident 12 about")
    analyst.clear("shift-1", ())
    assert (await ask("yes")).outcome is Outcome.CLARIFICATION
    assert (await ask("show more")).outcome is Outcome.CLARIFICATION


def test_there_are_never_more_open_conversations_than_the_limit() -> None:
    conversations = Conversations(limit=3)
    for number in range(10):
        conversations.of(f"s{number}").person = str(number)
    assert conversations.of("s9").person == "9"
    assert conversations.of("s0").person == ""
