"""A stored query that is run for a question uses what the question names, or it is not run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from tests.support.small_estate import rows_result, small_estate

from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.sentinel.templates.template_registry import load_templates
from sentinel_rag_testing.scripted_gateway import ScriptedGateway

pytestmark = pytest.mark.anyio
Ask = Callable[[str], Awaitable[Answer]]
SHIPPED = [template.to_row() for template in load_templates().values()]


@pytest.fixture
def gateway() -> ScriptedGateway:
    return small_estate(list_kql_templates=lambda _: rows_result(SHIPPED, table="", time_column=""))


def queries(gateway: ScriptedGateway) -> list[tuple[object, object]]:
    return [
        (call.arguments["template"], call.arguments.get("parameters"))
        for call in gateway.calls
        if call.tool_name == "run_kql_query"
    ]


@pytest.mark.parametrize(
    ("question", "template", "parameters"),
    [
        ("failed sign-ins of keller", "failed_signins_by_user", {"user": "m.keller"}),
        ("keller's failed sign-ins this week", "failed_signins_by_user", {"user": "m.keller"}),
        ("sign-in history of m.keller", "user_signin_history", {"user": "m.keller"}),
        ("sign-ins by country of keller", "signins_by_country", {"user": "m.keller"}),
        ("office activity of keller", "office_activity_by_user", {"user": "m.keller"}),
        ("new inbox rules of keller", "new_inbox_rules", {"user": "m.keller"}),
        ("run failed_signins_by_user for keller", "failed_signins_by_user", {"user": "m.keller"}),
        ("processes on dc-01", "process_on_host", {"host": "dc-01"}),
    ],
)
async def test_a_plain_name_narrows_the_query(
    ask: Ask, gateway: ScriptedGateway, question: str, template: str, parameters: dict[str, str]
) -> None:
    """Finding R11: the name was dropped without a word, and the answer was about every account."""
    answer = await ask(question)
    assert queries(gateway) == [(template, parameters)]
    assert answer.outcome is Outcome.ANSWERED


@pytest.mark.parametrize("question", ["failed sign-ins of siobhan", "processes on zoe", "run new_inbox_rules for zoe"])
async def test_a_name_that_the_workspace_does_not_know_is_asked_back(
    ask: Ask, gateway: ScriptedGateway, question: str
) -> None:
    answer = await ask(question)
    assert queries(gateway) == []
    assert answer.outcome is Outcome.CLARIFICATION
    assert f"“{question.rpartition(' ')[2]}”" in answer.text


@pytest.mark.parametrize("question", ["rare processes on web-03", "firewall denies of ransomware"])
async def test_a_query_that_cannot_take_the_name_is_not_run(ask: Ask, gateway: ScriptedGateway, question: str) -> None:
    answer = await ask(question)
    assert queries(gateway) == []
    assert answer.outcome is Outcome.CLARIFICATION


async def test_the_alerts_of_the_name_are_offered_where_no_query_takes_it(ask: Ask, gateway: ScriptedGateway) -> None:
    assert "[1] alerts that name web-03" in (await ask("rare processes on web-03")).text
    await ask("[1]")
    assert (gateway.calls[-1].tool_name, gateway.calls[-1].arguments) == ("query_alerts", {"entity": "web-03"})


@pytest.mark.parametrize("question", ["failed sign-ins by user", "ingestion by table", "failed sign-ins on mondays"])
async def test_words_of_the_queries_themselves_are_no_names(ask: Ask, gateway: ScriptedGateway, question: str) -> None:
    await ask(question)
    assert [parameters for _, parameters in queries(gateway)] == [None]
