"""A stored query that is run for a question uses what the question names, or it is not run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.ports import Question
from sentinel_rag.sentinel.template_registry import load_templates
from sentinel_rag.testing.scripted_gateway import ScriptedGateway
from sentinel_rag.testing.small_estate import NOW, rows_result, small_estate

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
        ("failed sign-ins of siobhan", "failed_signins_by_user", {"user": "siobhan"}),
        ("siobhan's failed sign-ins this week", "failed_signins_by_user", {"user": "siobhan"}),
        ("sign-in history of Siobhan O'Brien", "user_signin_history", {"user": "Siobhan O'Brien"}),
        ("sign-ins by country of siobhan", "signins_by_country", {"user": "siobhan"}),
        ("office activity of Siobhan O'Brien", "office_activity_by_user", {"user": "Siobhan O'Brien"}),
        ("new inbox rules of zoe", "new_inbox_rules", {"user": "zoe"}),
        ("run failed_signins_by_user for zoe", "failed_signins_by_user", {"user": "zoe"}),
        ("processes on dc", "process_on_host", {"host": "dc"}),
    ],
)
async def test_a_plain_name_narrows_the_query(
    ask: Ask, gateway: ScriptedGateway, question: str, template: str, parameters: dict[str, str]
) -> None:
    """Finding R11: the name was dropped without a word, and the answer was about every account."""
    answer = await ask(question)
    assert queries(gateway) == [(template, parameters)]
    assert answer.outcome is Outcome.ANSWERED


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("rare processes on web-03", "web-03"),
        ("firewall denies of ransomware", "ransomware"),
    ],
)
async def test_a_query_that_cannot_take_the_name_is_not_run(
    ask: Ask, gateway: ScriptedGateway, question: str, name: str
) -> None:
    answer = await ask(question)
    assert queries(gateway) == []
    assert answer.outcome is Outcome.CLARIFICATION
    assert f"“{name}”" in answer.text
    asked_so_far = len(gateway.calls)
    await ask("[1]")
    assert gateway.calls[asked_so_far].arguments == {"entity": name}


async def test_a_query_for_one_of_a_kind_asks_which_one(ask: Ask, gateway: ScriptedGateway) -> None:
    answer = await ask("failed sign-ins of a user")
    assert answer.outcome is Outcome.CLARIFICATION
    assert queries(gateway) == []
    await ask("siobhan")
    assert queries(gateway) == [("failed_signins_by_user", {"user": "siobhan"})]


async def test_a_question_is_no_value_for_the_query_before(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("processes that ran on a host")
    await ask("incidents by owner")
    assert queries(gateway) == [("incidents_by_owner", None)]


@pytest.mark.parametrize(
    "question", ["failed sign-ins by user", "incidents by owner", "ingestion by table", "failed sign-ins on mondays"]
)
async def test_words_of_the_queries_themselves_are_no_names(ask: Ask, gateway: ScriptedGateway, question: str) -> None:
    await ask(question)
    assert [parameters for _, parameters in queries(gateway)] == [None]


async def test_a_part_of_a_name_that_finds_nothing_offers_the_accounts_that_hold_it() -> None:
    gateway = small_estate(
        list_kql_templates=lambda _: rows_result(SHIPPED, table="", time_column=""),
        run_kql_query=lambda _: rows_result([], table="SigninLogs", time_column="TimeGenerated"),
    )
    analyst = OfflineAnalyst(gateway, clock=lambda: NOW)
    answer = await analyst.answer(Question("failed sign-ins of keller", "s"))
    assert answer.outcome is Outcome.CLARIFICATION
    assert "account m.keller" in answer.text
    await analyst.answer(Question("[1]", "s"))
    assert queries(gateway)[-1] == ("failed_signins_by_user", {"user": "m.keller"})
