"""Wishes to change an incident: which call they become, what is asked back, and what is told of what became of them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.small_estate import NOW, small_estate

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.conversations import Remembered
from sentinel_rag.contracts.evidence import Answer, Outcome, Progress
from sentinel_rag.contracts.ports import Question
from sentinel_rag.contracts.query_results import CodedNote, QueryError, QueryErrorCode
from sentinel_rag.contracts.tool_calls import Denied, Reason, ToolCall
from sentinel_rag_testing.scripted_gateway import ScriptedGateway, failure, rows_result

Ask = Callable[[str], Awaitable[Answer]]
pytestmark = pytest.mark.anyio

BENCH = Path(__file__).resolve().parents[2] / "bench"
WAITS = Denied(
    ToolCall("", "", ""),
    Reason.APPROVAL_REQUIRED,
    "Access denied by security policy. Taint level: MEDIUM",
    "update_incident_any",
    approval_id="3f2c9a10-0000-4000-8000-000000000001",
)
MADE = rows_result(
    [
        {
            "number": 12,
            "title": "Lateral movement from fin-ws-014 with ransomware tools",
            "severity": "High",
            "status": "Closed",
            "changes": [
                {"field": "status", "before": "Active", "after": "Closed"},
                {"field": "classification", "before": None, "after": "Undetermined"},
            ],
        }
    ],
    summary={"changed": ["status", "classification"]},
    notes=[CodedNote("Incident 12: status Active → Closed, classification none → Undetermined.", "change_made")],
)


@pytest.fixture
def gateway() -> ScriptedGateway:
    """The small estate, where a person has to approve every change."""
    return small_estate(update_incident=WAITS, add_incident_comment=WAITS)


def changes(gateway: ScriptedGateway) -> list[tuple[str, dict[str, Any]]]:
    return [
        (call.tool_name, dict(call.arguments))
        for call in gateway.calls
        if call.tool_name in ("update_incident", "add_incident_comment")
    ]


UPDATES = [
    ("close 12 as benign positive", {"incident": "12", "status": "Closed", "classification": "BenignPositive"}),
    ("Can you please close #12 as true positive?",
     {"incident": "12", "status": "Closed", "classification": "TruePositive"}),
    ("resolve incident 12 as undetermined, please",
     {"incident": "12", "status": "Closed", "classification": "Undetermined"}),
    ("close 12 as true positive because of wrong logic",
     {"incident": "12", "status": "Closed", "classification": "TruePositive",
      "classification_comment": "of wrong logic"}),
    ("close incident 12 as false positive, incorrect alert logic, with comment tested by us",
     {"incident": "12", "status": "Closed", "classification": "FalsePositive",
      "classification_reason": "IncorrectAlertLogic", "classification_comment": "tested by us"}),
    ('close incident 12 as fp, inaccurate data with the comment "a \\"drill\\""',
     {"incident": "12", "status": "Closed", "classification": "FalsePositive",
      "classification_reason": "InaccurateData", "classification_comment": '"a \\"drill\\""'}),
    ("close 12 as benign positive because it was a pentest",
     {"incident": "12", "status": "Closed", "classification": "BenignPositive",
      "classification_comment": "it was a pentest"}),
    ("reclassify 12 as benign positive", {"incident": "12", "classification": "BenignPositive"}),
    ("reopen 23", {"incident": "23", "status": "Active"}),
    ("set the status of 23 to new", {"incident": "23", "status": "New"}),
    ("put incident 12 in progress", {"incident": "12", "status": "Active"}),
    ("set severity of 12 to low", {"incident": "12", "severity": "Low"}),
    ("set the severity of incident 12 from high to low", {"incident": "12", "severity": "Low"}),
    ("lower 40 to medium", {"incident": "40", "severity": "Medium"}),
    ("make 23 high", {"incident": "23", "severity": "High"}),
    ("assign 55 to Ana.Ruiz@contoso.example", {"incident": "55", "owner": "Ana.Ruiz@contoso.example"}),
    ("change the owner of 55 to ana@contoso.example.", {"incident": "55", "owner": "ana@contoso.example"}),
    ("assign 55 to me, who is ana@contoso.example", {"incident": "55", "owner": "ana@contoso.example"}),
    ("assign ana@contoso.example to incident 55", {"incident": "55", "owner": "ana@contoso.example"}),
    ("assign incident 55 ana@contoso.example", {"incident": "55", "owner": "ana@contoso.example"}),
    ("reassign 55 from m.keller to ana@contoso.example", {"incident": "55", "owner": "ana@contoso.example"}),
    ("make ana@contoso.example the owner of 55", {"incident": "55", "owner": "ana@contoso.example"}),
    ("close 12 as a benign positive - the user was testing",
     {"incident": "12", "status": "Closed", "classification": "BenignPositive",
      "classification_comment": "the user was testing"}),
    ("unassign 55", {"incident": "55", "owner": "unassigned"}),
    ("remove the owner of incident 55", {"incident": "55", "owner": "unassigned"}),
    ("assign 12 to ana@contoso.example and set its severity to low",
     {"incident": "12", "owner": "ana@contoso.example", "severity": "Low"}),
    ("close incident 12 in workspace emea as undetermined",
     {"incident": "12", "status": "Closed", "classification": "Undetermined", "workspace": "emea"}),
]  # fmt: skip


@pytest.mark.requirement("DATA-4")
@pytest.mark.parametrize(("wish", "arguments"), UPDATES)
async def test_a_wish_is_one_call_with_exactly_its_arguments(
    ask: Ask, gateway: ScriptedGateway, wish: str, arguments: dict[str, Any]
) -> None:
    answer = await ask(wish)
    assert [(call.tool_name, dict(call.arguments)) for call in gateway.calls] == [("update_incident", arguments)]
    assert answer.outcome is Outcome.DENIED
    waiting, how, unchanged, *_ = answer.text.splitlines()
    assert waiting.startswith("Waiting for approval: update_incident, incident ")
    for name, value in arguments.items():
        assert f", {name} {value}" in waiting.replace("`", "")
    assert "`sentinel approvals show 3f2c9a10-0000-4000-8000-000000000001`" in how
    assert unchanged == "Nothing was changed yet."
    assert "security policy" not in answer.text
    assert "`sentinel approvals approve 3f2c9a10-0000-4000-8000-000000000001`" in answer.text
    assert "say: do it now" in answer.text


@pytest.mark.parametrize(
    ("wish", "incident", "message"),
    [
        ("comment on #12: Isolated: ws-14, hxxp://evil[.]example", "12", "Isolated: ws-14, hxxp://evil[.]example"),
        ("note on 12: seen", "12", "seen"),
        ("add a comment to incident 12: looks benign?", "12", "looks benign?"),
        ('add the comment "seen by tier 2" to 12', "12", "seen by tier 2"),
        ("leave a note on 12 saying user confirmed: all fine", "12", "user confirmed: all fine"),
        ("comment on 12: close incident 5 as undetermined\nok", "12", "close incident 5 as undetermined\nok"),
        ("comment on 12: seen in workspace emea", "12", "seen in workspace emea"),
    ],
)  # fmt: skip
async def test_a_comment_is_sent_as_it_was_written(
    ask: Ask, gateway: ScriptedGateway, wish: str, incident: str, message: str
) -> None:
    await ask(wish)
    assert changes(gateway) == [("add_incident_comment", {"incident": incident, "message": message})]


@pytest.mark.requirement("CHAT-6")
@pytest.mark.parametrize(
    ("before", "wish", "incident"),
    [
        ("list open incidents", "close [2] as undetermined", "31"),
        ("list open incidents", "close the second one as undetermined", "31"),
        ("what is incident 12 about", "close it as undetermined", "12"),
        ("what is incident 12 about", "close this incident as undetermined", "12"),
    ],
)
async def test_a_reference_names_the_incident(
    ask: Ask, gateway: ScriptedGateway, before: str, wish: str, incident: str
) -> None:
    await ask(before)
    await ask(wish)
    assert [arguments["incident"] for _, arguments in changes(gateway)] == [incident]


@pytest.mark.parametrize(
    ("before", "wish", "sentence", "options"),
    [
        (None, "close incident 12", "Closing needs a classification", 5),
        (None, "close incident 12 as false positive", "For which reason? Sentinel takes two", 2),
        (None, "mark 12 as false positive", "Only a closed incident has a classification", 2),
        (None, "mark 12 as true positive", "Only a closed incident has a classification", 2),
        (None, "close 12 as true positive, wrong logic", "does not take the reason", 5),
        (None, "close 12 as true positive or false positive", "more than one classification", 0),
        (None, "reopen 12 as true positive", "An incident that is open has no classification", 0),
        (None, "set severity of 12 to critical", "no severity Critical", 0),
        (None, "set severity of 12 to low or medium", "more than one value for one field", 0),
        (None, "set 12 to open", "New or Active", 0),
        (None, "assign 12 to me", "I do not know who you are", 0),
        (None, "assign 12 to Ines Duarte", "Ines Duarte names no user for certain", 0),
        (None, "can we close 12 as true positive", "I change nothing before you say so plainly", 1),
        (None, "close 12 as true positive?", "I change nothing before you say so plainly", 1),
        (None, "I want to close 12 as true positive", "I change nothing before you say so plainly", 1),
        (None, "downgrade 12", "To which severity", 0),
        ("what is incident 12 about", "close as benign positive", "Do you mean incident 12?", 1),
        ("what is incident 12 about", "comment: checked by us", "Do you mean incident 12?", 1),
        ("list open incidents", "close as benign positive", "Which incident do you mean?", 0),
        (None, "close 12 and 18 as benign positive", "one incident at a time", 2),
        (None, "assign 12 and 18 to Ines Duarte", "Ines Duarte names no user for certain", 0),
        ("list open incidents", "close them as benign positive", "one incident at a time", 4),
        ("list open incidents", "close all of them", "one incident at a time", 4),
        ("list open incidents", "close 2 as true positive", "incident 2, or line [2] of the list", 0),
        (None, "close all incidents as benign positive", "Which incident do you mean?", 0),
        (None, "close everything", "Which incident do you mean?", 0),
        (None, "close the phishing incident as undetermined", "Which incident do you mean?", 0),
        (None, "close it as undetermined", "Which incident do you mean?", 0),
        (None, "close [7] as undetermined", "no such line", 0),
        ("newest 5 alerts", "close [2] as undetermined", "it belongs to incident 31", 0),
        ("top accounts", "close [1] as undetermined", "That is no incident", 0),
        (None, "close 12 as undetermined if nobody objects", "I do not wait for a condition", 0),
        (None, "close 12 tomorrow as undetermined", "or for a time", 0),
        (None, "comment on 12", "What should the comment say?", 0),
        (None, "comment on 12 looks benign", "What should the comment say?", 0),
        (None, "close 12 as undetermined and add a comment: done", "That is a change and a comment", 2),
        (None, "set severity of 12 to low with comment checked", "That is a change and a comment", 2),
        (None, "don't close incident 12", "nothing is unless you ask for it", 0),
        (None, "do it now", "No change waits in this conversation", 0),
    ],
)  # fmt: skip
async def test_what_is_not_sure_is_asked_back_and_nothing_is_sent(
    ask: Ask, gateway: ScriptedGateway, before: str | None, wish: str, sentence: str, options: int
) -> None:
    if before is not None:
        await ask(before)
    answer = await ask(wish)
    assert answer.outcome is Outcome.CLARIFICATION
    assert sentence in answer.text
    assert sum(f"\n[{place}] " in answer.text for place in range(1, 20)) == options
    assert changes(gateway) == []


async def test_an_option_that_is_picked_is_the_call_that_it_says(ask: Ask, gateway: ScriptedGateway) -> None:
    answer = await ask("close incident 12 as false positive with comment: a [drill], as agreed")
    assert "[2] Close incident 12 as false positive (inaccurate data) with comment: a [drill], as agreed" in answer.text
    await ask("2")
    assert changes(gateway) == [
        (
            "update_incident",
            {
                "incident": "12",
                "status": "Closed",
                "classification": "FalsePositive",
                "classification_reason": "InaccurateData",
                "classification_comment": "a [drill], as agreed",
            },
        )
    ]


async def test_another_question_in_the_place_of_a_name_is_a_question(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("assign 55 to me")
    await ask("list open incidents")
    assert [(call.tool_name, call.arguments) for call in gateway.calls] == [("query_incidents", {"status": "Open"})]
    assert (await ask("ana@contoso.example")).outcome is not Outcome.DENIED
    assert changes(gateway) == []


@pytest.mark.requirement("DATA-3")
@pytest.mark.parametrize(
    ("wish", "then"),
    [
        ("close 12 in workspace emea as false positive", "[1]"),
        ("can we set the severity of 12 to low in workspace emea?", "yes"),
        ("close 12 and 18 in workspace emea as undetermined", "[1]"),
        ("assign 12 in workspace emea to me", "ana@contoso.example"),
    ],
)
async def test_a_question_back_keeps_the_workspace_that_was_named(
    ask: Ask, gateway: ScriptedGateway, wish: str, then: str
) -> None:
    assert (await ask(wish)).outcome is Outcome.CLARIFICATION
    await ask(then)
    assert [(arguments["incident"], arguments["workspace"]) for _, arguments in changes(gateway)] == [("12", "emea")]


async def test_who_me_is_is_asked_once(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("assign 55 to me")
    await ask("ana@contoso.example")
    await ask("assign incident 12 to me")
    assert [arguments for _, arguments in changes(gateway)] == [
        {"incident": "55", "owner": "ana@contoso.example"},
        {"incident": "12", "owner": "ana@contoso.example"},
    ]


@pytest.mark.requirement("CHAT-9")
@pytest.mark.parametrize("question", ["should I close incident 12?", "should we escalate 12"])
async def test_advice_is_left_to_a_person_and_the_facts_are_given(
    ask: Ask, gateway: ScriptedGateway, question: str
) -> None:
    answer = await ask(question)
    assert answer.text.startswith(
        "Whether to do that is for a person to decide. This is what is recorded:\nIncident 12:"
    )
    assert [call.tool_name for call in gateway.calls] == ["get_incident_detail"]


async def test_the_title_that_was_shown_stands_beside_the_call(ask: Ask) -> None:
    assert "showed the incident as" not in (await ask("reopen 23")).text
    await ask("list incidents")
    answer = await ask("reopen [3]")
    seen = "This conversation showed the incident as “Phishing mail delivered and removed”, status Closed."
    assert seen in answer.text


@pytest.mark.parametrize(
    "question",
    [
        "who closed 23?",
        "how many incidents were closed last week?",
        "was 12 closed as false positive?",
        "which incidents were closed as benign positive",
        "when was incident 23 reopened?",
        "who is incident 12 assigned to?",
        "what is the severity of 12",
        "comments on incident 12",
        "update me on 12",
        "take a look at incident 12",
        "give me incident 12",
        "change history of incident 12",
        "update on the high incidents",
        "make a list of the high incidents",
        "make a table of high alerts",
        "set of high alerts on web-03",
        "put the newest high alerts in a table",
    ],
)
async def test_a_question_about_a_change_stays_a_question(ask: Ask, gateway: ScriptedGateway, question: str) -> None:
    await ask(question)
    assert gateway.calls
    assert changes(gateway) == []


async def test_offering_the_writing_tools_changes_no_question_that_reads() -> None:
    """Every question of the development set that is no wish plans the same calls with and without them."""
    questions = yaml.safe_load((BENCH / "questions" / "development.yaml").read_text())["questions"]
    reading = [item for item in questions if item.get("outcome") != "guard"]
    assert len(reading) > 60
    for item in reading:
        planned = []
        for tools in ({}, {"update_incident": WAITS, "add_incident_comment": WAITS}):
            estate = small_estate(**tools)
            analyst = OfflineAnalyst(estate, clock=lambda: NOW)
            for question in (*item.get("after", ()), item["q"]):
                await analyst.answer(Question(question, "s"))
            planned.append([(call.tool_name, call.arguments) for call in estate.calls])
        assert planned[0] == planned[1], item["q"]


@pytest.mark.requirement("CHAT-12")
@pytest.mark.parametrize(
    "wish", ["isolate host web-03", "block 203.0.113.77", "delete all alerts", '"close incident 12 as undetermined"',
             "> close incident 12 as undetermined", "update incident 12"],
)  # fmt: skip
async def test_other_actions_and_quotations_are_not_taken(ask: Ask, gateway: ScriptedGateway, wish: str) -> None:
    answer = await ask(wish)
    assert answer.outcome is Outcome.OUT_OF_SCOPE
    assert "nothing was changed" in answer.text
    assert not gateway.calls


@pytest.mark.parametrize("again", ["do it now", "try again", "ok, it is approved", "Approved.", "run the change"])
async def test_after_an_approval_exactly_the_same_call_is_made(again: str) -> None:
    gateway = small_estate(update_incident=[WAITS, MADE])
    gateway.answers["add_incident_comment"] = WAITS
    analyst = OfflineAnalyst(gateway, clock=lambda: NOW)
    await analyst.answer(Question("close 12 as undetermined with comment it's  done", "s"))
    answer = await analyst.answer(Question(again, "s"))
    first, second = gateway.calls
    assert (first.tool_name, first.arguments) == (second.tool_name, second.arguments)
    assert first.call_id != second.call_id
    assert answer.outcome is Outcome.ANSWERED
    assert "Incident 12 (“Lateral movement from fin-ws-014 with ransomware tools”) was changed." in answer.text
    assert answer.tables[0].rows == (("status", "Active", "Closed"), ("classification", "-", "Undetermined"))
    once_more = await analyst.answer(Question("do it now", "s"))
    assert "was made already" in once_more.text
    assert len(gateway.calls) == 2


@pytest.mark.requirement("APPR-2")
async def test_an_approval_that_does_not_fit_any_more_is_told() -> None:
    other = replace(WAITS, approval_id="99999999-0000-4000-8000-000000000002")
    gateway = small_estate(update_incident=[WAITS, WAITS, other], add_incident_comment=WAITS)
    analyst = OfflineAnalyst(gateway, clock=lambda: NOW)
    first = await analyst.answer(Question("close 12 as undetermined", "s"))
    same = await analyst.answer(Question("do it now", "s"))
    anew = await analyst.answer(Question("do it now", "s"))
    assert "any more" not in first.text + same.text
    assert "Approval 3f2c9a10-0000-4000-8000-000000000001 does not cover it any more" in anew.text
    assert "`sentinel approvals approve 99999999-0000-4000-8000-000000000002`" in anew.text


async def test_a_change_is_repeated_in_the_workspace_where_it_was_asked() -> None:
    gateway = small_estate(update_incident=WAITS, add_incident_comment=WAITS)
    analyst = OfflineAnalyst(gateway, clock=lambda: NOW)
    await analyst.answer(Question("close 12 as undetermined", "s"))
    await analyst.answer(Question("how many high alerts in workspace emea", "s"))
    await analyst.answer(Question("do it now", "s"))
    assert len(changes(gateway)) == 2
    assert changes(gateway)[0] == changes(gateway)[1]


async def test_a_change_that_waits_is_still_known_after_the_conversation_was_stored_and_taken_up_again() -> None:
    gateway = small_estate(update_incident=WAITS, add_incident_comment=WAITS)
    before = OfflineAnalyst(gateway, clock=lambda: NOW)
    await before.answer(Question("assign 12 to me, who is ana@contoso.example", "s"))
    remembered = before.remembered("s")
    assert remembered is not None
    after = OfflineAnalyst(gateway, clock=lambda: NOW)
    after.recall("s", Remembered(json.loads(json.dumps(remembered.state))))
    await after.answer(Question("do it now", "s"))
    assert changes(gateway)[0] == changes(gateway)[1]


async def test_looser_words_count_right_after_the_change_only(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("close 12 as undetermined")
    await ask("how many high alerts")
    await ask("try again")
    assert len(changes(gateway)) == 1


async def test_a_single_offered_wish_is_taken_by_yes(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("can we set the severity of 12 to low?")
    await ask("yes please")
    assert changes(gateway) == [("update_incident", {"incident": "12", "severity": "Low"})]
    assert (await ask("yes")).outcome is Outcome.CLARIFICATION
    assert len(changes(gateway)) == 1


@pytest.mark.parametrize(
    "message", ["SigninLogs | where TimeGenerated > ago(1d) | take 5", "how many high alerts and how many incidents?"]
)
async def test_the_text_of_a_comment_is_never_asked(ask: Ask, gateway: ScriptedGateway, message: str) -> None:
    await ask(f"comment on 12: {message}")
    assert [call.tool_name for call in gateway.calls] == ["add_incident_comment"]
    assert gateway.calls[0].arguments["message"] == message


@pytest.mark.requirement("CHAT-6")
async def test_an_incident_that_is_not_clear_is_chosen_and_the_whole_wish_goes_on(
    ask: Ask, gateway: ScriptedGateway
) -> None:
    await ask("list open incidents")
    answer = await ask("close it as undetermined with comment: see [1] and that host")
    assert answer.outcome is Outcome.CLARIFICATION
    assert "[2] Close incident 31 as undetermined with comment: see [1] and that host" in answer.text
    await ask("the second one")
    assert changes(gateway) == [
        (
            "update_incident",
            {
                "incident": "31",
                "status": "Closed",
                "classification": "Undetermined",
                "classification_comment": "see [1] and that host",
            },
        )
    ]


@pytest.mark.requirement("CHAT-6")
@pytest.mark.parametrize("correction", ["and [3]?", "no, I meant 18", "the same for 18"])
async def test_a_change_is_not_carried_over_to_another_incident(
    ask: Ask, gateway: ScriptedGateway, correction: str
) -> None:
    await ask("list open incidents")
    await ask("close [2] as undetermined")
    await ask(correction)
    assert [arguments["incident"] for _, arguments in changes(gateway)] == ["31"]


@pytest.mark.requirement("DATA-3")
async def test_where_there_are_several_workspaces_the_one_is_asked_for(ask: Ask, gateway: ScriptedGateway) -> None:
    gateway.answers["add_incident_comment"] = QueryError(
        code=QueryErrorCode.INVALID_ARGUMENT,
        message="There are 2 workspaces.",
        next_step="Name one.",
        field="workspace",
        allowed=("prod", "emea"),
    )
    answer = await ask("comment on 12: seen in the lab")
    assert answer.outcome is Outcome.CLARIFICATION
    assert "[2] Comment on incident 12 in workspace emea: seen in the lab" in answer.text
    gateway.answers["add_incident_comment"] = WAITS
    await ask("[2]")
    assert changes(gateway)[-1] == (
        "add_incident_comment",
        {"incident": "12", "message": "seen in the lab", "workspace": "emea"},
    )


@pytest.mark.requirement("DATA-3")
async def test_a_line_of_a_list_over_all_workspaces_is_changed_where_it_was_found(
    ask: Ask, gateway: ScriptedGateway
) -> None:
    guid = "0d3c2e6a-7f50-4f0e-9a51-1f6a3b1c9d02"
    row = {"number": 55, "title": "t", "severity": "High", "status": "New", "created_time": "2024-07-18T08:00:00Z",
           "owner": None, "alert_count": 1, "incident_name": guid, "workspace": "emea"}  # fmt: skip
    gateway.answers["query_incidents"] = rows_result([row, {**row, "incident_name": guid[:-1] + "3"}])
    await ask("list the incidents in all workspaces")
    await ask("close [1] as undetermined")
    assert changes(gateway) == [
        (
            "update_incident",
            {"incident": guid, "status": "Closed", "classification": "Undetermined", "workspace": "emea"},
        )
    ]


async def test_a_change_that_is_dropped_is_not_made_later(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("close 12 as undetermined")
    answer = await ask("never mind")
    assert "I will not ask for it again" in answer.text
    assert "No change waits" in (await ask("do it now")).text
    assert len(changes(gateway)) == 1


async def test_a_comment_that_was_added_is_told_as_it_is_stored() -> None:
    stored = rows_result(
        [{"number": 12, "title": "Lateral movement", "comment_id": "c", "time": "2024-07-23T12:00:01Z",
          "author": "sentinel-rag", "message": "a &lt;b", "comment_count": 2}],
        notes=[
            CodedNote("A comment was added to incident 12.", "change_made"),
            "What the portal would take for markup was written as text.",
        ],
    )  # fmt: skip
    gateway = small_estate(update_incident=WAITS, add_incident_comment=stored)
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question("comment on 12: a <b", "s"))
    assert answer.outcome is Outcome.ANSWERED
    assert "at 2024-07-23 12:00:01 UTC by “sentinel-rag”: `a &lt;b`" in answer.text
    assert "Comments of the incident now: 2." in answer.text
    assert "was written as text" in answer.text


async def test_an_incident_that_was_so_already_is_told_so() -> None:
    same = rows_result(
        [{"number": 12, "title": "Lateral movement", "changes": []}],
        notes=["Incident 12 was so already; nothing was written."],
    )
    gateway = small_estate(update_incident=same, add_incident_comment=WAITS)
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question("reopen 12", "s"))
    assert "nothing was written" in answer.text
    assert "Done" not in answer.text


async def test_a_denial_by_a_person_is_told_with_its_reason() -> None:
    denied = Denied(
        ToolCall("", "", ""), Reason.APPROVAL_REQUIRED, "Access denied by security policy. Taint level: MEDIUM", "r1",
        note="ana denied this call on 2026-07-01 at 12:00 UTC.",
    )  # fmt: skip
    gateway = small_estate(update_incident=denied, add_incident_comment=WAITS)
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question("reopen 12", "s"))
    assert answer.outcome is Outcome.DENIED
    assert answer.text.startswith("Nothing was changed: it needs a person's approval first (rule r1, audit audit-1).")
    assert "ana denied this call on" in answer.text


async def test_a_change_that_may_not_hold_what_was_read_names_the_way_out() -> None:
    refused = Denied(ToolCall("", "", ""), Reason.SINK_LABEL, "Access denied by security policy.", "update_any")
    gateway = small_estate(update_incident=refused, add_incident_comment=WAITS)
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question("reopen 12", "s"))
    assert answer.outcome is Outcome.DENIED
    assert answer.text.startswith("Nothing was changed: what was read in this conversation may not be sent there (rule")
    assert "ask for the change in a new session" in answer.text


@pytest.mark.requirement("CHAT-13")
@pytest.mark.parametrize(
    ("code", "beginning"),
    [
        (QueryErrorCode.CONFLICT, "Nothing was changed: It broke."),
        (QueryErrorCode.INVALID_ARGUMENT, "Nothing was changed: It broke."),
        (QueryErrorCode.UNAVAILABLE, "Whether it was changed is not known: It broke."),
        (QueryErrorCode.TIMEOUT, "Whether it was changed is not known: It broke."),
        (QueryErrorCode.OUTCOME_UNKNOWN, "Whether it was changed is not known: It broke."),
    ],
)
async def test_a_change_that_failed_is_never_tried_a_second_time(code: QueryErrorCode, beginning: str) -> None:
    gateway = small_estate(update_incident=failure(code, "It broke.", "Look."), add_incident_comment=WAITS)
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question("reopen 12", "s"))
    assert answer.outcome is Outcome.TOOL_FAILED
    assert answer.text.startswith(beginning)
    assert len(gateway.calls) == 1


async def test_the_call_is_shown_before_it_is_sent(analyst: OfflineAnalyst, gateway: ScriptedGateway) -> None:
    seen: list[tuple[str, int]] = []

    def listen(progress: Progress) -> None:
        seen.append((progress.text, len(gateway.calls)))

    await analyst.answer(Question("set severity of 12 to low", "s", progress=listen))
    assert seen[0] == ('Asking the gateway for update_incident(incident="12", severity="Low")', 0)


async def test_what_is_asked_after_a_change_is_asked_of_the_tools_again(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("close 12 as undetermined")
    answer = await ask("what is its status?")
    assert gateway.calls[-1].tool_name == "get_incident_detail"
    assert "Status: Active." in answer.text
