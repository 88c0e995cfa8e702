"""Questions of an analyst at three in the morning: how it ended, who is in it, what fits, and what does not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.support.small_estate import NOW, small_estate
from tests.support.small_knowledge import SearchTool, small_knowledge

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.ports import Question
from sentinel_rag.knowledge.documents.incidents import IncidentRecord, incident_document
from sentinel_rag_testing.scripted_gateway import ScriptedGateway, rows_result

pytestmark = pytest.mark.anyio


def gateway(search: Any) -> ScriptedGateway:
    estate = small_estate()
    estate.answers["search_knowledge_base"] = search
    return estate


async def ask(estate: ScriptedGateway, question: str, **more: Any) -> Answer:
    return await OfflineAnalyst(estate, clock=lambda: NOW).answer(Question(question, "s", **more))


def rows(answer: Answer) -> dict[str, list[str]]:
    """The citations in each table, by its title."""
    return {table.title: [row[1] for row in table.rows] for table in answer.tables}


def row(**fields: Any) -> dict[str, Any]:
    held = {"number": 77, "title": "Odd thing", "severity": "Low", "status": "Active", "incident_name": "x"}
    return {**held, "alerts": [], "comments": [], **fields}


CLOSED = {
    "status": "Closed",
    "closed_time": "2024-07-02T09:00:00Z",
    "classification": "FalsePositive",
    "classification_reason": "IncorrectAlertLogic",
    "classification_comment": "Known inventory script, rule adjusted.",
}
ENDED = ("Classification: FalsePositive (IncorrectAlertLogic).", "“Known inventory script, rule adjusted.”")


@pytest.mark.requirement("TOOL-6")
@pytest.mark.parametrize(
    "question",
    [
        "how was incident 77 closed?",
        "why was incident 77 closed as false positive?",
        "what was the closing comment of incident 77",
        "how did incident 77 end?",
    ],
)
async def test_how_it_was_closed_is_told_with_reason_and_comment(search_tool: SearchTool, question: str) -> None:
    estate = gateway(search_tool)
    estate.answers["get_incident_detail"] = rows_result([row(**CLOSED)], table="SecurityIncident")
    text = (await ask(estate, question)).text
    assert all(text.count(each) == 1 for each in ENDED), text
    estate.answers["get_incident_detail"] = rows_result([row()], table="SecurityIncident")
    text = (await ask(estate, question)).text
    assert "It is not closed: its status is Active." in text
    bare = {**CLOSED, "classification": "Undetermined", "classification_reason": None, "classification_comment": None}
    estate.answers["get_incident_detail"] = rows_result([row(**bare)], table="SecurityIncident")
    text = (await ask(estate, question)).text
    assert "Classification: Undetermined." in text
    assert "No closing comment was written." in text


@pytest.mark.parametrize(
    ("held", "told"),
    [
        ({}, "Nothing is recorded of what was done about it."),
        (
            {"comments": [{"time": "2024-07-03T10:00:00Z", "author": "m.keller", "message": "Off the network."}]},
            "That is all that is recorded of what was done.",
        ),
    ],
)
async def test_what_was_done_is_told_from_the_record_and_the_playbook_s_word_kept_apart(
    search_tool: SearchTool, held: dict[str, Any], told: str
) -> None:
    estate = gateway(search_tool)
    estate.answers["get_incident_detail"] = rows_result([row(title="Ransomware note on a file server", **held)])
    answer = await ask(estate, "how did we contain incident 77?")
    assert told in answer.text
    assert "It is not closed: its status is Active." in answer.text
    assert "ransomware.md > Ransomware and mass encryption > Containment" in answer.text
    assert "Nothing of it was done here" in answer.text
    assert ("Comments" in [table.title for table in answer.tables]) is bool(held)


PAST = IncidentRecord(
    number=91,
    title="Lateral movement with remote services from a workstation",
    severity="Medium",
    status="Closed",
    created=datetime(2024, 4, 2, tzinfo=UTC),
    closed=datetime(2024, 4, 3, tzinfo=UTC),
    classification="FalsePositive",
    classification_comment="Administrator's work.",
    tactics=("LateralMovement",),
    techniques=("T1021.002",),
    entities=(("host", "fin-ws-0091"),),
)
OPEN = replace(
    PAST, number=92, status="Active", closed=None, classification="BenignPositive", classification_comment="",
    entities=(("host", "fin-ws-009.contoso.example"),), created=datetime(2024, 7, 22, tzinfo=UTC),
)  # fmt: skip


@pytest.fixture(scope="module")
def with_open(tmp_path_factory: pytest.TempPathFactory) -> SearchTool:
    more = [incident_document(each) for each in (PAST, OPEN)]
    return small_knowledge(tmp_path_factory.mktemp("open"), more=more)


@pytest.mark.requirement("KNOW-3")
@pytest.mark.parametrize(
    "question",
    ["which past incidents involved fin-ws-009?", "what did we do last time with lateral movement on fin-ws-009"],
)
async def test_past_incidents_of_a_host_name_it_and_open_ones_stand_apart(with_open: SearchTool, question: str) -> None:
    answer = await ask(gateway(with_open), question)
    told = rows(answer)
    assert told["Past incidents"] == ["incident-5"]
    assert told["Still open"] == ["incident-92"]
    assert "incident-91" not in [*told["Past incidents"], *told["Still open"]]
    assert "How `incident-5` ended: " in answer.text
    assert "Workstation rebuilt" in answer.text
    (first, *_) = answer.tables
    assert "fin-ws-009" in first.rows[0][5]


async def test_before_means_created_before(with_open: SearchTool) -> None:
    answer = await ask(gateway(with_open), "have we seen something like incident 12 before?")
    told = rows(answer)
    assert "incident-92" not in told["Past incidents"]
    assert told["Created later"] == ["incident-92"]
    assert "Like it too, but created after it: `incident-92`." in answer.text


async def test_open_incidents_like_it_are_open(with_open: SearchTool) -> None:
    answer = await ask(gateway(with_open), "which open incidents look like incident 12?")
    assert rows(answer) == {"Still open": ["incident-92"]}
    assert answer.tables[0].rows[0][3] == "Active", "and not the classification of an earlier closing"


@pytest.mark.requirement("WORK-4")
async def test_one_number_in_two_workspaces_is_two_incidents(tmp_path: Path) -> None:
    here = replace(PAST, number=31, title="Password spray, first office", workspace="scripted")
    there = replace(
        PAST, number=31, title="Password spray, second office", workspace="emea",
        classification="TruePositive", classification_comment="Two passwords were right.",
    )  # fmt: skip
    more = [incident_document(each) for each in (here, there)]
    search = small_knowledge(tmp_path, playbooks=None, more=more, workspaces=("scripted", "emea"))
    answer = await ask(gateway(search), "how were password spray incidents closed in the past?")
    assert sorted(rows(answer)["Past incidents"]) == ["incident-31@emea", "incident-31@scripted"]
    assert "How `incident-31@emea` ended: “Closed on 2024-04-03" in answer.text
    assert "Two passwords were right." in next(line for line in answer.text.split("\n") if "31@emea` ended" in line)
    assert "Administrator's work." in next(line for line in answer.text.split("\n") if "31@scripted` ended" in line)
    estate = gateway(search)
    alike = await ask(estate, "have we seen something like incident 31 before?")
    likes = [call.arguments.get("like_incident") for call in estate.calls if call.tool_name == "search_knowledge_base"]
    assert "31@scripted" in likes
    assert rows(alike)["Past incidents"] == ["incident-31@emea"]


async def test_a_technique_that_many_attacks_have_fits_no_playbook(search_tool: SearchTool) -> None:
    estate = gateway(search_tool)
    alert = {"tactics": ["Execution"], "techniques": ["T1059"]}
    held = row(title="Suspicious PowerShell command line", status="New", alerts=[alert])
    estate.answers["get_incident_detail"] = rows_result([held], table="SecurityIncident")
    answer = await ask(estate, "what should I do about incident 77")
    assert "No playbook clearly fits." in answer.text
    assert "T1059.001" not in answer.text
    assert "\n> " not in answer.text


@pytest.mark.parametrize("thing", ["a printer without toner", "printer jams"])
async def test_where_nothing_fits_nothing_is_quoted(search_tool: SearchTool, thing: str) -> None:
    answer = await ask(gateway(search_tool), f"what does the playbook say about {thing}")
    assert answer.outcome is Outcome.NO_DATA
    assert "No playbook clearly fits." in answer.text
    assert not any(line.startswith(">") for line in answer.text.split("\n"))
    assert answer.tables == ()


@pytest.mark.requirement("KNOW-3")
@pytest.mark.parametrize(
    ("question", "cited", "quoted"),
    [
        ("what should I do first in a ransomware attack", "ransomware.md, Triage", "Is it still running?"),
        ("what do I do first when an account is taken over", "identity-compromise.md, Triage", "Ask the user by phone"),
        ("what do we do first for a web shell", "web-shell.md, Triage", "Which process started what?"),
        ("what evidence should we keep for phishing", "phishing.md, Evidence to keep", "The original mail as .eml"),
        ("is there a runbook for stolen session cookies", "identity-compromise.md, Triage", "Ask the user by phone"),
        ("someone leaked our aws keys, what do I do", "cloud-key-leak.md, Triage", "What does the key open?"),
    ],
)  # fmt: skip
async def test_the_playbook_is_named_and_its_first_steps_are_quoted(
    search_tool: SearchTool, question: str, cited: str, quoted: str
) -> None:
    answer = await ask(gateway(search_tool), question)
    first = answer.text.split("\n")[0]
    assert first.startswith("[1] ")
    file, section = cited.split(", ")
    assert f"`{file} > " in first
    assert f" > {section}`" in first
    assert quoted in answer.text


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("how do we handle a golden ticket", {"golden", "ticket"}),
        ("how do we respond to pass the ticket", {"pass", "ticket"}),
        ("is there a playbook for a file server", {"file", "server"}),
        ("past tickets about phishing", {"phishing"}),
        ("should we pay the ransom?", {"pay", "ransom"}),
        ("incident closed as false positive because of an inventory script", {"inventory", "script"}),
    ],
)
async def test_words_of_the_field_are_searched_and_words_of_asking_are_not(
    search_tool: SearchTool, question: str, words: set[str]
) -> None:
    estate = gateway(search_tool)
    await ask(estate, question)
    (query, *_) = [call.arguments["query"] for call in estate.calls if "query" in call.arguments]
    assert set(str(query).lower().split()) == words
