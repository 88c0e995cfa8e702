"""A narrowing argument that no word of the question supports is found, in four languages, and told in one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_rag.agent.scope import NarrowingCode, narrowed, scope_line, unsupported
from sentinel_rag.contracts.tool_calls import ToolCall


def _found(question: str | list[str], tool: str = "query_incidents", **arguments: Any) -> list[str]:
    questions = [question] if isinstance(question, str) else question
    call = ToolCall("c1", "s", tool, arguments)
    return [each.argument for each in unsupported(questions, call, known=(), cut=True)]


@pytest.mark.parametrize(
    ("question", "arguments"),
    [
        ("Which high severity incidents are open?", {"severity": "High", "status": "Open"}),
        ("how many alerts in the last 30 days?", {"time_window": "last_30d"}),
        ("how many alerts in the last week?", {"time_window": "last_14d"}),
        ("any incs in the last 24h", {"time_window": "last_24h"}),
        ("what came in over the last three days", {"time_window": "last_3d"}),
        ("what happened today?", {"start_time": "2026-11-29T00:00:00Z"}),
        ("what happened on 2026-11-26?", {"start_time": "2026-11-26T00:00:00Z", "end_time": "2026-11-26T23:59:59Z"}),
        ("what happened at 23:20?", {"start_time": "2026-11-26T23:00:00Z"}),
        ("what did we close two days ago?", {"time_window": "last_24h", "status": "Closed"}),
        ("at least medium incidents", {"min_severity": "Medium"}),
        ("everything above low", {"min_severity": "Medium"}),
        ("show incidents", {"min_severity": "Informational"}),
        ("which incidents are not closed?", {"status": "Open"}),
        ("what is unassigned?", {"owner": "unassigned"}),
        ("which incs does asa own", {"owner": "asa.oberg@contoso.example"}),
        ("which incidents does Åsa own", {"owner": "Asa Oberg"}),
        ("show the 3 newest incidents", {"limit": 3}),
        ("phishing incidents", {"title_contains": "phish"}),
        ("anything from 203.0.113.66?", {"entity": "203.0.113.66"}),
        ("Welche schwerwiegenden Vorfälle sind offen?", {"severity": "High", "status": "Open"}),
        ("Was kam in den letzten sieben Tagen?", {"time_window": "last_7d"}),
        ("Welche Incidents gab es gestern?", {"time_window": "last_24h"}),
        ("¿Qué incidentes abiertos de severidad alta hay?", {"severity": "High", "status": "Open"}),
        ("¿Cuántas alertas hubo en los últimos 30 días?", {"time_window": "last_30d"}),
        ("¿Cuántas alertas hubo el mes pasado?", {"time_window": "last_30d"}),
        ("Quels incidents critiques sont ouverts ?", {"severity": "High", "status": "Open"}),
        ("Combien d'alertes la semaine dernière ?", {"time_window": "last_7d"}),
        ("Quels incidents sont arrivés aujourd'hui ?", {"time_window": "last_24h"}),
        ("Show what Defender for Identity raised", {"product": "Microsoft Defender for Identity"}),
        ("lateral movement", {"tactic": "LateralMovement"}),
    ],
)
def test_words_numbers_and_names_of_the_question_support_an_argument(question: str, arguments: Any) -> None:
    tool = "query_alerts" if {"product", "tactic"} & set(arguments) else "query_incidents"
    assert _found(question, tool, **arguments) == []


@pytest.mark.parametrize(
    ("question", "arguments"),
    [
        ("Which high severity incidents are open?", {"time_window": "last_7d"}),
        ("how many alerts in the last 30 days?", {"time_window": "last_7d"}),
        ("alerts of the last two weeks", {"start_time": "2026-11-26T00:00:00Z", "end_time": "2026-11-27T00:00:00Z"}),
        ("which accounts show up in most alerts?", {"severity": "High"}),
        ("high alerts", {"severity": "Medium"}),
        ("show incidents", {"min_severity": "Medium"}),
        ("how many incidents are there, by severity?", {"status": "Open"}),
        ("which incidents are open?", {"status": "New"}),
        ("show all incidents", {"owner": "asa.oberg@contoso.example"}),
        ("how many incidents are there?", {"limit": 1}),
        ("show alerts", {"entity": "SystemAlertId"}),
        ("anything from 203.0.113.66?", {"entity": "198.51.100.7"}),
        ("alerts per day", {"time_window": "last_7d"}),
        ("Wie viele Vorfälle sind hier offen?", {"time_window": "last_24h"}),
        ("Welche Vorfälle gibt es?", {"status": "Open"}),
        ("¿Qué incidentes hay?", {"severity": "High"}),
        ("Quels sont mes incidents ?", {"time_window": "last_30d"}),
    ],
)
def test_what_no_word_supports_is_found(question: str, arguments: Any) -> None:
    tool = "query_alerts" if "entity" in arguments else "query_incidents"
    assert set(_found(question, tool, **arguments)) == set(arguments)


def test_earlier_questions_of_the_conversation_support_an_argument_too() -> None:
    assert _found("and the low ones?", severity="Low", time_window="last_7d") == ["time_window"]
    assert _found(["alerts of the last 7 days", "and the low ones?"], severity="Low", time_window="last_7d") == []


def test_what_a_result_holds_was_looked_up() -> None:
    call = ToolCall("c1", "s", "query_alerts", {"entity": "srv-file-01", "start_time": "2026-11-26T23:00:00Z"})
    made_up = unsupported(["show incident 124"], call, known=["nothing"])
    assert [each.code for each in made_up] == [NarrowingCode.NAME, NarrowingCode.TIME]
    assert unsupported(["show incident 124"], call) == ()  # nobody said what the results hold
    assert unsupported(["show incident 124"], call, known=["host SRV-FILE-01 at 2026-11-26 23:20:00"]) == ()


def test_what_names_the_thing_itself_and_what_changes_it_narrows_nothing() -> None:
    assert _found("show it", "get_incident_detail", incident="124") == []
    assert _found("close it", "update_incident", incident="124", status="Closed", severity="Low") == []
    assert _found("read it", "file_read", file_path="a.csv", limit=10) == []
    assert _found("what came?", "query_incidents", time_window=None, status="", entity_kind="ip") == []


def test_one_sentence_tells_all_of_it() -> None:
    def line(question: str, **arguments: Any) -> str:
        call = ToolCall("c1", "s", "query_incidents", arguments)
        return scope_line(unsupported([question], call, known=(), cut=True))

    assert line("Which incidents are high?", severity="High") == ""
    assert line("Which high severity incidents are open?", time_window="last_7d", severity="High", status="Open") == (
        "Looked at only: the last 7 days (chosen by the model; the question names no time)."
    )
    assert line("how many?", time_window="last_24h", min_severity="Medium", status="Open") == (
        "Looked at only: the last 24 hours, severity Medium and above, status Open (chosen by the model; the "
        "question names no time, severity or status)."
    )
    assert line("alerts of the last 30 days", time_window="last_7d") == (
        "Looked at only: the last 7 days (chosen by the model; the question names a longer time)."
    )
    assert line("all", start_time="2026-11-01T00:00:00Z", owner="x\u202ey", limit=1).startswith(
        "Looked at only: what came since 2026-11-01T00:00:00Z, owner `x"
    )
    assert line("how many are there?", limit=1) == (
        "Looked at only: the first row (chosen by the model; the question names no number of rows)."
    )
    assert "\u202e" not in line("all", owner="x\u202ey")


def test_what_one_call_narrows_and_another_does_not_was_looked_at() -> None:
    def call(**arguments: Any) -> ToolCall:
        return ToolCall("c1", "s", "query_incidents", arguments)

    week, whole = call(time_window="last_7d", severity="High"), call(severity="High", limit=50)
    question = ["Which high severity incidents are open?"]
    assert [each.value for each in narrowed(question, [week, week])] == ["last_7d"]
    assert narrowed(question, [week, whole]) == ()
    assert narrowed(question, [week, call(status="Open")]) != ()  # of another scope
    other = ToolCall("c2", "s", "query_alerts", {"severity": "High"})
    assert narrowed(question, [week, other]) != ()
    assert narrowed(question, [week, other, week, other]) != ()  # half of the calls
    assert narrowed(question, [week, other, other]) == ()  # one step of several


def test_of_several_calls_the_line_claims_no_more_than_some() -> None:
    """A model's answer said "Looked at only: the last 3 days" above 20 calls of which most read 30 days."""
    call = ToolCall("c1", "s", "query_incidents", {"time_window": "last_3d"})
    assert scope_line(narrowed(["what is urgent?"], [call]), calls=4) == (
        "Some of the 4 calls looked only at the last 3 days (chosen by the model; the question names no time)."
    )


def test_a_very_long_question_is_read_too() -> None:
    assert _found("high 7 day x " * 20_000, title_contains="absent", status="New") == ["title_contains", "status"]
