"""Every part of a question counts: two things, yes or no, what is left out, counted by, or not recorded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag_testing.scripted_gateway import ScriptedGateway

pytestmark = pytest.mark.anyio
Ask = Callable[[str], Awaitable[Answer]]


def calls(gateway: ScriptedGateway) -> list[tuple[str, dict[str, object]]]:
    return [(call.tool_name, dict(call.arguments)) for call in gateway.calls]


async def test_two_things_of_a_list_are_both_looked_up(ask: Ask, gateway: ScriptedGateway) -> None:
    answer = await ask("alerts on web-03 and fin-ws-014")
    assert calls(gateway) == [
        ("query_alerts", {"entity": "web-03"}),
        ("query_alerts", {"entity": "fin-ws-014"}),
    ]
    assert "web-03" in answer.text
    assert "fin-ws-014" in answer.text


@pytest.mark.parametrize(
    "question",
    ["which alerts name both web-03 and svc-backup?", "alerts of user svc-backup on host web-03"],
)
async def test_things_meant_together_are_in_one_alert(ask: Ask, gateway: ScriptedGateway, question: str) -> None:
    answer = await ask(question)
    asked = [arguments["entity"] for _, arguments in calls(gateway)]
    assert sorted(map(str, asked)) == ["svc-backup", "web-03"]
    assert answer.text.startswith("Alerts that name both: 1.")
    (table,) = answer.tables
    assert [row[-1] for row in table.rows] == ["Suspicious PowerShell command line"]


async def test_things_that_no_alert_names_together_give_no_rows(ask: Ask) -> None:
    answer = await ask("alerts that name both web-03 and 203.0.113.77")
    assert answer.outcome is Outcome.NO_DATA
    assert answer.text.startswith("None of the alerts names both.")
    assert not answer.tables


@pytest.mark.parametrize(
    ("question", "start"),
    [
        ("is incident 23 closed?", "Yes: status Closed."),
        ("is incident 12 closed?", "No: status Active."),
        ("is it true that incident 23 is still open?", "No: status Closed."),
        ("was incident 12 high severity?", "Yes: severity High."),
        ("is incident 31 high severity?", "No: severity Medium."),
        ("are there any alerts on web-03?", "Yes. "),
        ("is 198.51.100.250 in any alert?", "No. "),
    ],
)
async def test_a_yes_or_no_question_begins_with_the_word(ask: Ask, question: str, start: str) -> None:
    answer = await ask(question)
    assert answer.text.startswith(start)
    if ":" in start:
        assert any(piece.pointer in ("/rows/0/status", "/rows/0/severity") for piece in answer.evidence)


@pytest.mark.parametrize(
    "question",
    ["what is the status of incident 23?", "is incident 23 open or closed?", "are all alerts on web-03 new?"],
)
async def test_other_questions_get_no_verdict(ask: Ask, question: str) -> None:
    answer = await ask(question)
    assert not answer.text.startswith(("Yes", "No:", "No. "))


async def test_a_judgement_that_no_row_holds_is_not_given(ask: Ask) -> None:
    answer = await ask("is svc-backup compromised?")
    assert "I do not judge it" in answer.text.splitlines()[0]


@pytest.mark.parametrize(
    "question",
    [
        "which accounts are in incident 12 except m.keller",
        "trend of alerts per day not from web-03",
    ],
)
async def test_what_cannot_be_left_out_is_asked_back(ask: Ask, gateway: ScriptedGateway, question: str) -> None:
    answer = await ask(question)
    assert answer.outcome is Outcome.CLARIFICATION
    assert "cannot leave that out" in answer.text
    assert gateway.calls == []


@pytest.mark.parametrize("question", ["top 0 hosts", "show me 0 alerts", "the last zero incidents"])
async def test_no_rows_are_asked_back(ask: Ask, gateway: ScriptedGateway, question: str) -> None:
    answer = await ask(question)
    assert answer.outcome is Outcome.CLARIFICATION
    assert gateway.calls == []


@pytest.mark.parametrize("question", ["alerts on 6 july 2024 weekend", "incidents yesterday, then on 2 july 2024"])
async def test_a_second_time_is_not_dropped(ask: Ask, gateway: ScriptedGateway, question: str) -> None:
    answer = await ask(question)
    assert answer.outcome is Outcome.CLARIFICATION
    assert "takes one time" in answer.text
    assert gateway.calls == []


async def test_two_times_that_are_compared_are_both_read(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("compare this week with last week")
    assert [(name, arguments["start_time"]) for name, arguments in calls(gateway)] == [
        ("get_threat_summary", "2024-07-22T00:00:00Z"),
        ("get_threat_summary", "2024-07-15T00:00:00Z"),
    ]


async def test_sign_ins_per_day_are_no_trend_of_alerts(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("sign-ins per day")
    assert "get_alert_trend" not in [name for name, _ in calls(gateway)]


async def test_all_of_them_is_not_confirmed_by_some(ask: Ask) -> None:
    answer = await ask("are all incidents closed?")
    assert answer.text.startswith("These are those of which it is true")


async def test_short_words_for_a_severity_filter(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("how mny hi sev alrts")
    assert calls(gateway) == [("query_alerts", {"severity": "High"})]


async def test_raw_logs_are_not_counted_by_alerts(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("how many failed logins per user last week")
    assert "get_top_entities" not in [name for name, _ in calls(gateway)]


async def test_who_closed_an_incident_is_not_guessed(ask: Ask) -> None:
    answer = await ask("who closed incident 23?")
    assert "Who closed it is not recorded" in answer.text


async def test_a_list_tells_both_numbers_where_they_are_asked(ask: Ask) -> None:
    answer = await ask("list open incidents with their defender id")
    (table,) = answer.tables
    assert table.columns[1:3] == ("Incident", "Defender id")
    assert ("12", "598") in {(row[1], row[2]) for row in table.rows}


@pytest.mark.parametrize(
    "question",
    ["alerts before 5 july 2024 and after 1 july 2024", "alerts after 1 july 2024 and before 5 july 2024"],
)
async def test_two_bounds_make_one_window(ask: Ask, gateway: ScriptedGateway, question: str) -> None:
    await ask(question)
    assert calls(gateway)[0][1] == {"start_time": "2024-07-02T00:00:00Z", "end_time": "2024-07-05T00:00:00Z"}


async def test_every_filter_that_a_yes_or_no_depends_on_is_told(ask: Ask) -> None:
    answer = await ask("is there an alert on web-03 with mimikatz?")
    assert answer.text.startswith("No. No alerts match (name with `mimikatz`, naming `web-03`).")


async def test_things_in_alerts_are_counted_and_not_the_alerts(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("how many different users are in all alerts?")
    assert calls(gateway)[0] == ("get_top_entities", {"kind": "account"})


async def test_the_present_state_does_not_answer_for_the_past(ask: Ask) -> None:
    answer = await ask("was incident 12 ever closed?")
    assert not answer.text.startswith(("Yes", "No"))


async def test_those_without_a_list_are_asked_back(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("is incident 23 closed?")
    before = len(gateway.calls)
    answer = await ask("alerts for those")
    assert answer.outcome is Outcome.CLARIFICATION
    assert len(gateway.calls) == before


async def test_a_query_of_the_logs_runs_for_each_account_and_tells_which(ask: Ask, gateway: ScriptedGateway) -> None:
    answer = await ask("failed sign-ins of m.keller@contoso.example and svc-backup@contoso.example")
    ran = [arguments["parameters"] for name, arguments in calls(gateway) if name == "run_kql_query"]
    assert ran == [{"account": "m.keller@contoso.example"}, {"account": "svc-backup@contoso.example"}]
    assert "for `m.keller@contoso.example`" in answer.text
    assert "for `svc-backup@contoso.example`" in answer.text
