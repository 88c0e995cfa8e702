"""What a hurried analyst types: short forms, times of day, classifications, "which incident is that in?" after a query
of the logs, and what must be asked back because no call can answer it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.small_estate import NOW, rows_result, small_estate

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.ports import Question
from sentinel_rag.sentinel.templates.template_registry import load_templates
from sentinel_rag_testing.scripted_gateway import ScriptedGateway

pytestmark = pytest.mark.anyio

SHIPPED = tuple(template.to_row() for template in load_templates().values())
Call = tuple[str, dict[str, Any]]
NAMES = {"get_top_entities"}
"""What is asked for names of the workspace where a word is not understood."""


async def ask(*questions: str, gateway: ScriptedGateway | None = None) -> tuple[Answer, list[Call]]:
    """The answer to the last question of a conversation, and the calls that it made beside the list of templates."""
    estate = gateway or small_estate()
    estate.answers["list_kql_templates"] = lambda _: rows_result(SHIPPED, table="", time_column="")
    analyst = OfflineAnalyst(estate, clock=lambda: NOW)
    for question in questions[:-1]:
        await analyst.answer(Question(question, "s"))
    estate.calls.clear()
    answer = await analyst.answer(Question(questions[-1], "s"))
    made = [(call.tool_name, dict(call.arguments)) for call in estate.calls]
    return answer, [call for call in made if call[0] != "list_kql_templates"]


@pytest.mark.requirement("CHAT-8")
@pytest.mark.parametrize(
    ("said", "start", "end"),
    [
        ("between 2 and 4 pm yesterday", "2024-07-22T14:00:00Z", "2024-07-22T16:00:00Z"),
        ("between 8 and 10 am on the 19th", "2024-07-19T08:00:00Z", "2024-07-19T10:00:00Z"),
        ("3-5am today", "2024-07-23T03:00:00Z", "2024-07-23T05:00:00Z"),
        ("from 11 to 1 pm yesterday", "2024-07-22T11:00:00Z", "2024-07-22T13:00:00Z"),
        ("2:30 to 4pm yesterday", "2024-07-22T14:30:00Z", "2024-07-22T16:00:00Z"),
        ("between 10pm and 2am on 1 july", "2024-07-01T22:00:00Z", "2024-07-02T02:00:00Z"),
        ("from 8pm to midnight on 1 july", "2024-07-01T20:00:00Z", "2024-07-02T00:00:00Z"),
        ("after 22:00 on the 14th", "2024-07-14T22:00:00Z", "2024-07-15T00:00:00Z"),
        ("before 10am on 2 july", "2024-07-02T00:00:00Z", "2024-07-02T10:00:00Z"),
        ("before noon yesterday", "2024-07-22T00:00:00Z", "2024-07-22T12:00:00Z"),
        ("since 22:00 on the 14th", "2024-07-14T22:00:00Z", None),
        ("after midnight", "2024-07-23T00:00:00Z", None),
    ],
)
async def test_a_time_of_day_is_read_on_the_day_and_in_the_half_that_was_said(
    said: str, start: str, end: str | None
) -> None:
    _, calls = await ask(f"alerts {said}")
    window = {"start_time": start} | ({} if end is None else {"end_time": end})
    assert calls[0] == ("query_alerts", window)


async def test_a_number_beside_a_time_of_day_is_no_time() -> None:
    """ "Incident 12 and 4 pm" is no range from noon."""
    _, calls = await ask("show alerts of incident 12 at 4 pm")
    assert calls[0][1]["incident"] == "12"
    assert calls[0][1]["start_time"] == "2024-07-22T16:00:00Z"


@pytest.mark.parametrize(
    ("question", "query", "parameters"),
    [
        ("mails from evil@phish.example", "emails_from_sender", {"sender": "evil@phish.example"}),
        ("logons of svc-backup", "logons_of_account", {"account": "svc-backup"}),
        ("logons on dc-01", "logons_on_host", {"host": "dc-01"}),
        ("top 5 users by failures", "failed_signins_by_user", {}),
        ("what did m.keller do yesterday", "account_activity_timeline", {"account": "m.keller"}),
        ("is 203.0.113.9 known bad", "threat_indicator_lookup", {"indicator": "203.0.113.9"}),
        ("did anyone click login-update.example", "url_clicks", {"url_contains": "login-update.example"}),
    ],
)
async def test_rows_of_the_logs_are_asked_of_the_query_that_has_them(
    question: str, query: str, parameters: dict[str, str]
) -> None:
    _, calls = await ask(question)
    assert calls[0][1].get("template") == query
    assert calls[0][1].get("parameters", {}) == parameters


@pytest.mark.parametrize(
    "question",
    [
        "sign-ins not from germany",
        "processes on web-03 excluding svchost",
        "logons outside the vpn",
        "sign-ins that were not successful",
    ],
)
async def test_a_query_of_the_logs_that_leaves_something_out_is_asked_back(question: str) -> None:
    answer, calls = await ask(question)
    assert answer.outcome is Outcome.CLARIFICATION
    assert {tool for tool, _ in calls} <= NAMES


@pytest.mark.parametrize(
    ("before", "entity"),
    [
        ("sign-ins from 203.0.113.77", {"entity": "203.0.113.77", "entity_kind": "ip"}),
        ("processes on host web-03", {"entity": "web-03", "entity_kind": "host"}),
    ],
)
async def test_after_a_query_of_the_logs_that_means_the_thing_it_was_narrowed_to(
    before: str, entity: dict[str, str]
) -> None:
    answer, calls = await ask(before, "which incident is that in?")
    assert calls == [("query_incidents", entity)]
    assert "31" in answer.text


@pytest.mark.parametrize("before", [(), ("rare processes",)])
async def test_which_incident_with_nothing_to_point_at_is_asked_back(before: tuple[str, ...]) -> None:
    answer, calls = await ask(*before, "which incident is that in?")
    assert (answer.outcome, calls) == (Outcome.CLARIFICATION, [])


class TestClassification:
    async def test_incidents_closed_in_one_way_are_chosen_among_the_closed_ones(self) -> None:
        answer, calls = await ask("incidents closed as benign positive")
        assert calls == [("query_incidents", {"status": "Closed", "classification": "BenignPositive", "limit": 100})]
        assert answer.text.startswith("2 incidents match (status Closed, closed as `BenignPositive`)")

    async def test_none_of_them_is_said_as_none(self) -> None:
        for question in ("incidents closed as false positive", "how many incidents were closed as false positive"):
            answer, _ = await ask(question)
            assert answer.text.startswith("No incidents match (status Closed, closed as `FalsePositive`)")

    async def test_a_window_is_about_the_closing(self) -> None:
        _, calls = await ask("how many tickets closed as benign positive this month")
        assert calls[0][1]["time_field"] == "closed"

    async def test_they_can_be_those_of_the_list_before(self) -> None:
        _, calls = await ask("incidents of june", "how many of those were benign positives")
        assert calls[0][1]["start_time"] == "2024-06-01T00:00:00Z"
        assert calls[0][1]["status"] == "Closed"

    async def test_later_words_never_drop_the_classification(self) -> None:
        answer, calls = await ask("incidents closed as benign positive", "only the low ones")
        assert calls[0][1]["classification"] == "BenignPositive"
        assert "1 incident matches (severity Low, status Closed, closed as `BenignPositive`)" in answer.text

    async def test_the_rest_of_them_is_chosen_in_the_same_way(self) -> None:
        answer, _ = await ask("incidents closed as benign positive", "show all")
        assert answer.text.startswith("2 incidents match (status Closed, closed as `BenignPositive`)")

    @pytest.mark.parametrize("question", ["incidents not closed as false positive", "alerts closed as false positive"])
    async def test_what_cannot_be_told_by_it_is_asked_back(self, question: str) -> None:
        answer, calls = await ask(question)
        assert (answer.outcome, calls) == (Outcome.CLARIFICATION, [])

    @pytest.mark.parametrize(
        ("question", "verdict"),
        [
            ("was 23 closed as fp", "No: classification “BenignPositive”."),
            ("is 23 a benign positive", "Yes: classification “BenignPositive”."),
        ],
    )
    async def test_yes_or_no_is_about_the_classification_and_not_the_closing_alone(
        self, question: str, verdict: str
    ) -> None:
        answer, _ = await ask(question)
        assert answer.text.splitlines()[0] == verdict

    async def test_no_verdict_where_none_is_recorded(self) -> None:
        answer, _ = await ask("is 40 a true positive")
        assert not answer.text.startswith(("Yes", "No"))
        assert "Classification: not recorded" in answer.text


class TestCountsByAField:
    async def test_without_a_noun_it_is_asked_of_what(self) -> None:
        answer, calls = await ask("how many by severity last month")
        assert (answer.outcome, calls) == (Outcome.CLARIFICATION, [])
        assert "[1] incidents" in answer.text

    async def test_after_a_list_it_is_of_that_list(self) -> None:
        answer, calls = await ask("incidents of july", "how many by severity")
        window = {"start_time": "2024-07-01T00:00:00Z", "end_time": "2024-08-01T00:00:00Z"}
        assert calls == [("query_incidents", window)]
        assert "By severity: High 3, Medium 1, Low 1." in answer.text


@pytest.mark.parametrize(
    ("question", "number"),
    [("whos assigned to 31", "31"), ("who was assigned to 12", "12"), ("whats the latest on 12", "12"),
     ("is 40 a tp", "40")],
)  # fmt: skip
async def test_a_bare_number_is_an_incident_where_the_words_ask_inside_one(question: str, number: str) -> None:
    _, calls = await ask(question)
    assert calls[0] == ("get_incident_detail", {"incident": number})


@pytest.mark.parametrize("question", ["whats open n unassigned", "open and unassigned"])
async def test_what_has_an_owner_is_an_incident(question: str) -> None:
    _, calls = await ask(question)
    assert calls == [("query_incidents", {"status": "Open", "owner": "unassigned"})]


async def test_alerts_that_are_not_closed_are_asked_for_after_a_list_too() -> None:
    _, calls = await ask("alerts for m.keller", "only the ones not closed")
    assert [arguments["status"] for _, arguments in calls] == ["New", "InProgress"]
    assert {arguments["entity"] for _, arguments in calls} == {"m.keller"}


async def test_a_product_is_left_out_under_its_older_name_too() -> None:
    answer, _ = await ask("alerts not from mde")
    assert "4 of 8 alerts." in answer.text
    assert "older name" in answer.text


async def test_severities_are_left_out_without_an_apostrophe() -> None:
    answer, _ = await ask("incs that arent high")
    assert answer.text.startswith("3 of 6 incidents. Condition: `severity != High`.")


@pytest.mark.parametrize("before", [(), ("incidents that are not assigned to m.keller",)])
async def test_words_that_lean_on_no_list_are_asked_back(before: tuple[str, ...]) -> None:
    """What an answer left out cannot be narrowed as a query, and nothing else may be taken for it."""
    answer, calls = await ask(*before, "only the high ones")
    assert (answer.outcome, calls) == (Outcome.CLARIFICATION, [])


@pytest.mark.parametrize(
    ("question", "windows"),
    [
        ("alerts more than last week?", ("2024-07-22T00:00:00Z", "2024-07-15T00:00:00Z")),
        ("fewer incidents than last month?", ("2024-07-01T00:00:00Z", "2024-06-01T00:00:00Z")),
        ("compare this week and last week", ("2024-07-22T00:00:00Z", "2024-07-15T00:00:00Z")),
    ],
)
async def test_a_period_is_compared_with_the_one_that_runs_now(question: str, windows: tuple[str, str]) -> None:
    _, calls = await ask(question)
    assert [tool for tool, _ in calls] == ["get_threat_summary"] * 2
    assert tuple(arguments["start_time"] for _, arguments in calls) == windows


async def test_filters_are_kept_where_periods_are_compared() -> None:
    _, calls = await ask("are there more high alerts than yesterday")
    assert [(tool, arguments["severity"]) for tool, arguments in calls] == [("query_alerts", "High")] * 2
    assert {arguments["start_time"] for _, arguments in calls} == {"2024-07-22T00:00:00Z", "2024-07-23T00:00:00Z"}


@pytest.mark.parametrize("question", ["more failed logins than last week?", "more hosts than yesterday?"])
async def test_what_has_no_count_by_period_is_not_answered_with_one_period(question: str) -> None:
    answer, calls = await ask(question)
    assert (answer.outcome, calls) == (Outcome.CLARIFICATION, [])


@pytest.mark.parametrize("question", ["alerts without owner", "alerts w/o owner", "alerts assigned to ines"])
async def test_an_owner_is_not_dropped_from_a_question_about_alerts(question: str) -> None:
    answer, calls = await ask(question)
    assert (answer.outcome, calls) == (Outcome.CLARIFICATION, [])
    assert "[1] incidents" in answer.text


async def test_an_offer_never_asks_for_what_was_left_out() -> None:
    _, calls = await ask("alerts not owned by m.keller", "[1]")
    assert calls == []


async def test_the_incidents_of_that_owner_are_offered() -> None:
    _, calls = await ask("alerts without owner", "[1]")
    assert calls == [("query_incidents", {"owner": "unassigned"})]


@pytest.mark.parametrize("question", ["any logins from russia", "admin logons today", "sign-ins of bob from berlin"])
async def test_rows_of_the_logs_that_no_query_gives_are_not_answered_from_alerts(question: str) -> None:
    """ "No. No alerts match" would say that nobody signed in from there."""
    answer, calls = await ask(question)
    assert answer.outcome is Outcome.CLARIFICATION
    assert {tool for tool, _ in calls} <= NAMES


@pytest.mark.parametrize(
    ("question", "query", "parameters"),
    [
        ("failed sign-ins by user > 10", "failed_signins_by_user", {"min_failures": 11}),
        ("ips with at least 5 failed sign-ins", "failed_signins_by_ip", {"min_failures": 5}),
        ("rare processes with fewer than 3 executions", "rare_processes", {"max_executions": 2}),
        ("failed sign-ins by user in more than 3 days", "failed_signins_by_user", {}),
    ],
)
async def test_a_bound_goes_to_the_one_parameter_of_its_side(
    question: str, query: str, parameters: dict[str, int]
) -> None:
    _, calls = await ask(question)
    assert calls[0][1]["template"] == query
    assert calls[0][1].get("parameters", {}) == parameters


@pytest.mark.parametrize(
    ("question", "query"),
    [
        ("which ips had the most failed sign-ins", "failed_signins_by_ip"),
        ("users with the most failed sign-ins", "failed_signins_by_user"),
        ("hosts with the most processes", "processes_by_host"),
        ("top 3 noisy rules", "alert_count_by_name"),
        ("which of our rules fire the most often", "alert_count_by_name"),
    ],
)
async def test_the_kind_that_a_list_is_of_decides_between_queries(question: str, query: str) -> None:
    _, calls = await ask(question)
    assert calls[0][1]["template"] == query


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("high incidents since 6", "2024-07-23T06:00:00Z", None),
        ("alerts per hour yesterday between 8 and 12", "2024-07-22T08:00:00Z", "2024-07-22T12:00:00Z"),
    ],
)
async def test_a_bare_number_is_an_hour_where_nothing_else_fits(question: str, start: str, end: str | None) -> None:
    _, calls = await ask(question)
    assert (calls[0][1].get("start_time"), calls[0][1].get("end_time")) == (start, end)


@pytest.mark.parametrize("question", ["incidents between 12 and 18", "incidents since 31", "alerts before 12"])
async def test_a_number_that_bounds_nothing_known_is_asked_back(question: str) -> None:
    answer, calls = await ask(question)
    assert (answer.outcome, calls) == (Outcome.CLARIFICATION, [])


@pytest.mark.parametrize(
    "question",
    [
        "did svc-backup log in at night",
        "sign-ins during office hours",
    ],
)
async def test_hours_of_every_day_are_not_dropped(question: str) -> None:
    answer, calls = await ask(question)
    assert answer.outcome is Outcome.CLARIFICATION
    assert {tool for tool, _ in calls} <= NAMES


async def test_alerts_of_the_newest_incidents_are_not_the_newest_alerts() -> None:
    answer, calls = await ask("show alerts for the last 3 incidents")
    assert (answer.outcome, calls) == (Outcome.CLARIFICATION, [])


@pytest.mark.parametrize(
    "question",
    [
        "mails to ines.duarte@contoso.example",
        "who sent mail to ines.duarte@contoso.example",
        "connections from 10.0.0.5",
    ],
)
async def test_a_query_of_one_direction_is_not_run_for_the_other(question: str) -> None:
    answer, calls = await ask(question)
    assert (answer.outcome, calls) == (Outcome.CLARIFICATION, [])


async def test_an_account_is_no_part_of_a_url() -> None:
    answer, calls = await ask("what did m.keller click on")
    assert [tool for tool, _ in calls] == ["query_alerts"]
    assert answer.text.startswith("I looked at alerts only.")


@pytest.mark.parametrize("question", ["how many alerts on each host", "alerts by host"])
async def test_alerts_for_each_thing_are_counted_by_it(question: str) -> None:
    _, calls = await ask(question)
    assert calls == [("get_top_entities", {"kind": "host"})]


@pytest.mark.parametrize(("word", "order"), [("first", "oldest"), ("last", "newest")])
async def test_first_and_last_seen_are_one_alert(word: str, order: str) -> None:
    _, calls = await ask(f"when was 203.0.113.77 {word} seen")
    assert calls == [("query_alerts", {"entity": "203.0.113.77", "order": order, "limit": 1})]


@pytest.mark.parametrize(("sign", "told"), [(">", "2 of 6 incidents."), (">=", "6 of 6 incidents.")])
async def test_signs_compare_numbers_of_alerts_as_words_do(sign: str, told: str) -> None:
    answer, _ = await ask(f"incidents with {sign} 1 alert")
    assert answer.text.startswith(told)


@pytest.mark.parametrize(
    ("question", "filtered"),
    [
        ("top 5 hosts in mde alerts", "Defender for Endpoint"),
        ("mde incidents", "Defender for Endpoint"),
    ],
)
async def test_a_filter_that_no_call_takes_is_asked_back(question: str, filtered: str) -> None:
    answer, calls = await ask(question)
    assert (answer.outcome, calls) == (Outcome.CLARIFICATION, [])
    assert answer.text.startswith(f"That query cannot be narrowed by “{filtered}”.")


async def test_a_filter_that_no_stored_query_takes_is_calculated_with() -> None:
    answer, calls = await ask("credential access alerts per day")
    assert calls == [("query_alerts", {"tactic": "CredentialAccess", "limit": 100})]
    assert answer.text.startswith("11 days; most in `2024-07-09`, `2024-07-19`: 1 of 2 alerts. Read: 2 alerts")
    answer, calls = await ask("mean time to close low incidents")
    assert calls == [("query_incidents", {"severity": "Low", "status": "Closed", "limit": 100})]
    assert answer.text.startswith("The mean time from creation to closing is 5 hours, over 1 incident.")


async def test_nothing_to_calculate_with_is_said_as_none() -> None:
    answer, _ = await ask("mean time to close high incidents")
    assert answer.text.startswith("No incidents match (severity High, status Closed).")


@pytest.mark.parametrize("question", ["whats new", "high alerts per day", "open incidents assigned to ines"])
async def test_a_filter_that_is_taken_is_not_said_to_be_dropped(question: str) -> None:
    answer, _ = await ask(question)
    assert "could not be narrowed" not in answer.text


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("was 23 closed by m.keller", "cannot be narrowed by “m.keller”"),
        ("incidents with comments", "cannot be narrowed by “comments”"),
    ],
)
async def test_what_no_filter_says_is_told(question: str, why: str) -> None:
    answer, calls = await ask(question)
    assert (answer.outcome, calls) == (Outcome.CLARIFICATION, [])
    assert why in answer.text


async def test_the_incident_that_took_longest_is_chosen_among_the_closed_ones() -> None:
    answer, calls = await ask("which incident took longest to close")
    assert calls == [("query_incidents", {"status": "Closed", "limit": 100})]
    assert answer.text.startswith("Incident 7 was open for 5 hours.")


@pytest.mark.parametrize("question", ["phishing last week", "phishing, last week"])
async def test_a_time_is_no_part_of_a_keyword(question: str) -> None:
    _, calls = await ask(question)
    assert calls[0][1]["title_contains"] == "phishing"
    assert calls[0][1]["start_time"] == "2024-07-15T00:00:00Z"


@pytest.mark.parametrize("question", ["who has the most open incidents", "workload per analyst"])
async def test_counts_by_people_are_a_query_of_their_own(question: str) -> None:
    _, calls = await ask(question)
    assert calls[0][1].get("template") == "incidents_by_owner"


async def test_the_incident_that_is_open_longest_is_the_oldest_open_one() -> None:
    _, calls = await ask("longest open incident")
    assert calls[0] == ("query_incidents", {"status": "Open", "order": "oldest", "limit": 1})


@pytest.mark.parametrize(
    ("question", "query", "parameters"),
    [
        ("emails from contoso.example yesterday", "emails_from_sender", {"sender": "contoso.example"}),
        ("mails from evil@phish.example last 3d", "emails_from_sender", {"sender": "evil@phish.example"}),
    ],
)
async def test_a_preposition_stays_with_the_name_behind_it(
    question: str, query: str, parameters: dict[str, str]
) -> None:
    _, calls = await ask(question)
    assert (calls[0][1]["template"], calls[0][1]["parameters"]) == (query, parameters)


async def test_what_somebody_did_is_not_asked_of_a_host_of_that_name() -> None:
    answer, calls = await ask("processes started by m.keller")
    assert (answer.outcome, calls) == (Outcome.CLARIFICATION, [])


async def test_the_name_of_an_attack_is_looked_up_without_the_word_for_many_of_it() -> None:
    _, calls = await ask("brute force attempts last night")
    assert calls[0][1]["title_contains"] == "brute force"
    assert calls[0][1]["start_time"] == "2024-07-22T18:00:00Z"


@pytest.mark.parametrize("question", ["any bruteforce?", "any brute-force?"])
async def test_a_technique_written_in_one_word_is_the_same(question: str) -> None:
    _, calls = await ask(question)
    assert ("query_alerts", "T1110") in [(tool, arguments.get("tactic")) for tool, arguments in calls]


@pytest.mark.parametrize(
    ("question", "tool", "arguments"),
    [
        ("oldest open case", "query_incidents", {"status": "Open", "order": "oldest", "limit": 1}),
        ("whats m.keller working on", "query_incidents", {"owner": "m.keller"}),
        ("false positives vs true positives", "run_kql_query", {"template": "incidents_by_classification"}),
        ("tickets per analyst", "run_kql_query", {"template": "incidents_by_owner"}),
        (
            "incidents in q2",
            "query_incidents",
            {"start_time": "2024-04-01T00:00:00Z", "end_time": "2024-07-01T00:00:00Z"},
        ),
        (
            "incidents in q4 2023",
            "query_incidents",
            {"start_time": "2023-10-01T00:00:00Z", "end_time": "2024-01-01T00:00:00Z"},
        ),
    ],
)
async def test_a_managers_words_find_their_call(question: str, tool: str, arguments: dict[str, Any]) -> None:
    _, calls = await ask(question)
    assert calls[0] == (tool, arguments)


async def test_the_same_query_is_run_for_another_thing_of_its_shape() -> None:
    _, calls = await ask("sign-ins from 203.0.113.77", "same for 203.0.113.9")
    assert calls[0][1] == {"template": "signins_from_ip", "parameters": {"ip": "203.0.113.9"}}


@pytest.mark.parametrize("question", ["is that sender in an incident"])
async def test_what_is_not_named_is_asked_for(question: str) -> None:
    answer, calls = await ask(question)
    assert (answer.outcome, calls) == (Outcome.CLARIFICATION, [])
