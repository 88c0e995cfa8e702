"""Questions for a decision, for one step, and for an incident beside others: the section that tells it, or that none
does."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.small_estate import NOW, small_estate
from tests.support.small_knowledge import SearchTool

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.ports import Question
from sentinel_rag.contracts.tool_calls import DocumentResult
from sentinel_rag_testing.scripted_gateway import ScriptedGateway

pytestmark = pytest.mark.anyio
TAKEOVER = "identity-compromise.md > Account takeover (identity compromise) > Triage"


def gateway(search: Any) -> ScriptedGateway:
    estate = small_estate()
    estate.answers["search_knowledge_base"] = search
    return estate


async def ask(estate: ScriptedGateway, question: str) -> Answer:
    return await OfflineAnalyst(estate, clock=lambda: NOW).answer(Question(question, "s"))


def searches(estate: ScriptedGateway) -> list[dict[str, Any]]:
    return [dict(call.arguments) for call in estate.calls if call.tool_name == "search_knowledge_base"]


@pytest.mark.requirement("KNOW-3")
@pytest.mark.parametrize(
    "question",
    [
        "what should I do first when an account is taken over",
        "what do we do if somebody took over an account?",
        "what should we do when attackers take an account over",
        "how do I respond to a hijacked account",
    ],
)
async def test_an_account_that_was_taken_over_is_the_playbooks_takeover(search_tool: SearchTool, question: str) -> None:
    answer = await ask(gateway(search_tool), question)
    assert TAKEOVER in answer.text.split("\n")[0]
    assert "Ask the user by phone" in answer.text


@pytest.mark.requirement("KNOW-3")
@pytest.mark.parametrize("question", ["should I pay the ransom?", "must we pay a ransom"])
async def test_whether_to_do_something_is_told_by_the_section_that_says_it(
    search_tool: SearchTool, question: str
) -> None:
    answer = await ask(gateway(search_tool), question)
    assert "`ransomware.md > Ransomware and mass encryption > Recovery`:" in answer.text
    assert "Never pay for a promise to delete data" in answer.text


async def test_a_decision_that_no_playbook_knows_is_said_to_be_none(search_tool: SearchTool) -> None:
    estate = gateway(search_tool)
    answer = await ask(estate, "should we repaint the cafeteria in turquoise")
    assert searches(estate)
    assert answer.outcome is Outcome.NO_DATA
    assert "No playbook" in answer.text


@pytest.mark.parametrize(
    "question",
    [
        "should I close incident 23?",
        "should I look at the newest alerts?",
        "should I be worried",
        "should we block 203.0.113.9",
    ],
)
async def test_whether_to_close_or_look_stays_with_the_records(search_tool: SearchTool, question: str) -> None:
    estate = gateway(search_tool)
    await ask(estate, question)
    assert searches(estate) == []


@pytest.mark.requirement("AGENT-1")
@pytest.mark.parametrize(
    "question", ["frobnicate the quux with wibble grommets", "pourquoi faut-il frobniquer ces machins bizarres"]
)
async def test_what_no_language_reads_is_asked_back(search_tool: SearchTool, question: str) -> None:
    assert (await ask(gateway(search_tool), question)).outcome is Outcome.CLARIFICATION


@pytest.mark.requirement("KNOW-3")
@pytest.mark.parametrize("backwards", [False, True])
async def test_a_step_is_told_by_the_playbook_that_says_it_most_plainly(
    search_tool: SearchTool, backwards: bool
) -> None:
    async def search(arguments: Any) -> Any:
        found = await search_tool(arguments)
        hits = found.value["hits"]
        return DocumentResult({**found.value, "hits": hits[::-1]}) if backwards and "query" in arguments else found

    answer = await ask(gateway(search), "steps to revoke sessions")
    (table,) = answer.tables
    assert f"`{table.title}`:" in answer.text.split("\n")[0]
    assert table.title.startswith("phishing.md")
    assert any(row[0].startswith("Revoke sessions") for row in table.rows), table.rows
    assert "before revoking sessions" in answer.text


async def test_times_of_a_search_are_whole_seconds(search_tool: SearchTool) -> None:
    for question in (
        "past incidents about phishing in the last 5 days",
        "past incidents about phishing in the last week",
    ):
        estate = gateway(search_tool)
        moment = NOW.replace(microsecond=771450)
        answer = await OfflineAnalyst(estate, clock=lambda now=moment: now).answer(Question(question, "s"))
        (made, *_) = searches(estate)
        assert "since" in made
        assert not any("." in str(made[side]) for side in ("since", "until") if side in made), made
        assert ".77" not in answer.text


@pytest.mark.requirement("AGENT-1")
@pytest.mark.parametrize(
    "question",
    [
        "is incident 31 similar to 40?",
        "are incidents 31 and 40 alike?",
        "does incident 31 resemble #40",
        "is 31 similar to 40?",
    ],
)
async def test_two_incidents_are_held_side_by_side(search_tool: SearchTool, question: str) -> None:
    estate = gateway(search_tool)
    answer = await ask(estate, question)
    read = [call.arguments["incident"] for call in estate.calls if call.tool_name == "get_incident_detail"]
    assert read == ["31", "40"]
    assert searches(estate) == []
    assert "Incident 31:" in answer.text
    assert "Incident 40:" in answer.text


@pytest.mark.requirement("KNOW-3")
@pytest.mark.parametrize(
    "question",
    [
        "compare incident 31 with past ones",
        "how does incident 31 compare to previous incidents?",
        "is incident 31 similar to earlier ones?",
        "compare 31 with other password incidents",
    ],
)
async def test_an_incident_is_compared_with_those_that_were(search_tool: SearchTool, question: str) -> None:
    estate = gateway(search_tool)
    answer = await ask(estate, question)
    assert "31" in [made.get("like_incident") for made in searches(estate)]
    assert "How `incident-4` ended: " in answer.text
    assert "incident-4" in [row[1] for row in answer.tables[0].rows]


@pytest.mark.requirement("KNOW-3")
@pytest.mark.parametrize(
    ("question", "file"),
    [
        ("where do I start with ransomware", "ransomware.md"),
        ("how should we begin investigating with a web shell", "web-shell.md"),
        ("what should I check first for a suspicious inbox rule", "business-email-compromise.md"),
        ("first response to a denial of service", "denial-of-service.md"),
        ("ransomware: first steps", "ransomware.md"),
        ("first steps ransomware", "ransomware.md"),
        ("what do we do in the first hour of a ransomware attack", "ransomware.md"),
        ("immediate actions for a compromised account", "identity-compromise.md"),
        ("first steps in a lateral movement case", "lateral-movement.md"),
        ("what do I look at first when data was stolen", "data-theft.md"),
    ],
)
async def test_where_to_begin_is_the_triage_of_its_playbook(search_tool: SearchTool, question: str, file: str) -> None:
    estate = gateway(search_tool)
    answer = await ask(estate, question)
    first = answer.text.split("\n")[0]
    assert f"`{file} > " in first, first
    assert first.endswith(" > Triage`:"), first
    assert {call.tool_name for call in estate.calls} == {"search_knowledge_base"}


@pytest.mark.parametrize(
    "question",
    [
        "where should I start on my shift",
        "what should I check first in the list",
        "what should I look at first",
        "what do I do first on my shift",
        "where do I start with these incidents",
        "which incident should I look at first",
        "first actions of m.keller",
        "first response times of the last week",
    ],
)
async def test_what_comes_first_in_a_shift_or_a_list_stays_with_the_incidents(
    search_tool: SearchTool, question: str
) -> None:
    estate = gateway(search_tool)
    await ask(estate, question)
    assert searches(estate) == []
