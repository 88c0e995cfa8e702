"""Questions that choose among the lines on the screen are answered from those lines, or asked back: never by a query
that leftover words happen to fit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from tests.support.small_estate import NOW, rows_result, small_estate

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.ports import Question
from sentinel_rag.sentinel.templates.template_registry import load_templates
from sentinel_rag_testing.scripted_gateway import ScriptedGateway

pytestmark = pytest.mark.anyio
Ask = Callable[[str], Awaitable[Answer]]
SHIPPED = [template.to_row() for template in load_templates().values()]


@pytest.fixture
def gateway() -> ScriptedGateway:
    return small_estate(list_kql_templates=lambda _: rows_result(SHIPPED, table="", time_column=""))


def last_call(gateway: ScriptedGateway) -> tuple[str, dict[str, object]]:
    return gateway.calls[-1].tool_name, dict(gateway.calls[-1].arguments)


@pytest.mark.requirement("CHAT-6")
@pytest.mark.parametrize(
    ("question", "tool", "arguments"),
    [
        ("which one was created last?", "get_incident_detail", {"incident": "40"}),
        ("which is the newest?", "get_incident_detail", {"incident": "40"}),
        ("and which of them was opened first?", "get_incident_detail", {"incident": "12"}),
        ("which of these incidents is the oldest?", "get_incident_detail", {"incident": "12"}),
        ("which has no owner?", "query_incidents", {"severity": "High", "owner": "unassigned"}),
        ("which ones are still open?", "query_incidents", {"severity": "High", "status": "Open"}),
    ],
)
async def test_a_choice_among_the_lines_of_a_list(
    ask: Ask, gateway: ScriptedGateway, question: str, tool: str, arguments: dict[str, object]
) -> None:
    """Finding R10: template search took such questions, by words that were left over."""
    await ask("list high severity incidents")
    answer = await ask(question)
    assert last_call(gateway) == (tool, arguments)
    assert answer.outcome in (Outcome.ANSWERED, Outcome.NO_DATA)


async def test_a_count_after_a_list_counts_by_the_time_that_the_verb_names(ask: Ask, gateway: ScriptedGateway) -> None:
    """Finding R2."""
    await ask("incidents owned by m.keller")
    await ask("how many were closed in july?")
    tool, arguments = last_call(gateway)
    assert tool == "query_incidents"
    assert (arguments["owner"], arguments["status"], arguments["time_field"]) == ("m.keller", "Closed", "closed")


async def test_a_list_that_showed_a_part_of_its_rows_says_so(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("show the newest 2 incidents")
    newest = await ask("which one is the oldest?")
    assert last_call(gateway) == ("get_incident_detail", {"incident": "31"})
    assert "Of the lines that were shown" in newest.text
    answer = await ask("which of these have no owner?")
    assert "limit" not in last_call(gateway)[1]
    assert "only some of its rows" in answer.text


async def test_things_that_were_compared_are_chosen_among(ask: Ask, gateway: ScriptedGateway) -> None:
    """Finding R9."""
    await ask("compare 12 and 18")
    answer = await ask("which one is older?")
    assert last_call(gateway) == ("get_incident_detail", {"incident": "12"})
    assert "2024-07-02 09:51:00 UTC" in dict(answer.tables[-1].rows)["Created"]


@pytest.mark.parametrize(
    "question", ["which one smells fishy?", "which of these mention unicorns?", "which of these hosts is patched?"]
)
async def test_what_lines_do_not_say_is_asked_back(ask: Ask, gateway: ScriptedGateway, question: str) -> None:
    await ask("list high severity incidents")
    before = len(gateway.calls)
    answer = await ask(question)
    assert answer.outcome is Outcome.CLARIFICATION
    assert {call.tool_name for call in gateway.calls[before:]} <= {"get_top_entities", "list_kql_templates"}


async def test_without_a_list_a_choice_is_asked_back(ask: Ask, gateway: ScriptedGateway) -> None:
    answer = await ask("which one was created last?")
    assert answer.outcome is Outcome.CLARIFICATION
    assert not gateway.calls


@pytest.mark.parametrize(
    ("question", "tool"),
    [
        ("which are the newest incidents?", "query_incidents"),
        ("which one should I look at first?", "query_incidents"),
        ("which is the noisiest host?", "get_top_entities"),
    ],
)
async def test_a_question_with_a_noun_of_its_own_stands_alone(
    ask: Ask, gateway: ScriptedGateway, question: str, tool: str
) -> None:
    await ask("show the newest alerts")
    await ask(question)
    assert last_call(gateway)[0] == tool


async def test_the_query_behind_a_list_is_stored_with_the_conversation(
    ask: Ask, analyst: OfflineAnalyst, gateway: ScriptedGateway
) -> None:
    await ask("list high severity incidents")
    remembered = analyst.remembered("shift-1")
    assert remembered is not None
    other = OfflineAnalyst(gateway, clock=lambda: NOW)
    other.recall("later", remembered)
    await other.answer(Question("which ones have no owner?", "later"))
    assert last_call(gateway) == ("query_incidents", {"severity": "High", "owner": "unassigned"})
