"""What is read for a model before it answers, and what it is told that nobody has read."""

from __future__ import annotations

import pytest
from tests.support.small_estate import NOW, small_estate

from sentinel_rag.agent.history import Budget
from sentinel_rag_testing.scripted_gateway import ScriptedGateway, rows_result
from sentinel_rag_testing.scripted_model import calls_reply, text_reply

pytestmark = pytest.mark.anyio
WHOLE = {
    "number": 40,
    "title": "Odd sign-in",
    "severity": "High",
    "status": "New",
    "timeline": [],
    "alerts": [
        {"alert_id": "a-1", "name": "Odd sign-in", "product": "Azure Sentinel"},
        {"alert_id": "a-2", "name": "Mail", "product": "Office 365 Advanced Threat Protection"},
    ],
    "entities": {
        "account": [{"kind": "account", "name": "ignore-all-rules@contoso.example"}],
        "host": [{"kind": "host", "name": "web-03.contoso.example"}],
    },
}
ANSWER = text_reply("Incident 40 is High [c1.1].")


def estate(**answers: object) -> ScriptedGateway:
    answers = {"get_incident_detail": rows_result([WHOLE]), "search_knowledge_base": rows_result([]), **answers}
    return small_estate(lambda: NOW, **answers)


def made(at) -> list[tuple[str, dict[str, object]]]:
    return [(call.tool_name, dict(call.arguments)) for call in at.gateway.calls]


@pytest.mark.requirement("CHAT-17")
async def test_an_incident_that_is_named_is_read_with_cases_like_it_and_the_rows_behind_its_rules(desk):
    at = desk(ANSWER, gateway=estate())
    answer = await at.ask("What happened in incident 40?")
    assert made(at) == [
        ("get_incident_detail", {"incident": "40", "detail": "full"}),
        ("search_knowledge_base", {"like_incident": "40"}),
        ("get_alert_events", {"alert_id": "a-1"}),
        ("query_incidents", {"entity": "ignore-all-rules@contoso.example", "limit": 10}),
        ("query_incidents", {"entity": "web-03.contoso.example", "limit": 10}),
    ]
    assert len(at.server.requests) == 1
    assert "[c1.1]" in at.results()[0]
    assert [trace.name for trace in answer.tools] == [tool for tool, _ in made(at)]
    assert at.states(answer) == {"Incident 40 is High.": "values_found"}


@pytest.mark.parametrize(
    ("question", "read"),
    [
        ("Who owns incident 40?", 1),
        ("Compare incidents 40 and 18", 2),
        ("Compare incidents 40, 31, 18 and 12", 0),
        ("What is open?", 0),
        ("Close incident 40 as a false positive", 0),
    ],
)
async def test_no_more_is_read_than_the_question_names(desk, question, read):
    at = desk(text_reply("I see."), gateway=estate())
    await at.ask(question)
    assert [tool for tool, _ in made(at)] == ["get_incident_detail"] * read


async def test_what_the_conversation_holds_is_not_read_again(desk):
    at = desk(ANSWER, gateway=estate())
    await at.ask("What happened in incident 40?")
    before = len(made(at))
    await at.ask("And who is behind incident 40?")
    assert len(made(at)) == before


async def test_a_small_context_is_left_to_the_model(desk):
    at = desk(ANSWER, gateway=estate(), budget=Budget.of_context(8_000))
    await at.ask("What happened in incident 40?")
    assert made(at) == []


async def test_what_nobody_read_is_told_once_by_the_numbers_of_rows(desk):
    timeline = (
        "run_kql_query",
        {"template": "account_activity_timeline", "parameters": {"account": "ignore-all-rules"}},
    )
    at = desk(calls_reply(timeline), ANSWER, gateway=estate(run_kql_query=rows_result([{"n": 1}])))
    await at.ask("What happened in incident 40?")
    first, second = (at.results(place)[-1].rpartition("</tool_result>")[2] for place in (0, 1))
    assert "(Not read so far: c1.5 (process_on_host), c1.4 (account_activity_timeline). Read of" in first
    assert "ignore-all-rules" not in first, "a name out of rows is never told as a word of ours"
    assert "Not read so far" not in second, "it is told once"


async def test_an_address_inside_is_not_followed_by_sign_ins(desk):
    addresses = [{"kind": "ip", "name": name} for name in ("10.20.0.26", "203.0.113.66", "fd00::7")]
    whole = {**WHOLE, "entities": {"ip": addresses}}
    at = desk(ANSWER, gateway=estate(get_incident_detail=rows_result([whole])))
    await at.ask("What happened in incident 40?")
    told = at.results()[-1].rpartition("</tool_result>")[2]
    assert "c1.5 (signins_from_ip)" in told
    assert told.count("(network_connections_to_ip)") == 2


async def test_incidents_of_a_list_are_no_work_that_was_left(desk):
    at = desk(calls_reply(("query_incidents", {})), ANSWER)
    await at.ask("Which one is worst?")
    assert "Not read so far" not in at.results()[-1]


async def test_what_an_earlier_question_left_unread_is_not_told_again(desk):
    at = desk(ANSWER, gateway=estate())
    await at.ask("What happened in incident 40?")
    at.script(calls_reply(("query_alerts", {}), first=50), ANSWER)
    await at.ask("Which alerts are there?")
    assert "Not read so far" not in at.results()[-1]


async def test_who_shares_a_first_name_is_somebody_else(desk):
    search = ("search_logs", {"text": "ignore-all.others@contoso.example"})
    whole = {**WHOLE, "entities": {"account": [{"kind": "account", "name": "ignore-all.rules@contoso.example"}]}}
    tools = estate(search_logs=rows_result([{"n": 1}]), get_incident_detail=rows_result([whole]))
    at = desk(
        calls_reply(search), calls_reply(("get_incident_detail", {"incident": "40"}), first=5), ANSWER, gateway=tools
    )
    await at.ask("What is behind the worst case?")
    assert "c2.4 (account_activity_timeline)" in at.results()[-1]


async def test_of_much_that_nobody_read_what_most_results_name_is_told(desk):
    accounts = [{"kind": "account", "name": f"user{n}@contoso.example"} for n in range(9)]
    whole = {**WHOLE, "entities": {"account": accounts}}
    alerts = rows_result([{"alert_id": "a-9", "name": "Odd sign-in", "account": "user7@contoso.example"}])
    at = desk(
        calls_reply(("query_alerts", {})),
        ANSWER,
        gateway=estate(get_incident_detail=rows_result([whole]), query_alerts=alerts),
    )
    await at.ask("Compare incidents 40 and 18")
    told = at.results()[-2].rpartition("(Not read so far: ")[2]
    assert told.count("account_activity_timeline") <= 5
