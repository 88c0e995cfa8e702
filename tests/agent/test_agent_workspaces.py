"""Which workspace a question names, and where the calls of a conversation go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support.small_estate import NOW

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.agent.offline.workspaces import read_workspace
from sentinel_rag.contracts.conversations import Preferences
from sentinel_rag.contracts.evidence import Answer
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.ports import Question
from sentinel_rag.contracts.query_results import QueryErrorCode, QueryResult
from sentinel_rag.language.notes import in_workspace, note
from sentinel_rag_testing.scripted_gateway import ScriptedGateway, failure, rows_result

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("DATA-3")]
Ask = Callable[[str], Awaitable[Answer]]


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("high incidents in workspace emea", "emea"),
        ("high incidents in the emea workspace", "emea"),
        ("incidents of workspace 'eu-west_2' today", "eu-west_2"),
        ("Workspace: EMEA list alerts", "emea"),
        ("list incidents from our prod sentinel workspace", "prod"),
        ("incidents in all workspaces", "all"),
        ("open incidents across every workspace", "all"),
        ("alerts in each of our workspaces", "all"),
        ("use workspace prod", "prod"),
        ("what is in this workspace", None),
        ("does the workspace hold sign-in logs?", None),
        ("what the workspace cannot answer", None),
        ("show me what the workspace ingests", None),
        ("incidents in the workspace emea", "emea"),
        ("what data is in the workspace?", None),
        ("how old is the workspace data", None),
        ("list the incidents", None),
        ("tables in the whole workspace", None),
        ("alerts that name host workspace-01", None),
    ],
)
def test_the_words_that_name_a_workspace(question: str, name: str | None) -> None:
    said = read_workspace(question)
    assert said.name == name
    assert len(said.rest) == len(question)
    assert name is not None or said.rest == question


def places(gateway: ScriptedGateway) -> list[tuple[str, Any]]:
    return [(call.tool_name, call.arguments.get("workspace")) for call in gateway.calls]


async def test_words_name_a_workspace_until_others_name_another(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("list the incidents")
    await ask("list the incidents in workspace emea")
    await ask("only the high ones")
    await ask("details of [1]")
    await ask("and in workspace prod?")
    await ask("show the alerts")
    assert places(gateway)[0] == ("query_incidents", None)
    assert {workspace for _, workspace in places(gateway)[1:4]} == {"emea"}
    assert {workspace for _, workspace in places(gateway)[4:]} == {"prod"}
    again = gateway.calls[4]
    assert (again.tool_name, again.arguments["incident"]) == (
        "get_incident_detail",
        gateway.calls[3].arguments["incident"],
    )


async def test_an_answer_says_which_workspace_was_asked(ask: Ask) -> None:
    answer = await ask("high incidents in workspace emea")
    assert "workspace `emea`" in answer.text
    assert '"emea"' in answer.footnote[0]


async def test_the_surface_asks_for_one_and_the_persons_words_win(
    analyst: OfflineAnalyst, gateway: ScriptedGateway
) -> None:
    for question, requested in (
        ("list the incidents", "emea"),
        ("list the incidents in workspace prod", "emea"),
        ("only the high ones", "emea"),
        ("list the incidents", "dev"),
    ):
        await analyst.answer(Question(question, "s-00000001", Preferences(workspace=requested)))
    assert [workspace for _, workspace in places(gateway)] == ["emea", "prod", "prod", "dev"]


WORKSPACES = rows_result(
    [{"name": "prod", "default": True, "changes": True}, {"name": "emea", "default": False, "changes": False}],
    summary={"workspaces": 2, "default": "prod"},
)


async def test_the_workspaces_are_told_and_switched_to(ask: Ask, gateway: ScriptedGateway) -> None:
    gateway.answers["list_workspaces"] = WORKSPACES
    listed = await ask("which workspaces are there?")
    assert listed.tables[0].rows == (("prod", "yes"), ("emea", "no"))
    assert "prod" in listed.text
    switched = await ask("use workspace emea")
    assert "workspace emea from here on" in switched.text
    await ask("list the incidents")
    assert places(gateway) == [("list_workspaces", None), ("list_workspaces", None), ("query_incidents", "emea")]
    unknown = await ask("switch to workspace emae")
    assert unknown.text == "There is no workspace emae; there are: prod, emea."
    await ask("list the incidents")
    assert places(gateway)[-1] == ("query_incidents", None)


def _found(workspace: str, number: int, name: str) -> JsonObject:
    return {
        "number": number,
        "title": f"{workspace} {number}",
        "severity": "High",
        "status": "New",
        "created_time": "2024-07-18T08:00:00Z",
        "owner": None,
        "alert_count": 1,
        "incident_name": name,
        "workspace": workspace,
    }


PROD_55, EMEA_55 = "0d3c2e6a-7f50-4f0e-9a51-1f6a3b1c9d01", "0d3c2e6a-7f50-4f0e-9a51-1f6a3b1c9d02"


def _of_all(_: JsonObject) -> QueryResult:
    return rows_result(
        [_found("prod", 55, PROD_55), _found("emea", 55, EMEA_55)],
        summary={
            "by_severity": {"High": 2},
            "by_status": {"New": 2},
            "by_workspace": {
                "prod": {"rows_total": 1, "error": None},
                "emea": {"rows_total": 1, "error": None},
                "apac": {"rows_total": None, "error": "It did not answer."},
            },
        },
        table="SecurityIncident",
        partial_reason="apac: It did not answer.",
    )


async def test_a_list_over_all_says_where_each_is_and_goes_back_there(ask: Ask, gateway: ScriptedGateway) -> None:
    gateway.answers["query_incidents"] = _of_all
    answer = await ask("list the incidents in all workspaces")
    table = answer.tables[0]
    place = table.columns.index("Workspace")
    assert [row[place] for row in table.rows] == ["prod", "emea"]
    assert "By workspace: prod 1, emea 1, apac unknown." in answer.text
    assert "apac: It did not answer." in answer.text
    await ask("details of [2]")
    detail = gateway.calls[-1]
    assert (detail.tool_name, detail.arguments) == ("get_incident_detail", {"incident": EMEA_55, "workspace": "emea"})
    await ask("details of [1]")
    assert gateway.calls[-1].arguments == {"incident": PROD_55, "workspace": "prod"}


ONE_EACH = [
    ("alerts trend per day across all workspaces", "get_alert_trend"),
    ("top accounts across all workspaces", "get_top_entities"),
    ("situation report across all workspaces", "get_threat_summary"),
]


@pytest.mark.parametrize(("question", "tool"), ONE_EACH)
async def test_what_cannot_be_added_up_has_a_section_for_each_workspace(
    ask: Ask, gateway: ScriptedGateway, question: str, tool: str
) -> None:
    gateway.answers["list_workspaces"] = WORKSPACES
    answer = await ask(question)
    assert places(gateway) == [("list_workspaces", None), (tool, "prod"), (tool, "emea")]
    sections = [line for line in answer.text.splitlines() if line.startswith("In workspace")]
    assert sections == ["In workspace `prod`:", "In workspace `emea`:"]
    titles = [table.title for table in answer.tables]
    assert titles
    assert all(title.endswith(("orkspace prod", "orkspace emea")) for title in titles)
    numbers = [row[0] for table in answer.tables for row in table.rows if row[0].startswith("[")]
    assert numbers == [f"[{place}]" for place in range(1, len(numbers) + 1)]
    assert "(not checked)" not in answer.text + str(answer.tables)


async def test_a_workspace_that_fails_is_named_beside_the_sections_of_the_others(
    ask: Ask, gateway: ScriptedGateway
) -> None:
    gateway.answers["list_workspaces"] = WORKSPACES
    works = gateway.answers["get_alert_trend"]

    def trend(arguments: JsonObject) -> Any:
        if arguments["workspace"] == "emea":
            return failure(QueryErrorCode.TIMEOUT, "It did not answer.")
        return works(arguments) if callable(works) else works

    gateway.answers["get_alert_trend"] = trend
    answer = await ask("alerts trend per day across all workspaces")
    assert "In workspace `prod`:" in answer.text
    assert "get_alert_trend for workspace emea failed" in answer.text


async def test_without_the_names_the_default_one_is_asked_and_said(ask: Ask, gateway: ScriptedGateway) -> None:
    answer = await ask("alerts trend per day across all workspaces")
    assert places(gateway) == [("list_workspaces", None), ("get_alert_trend", None)]
    assert "Only one workspace was asked: `scripted`." in answer.text


async def test_the_words_for_all_stay_for_rankings_as_for_lists(ask: Ask, gateway: ScriptedGateway) -> None:
    gateway.answers["list_workspaces"] = WORKSPACES
    await ask("list the incidents in all workspaces")
    await ask("top accounts")
    await ask("newest alerts")
    assert places(gateway) == [
        ("query_incidents", "all"),
        ("list_workspaces", None),
        ("get_top_entities", "prod"),
        ("get_top_entities", "emea"),
        ("query_alerts", "all"),
    ]


async def test_what_goes_to_the_default_one_alone_says_so(ask: Ask, gateway: ScriptedGateway) -> None:
    answer = await ask("details of incident 55 across all workspaces")
    assert places(gateway) == [("get_incident_detail", None)]
    assert "Only one workspace was asked: `scripted`." in answer.text
    assert "Only one workspace" not in (await ask("details of incident 55 in workspace emea")).text


async def test_a_note_of_one_workspace_among_several_keeps_what_it_says(ask: Ask, gateway: ScriptedGateway) -> None:
    told = note("closed_and_open_again", numbers=[55])
    gateway.answers["query_incidents"] = rows_result(
        [_found("prod", 55, PROD_55)],
        summary={
            "by_severity": {"High": 1},
            "by_status": {"New": 1},
            "by_workspace": {"prod": {"rows_total": 1, "error": None}},
        },
        notes=(in_workspace(told, "prod"), told),
    )
    answer = await ask("how many high incidents across all workspaces")
    notes = [line for line in answer.text.splitlines() if line.startswith("Note:")]
    short = "Incident 55 carries a closing time but the newest version is not closed."
    assert notes == [f"Note: prod: {short}", f"Note: {short}"]


async def test_a_workspace_that_there_is_not_is_told(gateway: ScriptedGateway) -> None:
    gateway.answers["query_incidents"] = failure(
        QueryErrorCode.INVALID_ARGUMENT, "There is no workspace 'emae'. Did you mean 'emea'?", "Use one of: prod, emea."
    )
    analyst = OfflineAnalyst(gateway, clock=lambda: NOW)
    answer = await analyst.answer(Question("incidents in workspace emae", "s-00000001"))
    assert "There is no workspace" in answer.text
    assert "prod, emea" in answer.text
