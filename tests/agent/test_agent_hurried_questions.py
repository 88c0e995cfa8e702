"""What a hurried analyst types: short forms, times of day, classifications, "which incident is that in?" after a query
of the logs, and what must be asked back because no call can answer it."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.sentinel.template_registry import load_templates
from sentinel_rag.testing.scripted_gateway import ScriptedGateway
from sentinel_rag.testing.small_estate import NOW, rows_result, small_estate

pytestmark = pytest.mark.anyio

SHIPPED = tuple(template.to_row() for template in load_templates().values())
Call = tuple[str, dict[str, Any]]


async def ask(*questions: str, gateway: ScriptedGateway | None = None) -> tuple[Answer, list[Call]]:
    """The answer to the last question of a conversation, and the calls that it made beside the list of templates."""
    estate = gateway or small_estate()
    estate.answers["list_kql_templates"] = lambda _: rows_result(SHIPPED, table="", time_column="")
    analyst = OfflineAnalyst(estate, clock=lambda: NOW)
    for question in questions[:-1]:
        await analyst.answer(question, session_id="s")
    estate.calls.clear()
    answer = await analyst.answer(questions[-1], session_id="s")
    made = [(call.tool_name, dict(call.arguments)) for call in estate.calls]
    return answer, [call for call in made if call[0] != "list_kql_templates"]


@pytest.mark.requirement("AGENT-1")
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
        ("sign-ins that were not successful", "failed_signins_by_user", {}),
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
    ["sign-ins not from germany", "processes on web-03 excluding svchost", "logons outside office hours"],
)
async def test_a_query_of_the_logs_that_leaves_something_out_is_asked_back_with_the_whole(question: str) -> None:
    answer, calls = await ask(question)
    assert (answer.outcome, calls) == (Outcome.CLARIFICATION, [])
    assert "leaves nothing out" in answer.text
    assert "[1]" in answer.text


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
        assert calls == [("query_incidents", {"status": "Closed", "limit": 100})]
        assert answer.text.startswith("2 of 2 incidents (status Closed) are classified as BenignPositive.")

    async def test_none_of_them_is_said_as_none(self) -> None:
        answer, _ = await ask("how many fps")
        assert answer.text.startswith("None of the 2 incidents (status Closed) is classified as FalsePositive.")

    async def test_a_window_is_about_the_closing(self) -> None:
        _, calls = await ask("how many tickets closed as benign positive this month")
        assert calls[0][1]["time_field"] == "closed"

    async def test_they_can_be_those_of_the_list_before(self) -> None:
        _, calls = await ask("incidents of june", "how many of those were benign positives")
        assert calls[0][1]["start_time"] == "2024-06-01T00:00:00Z"
        assert calls[0][1]["status"] == "Closed"

    async def test_later_words_never_drop_the_classification(self) -> None:
        answer, calls = await ask("incidents closed as benign positive", "only the low ones")
        assert calls == [("query_incidents", {"status": "Closed", "severity": "Low", "limit": 100})]
        assert answer.text.startswith("1 of 1 incidents (severity Low, status Closed) is classified as BenignPositive.")

    async def test_the_rest_of_them_is_chosen_in_the_same_way(self) -> None:
        answer, _ = await ask("incidents closed as benign positive", "show all")
        assert answer.text.startswith("2 of 2 incidents (status Closed) are classified as BenignPositive.")

    @pytest.mark.parametrize("question", ["incidents not closed as false positive", "alerts closed as false positive"])
    async def test_what_cannot_be_told_by_it_is_asked_back(self, question: str) -> None:
        answer, calls = await ask(question)
        assert (answer.outcome, calls) == (Outcome.CLARIFICATION, [])

    @pytest.mark.parametrize(
        ("question", "verdict"),
        [
            ("was 23 closed as fp", "No: status Closed, classification “BenignPositive”."),
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
        assert "[1] How many incidents by severity last month" in answer.text

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
    assert answer.text.startswith("4 of 8 alerts are left.")


async def test_severities_are_left_out_without_an_apostrophe() -> None:
    answer, _ = await ask("incs that arent high")
    assert answer.text.startswith("3 of 6 incidents are left.")


@pytest.mark.parametrize("before", [(), ("incidents that are not assigned to m.keller",)])
async def test_words_that_lean_on_no_list_are_asked_back(before: tuple[str, ...]) -> None:
    """What an answer left out cannot be narrowed as a query, and nothing else may be taken for it."""
    answer, calls = await ask(*before, "only the high ones")
    assert (answer.outcome, calls) == (Outcome.CLARIFICATION, [])
