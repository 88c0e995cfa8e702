"""Which questions go to playbooks and past incidents, with what is searched; and which stay with the other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.small_estate import NOW, small_estate

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.ports import Question
from sentinel_rag.contracts.tool_calls import DocumentResult, ToolCall
from sentinel_rag_testing.scripted_gateway import ScriptedGateway

pytestmark = pytest.mark.anyio
SET: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "knowledge_questions.yaml").read_text())
NOTHING = DocumentResult({"query": None, "total": 0, "hits": [], "remarks": [], "freshness": {}})


@pytest.fixture(scope="module")
def analyst() -> tuple[ScriptedGateway, OfflineAnalyst]:
    estate = small_estate()
    estate.answers["search_knowledge_base"] = NOTHING
    return estate, OfflineAnalyst(estate, clock=lambda: NOW)


Analyst = tuple[ScriptedGateway, OfflineAnalyst]


async def searches(pair: Analyst, question: str, after: list[str]) -> tuple[list[dict[str, Any]], list[ToolCall]]:
    """The searches that a question makes in a conversation of its own, and all calls."""
    estate, analyst = pair
    for before in after:
        await analyst.answer(Question(before, question))
    estate.calls.clear()
    await analyst.answer(Question(question, question))
    analyst.forget(question)
    made = [dict(call.arguments) for call in estate.calls if call.tool_name == "search_knowledge_base"]
    return made, list(estate.calls)


def told(item: dict[str, Any], made: list[dict[str, Any]], calls: list[ToolCall]) -> str:
    """What is wrong with the searches for a question; empty where nothing is."""
    if not made:
        return "no search was made"
    first, collections = made[0], {call.get("collection") for call in made}
    wants_playbooks = item["want"] in ("playbook", "steps", "catalogue")
    if ("playbooks" in collections) is not wants_playbooks:
        return f"searched {collections}"
    if item.get("incident"):
        about = [call.arguments["incident"] for call in calls if call.tool_name == "get_incident_detail"]
        if about != [item["incident"]]:
            return f"about {about}"
    elif any(call.tool_name == "get_incident_detail" for call in calls):
        return "about an incident that nobody named"
    if item["want"] == "catalogue":
        return "" if made == [{"collection": "playbooks"}] else f"listed by {made}"
    query = str(first.get("query", "")).lower()
    missing = [word for word in item.get("words", ()) if word.lower() not in query]
    if missing:
        return f"searched by {query!r} without {missing}"
    wrong = {name: first.get(name) for name, value in item.get("filters", {}).items() if first.get(name) != value}
    return f"filters {wrong}" if wrong else ""


@pytest.mark.requirement("KNOW-3")
async def test_a_question_for_playbooks_or_past_incidents_searches_them(analyst: Analyst) -> None:
    wrong = {}
    for item in SET["questions"]:
        made, calls = await searches(analyst, item["q"], item.get("after", []))
        wrong[item["q"]] = told(item, made, calls)
    assert {question: why for question, why in wrong.items() if why} == {}
    assert len(wrong) == 67


@pytest.mark.parametrize("after", [[], ["details of incident 12"]], ids=["at first", "within an incident"])
async def test_a_question_for_another_tool_is_not_taken(analyst: Analyst, after: list[str]) -> None:
    taken = [question for question in SET["other"] if (await searches(analyst, question, after))[0]]
    assert taken == []


async def test_where_the_search_is_not_offered_the_answer_says_so() -> None:
    estate = small_estate()
    analyst = OfflineAnalyst(estate, clock=lambda: NOW)
    for question in ("what does the playbook say about phishing", "have we seen something like incident 31 before?"):
        answer = await analyst.answer(Question(question, "s"))
        assert "search_knowledge_base, which the gateway does not offer here" in answer.text
    told = await analyst.answer(Question("what should I do about incident 12", "s"))
    assert "Incident 12" in told.text
    assert "search_knowledge_base" not in {call.tool_name for call in estate.calls}
