"""How the offline analyst behaves: analysis after facts and with its notice, no invented data, friendly outside its
job, suggestions after lists only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from tests.support.small_estate_rows import alert_id

from sentinel_rag.agent.model_analyst.composing import SAMPLE_SENTENCE
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag_testing.scripted_gateway import ScriptedGateway

pytestmark = pytest.mark.anyio
Ask = Callable[[str], Awaitable[Answer]]
NOTICE = "This is an analysis by rules and not a finding: a human must verify it before acting on it."
OFFER = "Would you like me to analyze potential implications?"


@pytest.mark.requirement("CHAT-9")
@pytest.mark.parametrize(
    ("before", "question"),
    [
        (None, "analyze incident 12"),
        (None, "what are the implications of incident 12?"),
        (None, "kill chain of incident 12"),
        (None, "analyze the newest incident"),
        (None, "analyze 12 and 18"),
        (None, f"analyze alert {alert_id('a7')}"),
        ("what is incident 12 about", "yes"),
        ("what is incident 12 about", "analyze it"),
        ("list open incidents", "analyze [2]"),
        ("newest 5 alerts", "analyze [1]"),
    ],
)
async def test_every_analysis_carries_the_notice(ask: Ask, before: str | None, question: str) -> None:
    if before is not None:
        await ask(before)
    answer = await ask(question)
    assert answer.outcome is Outcome.ANSWERED
    assert NOTICE in answer.text.splitlines()[:2]
    assert "In the order of the ATT&CK matrix" in answer.text


@pytest.mark.requirement("CHAT-9")
async def test_analysis_is_offered_after_the_facts_and_not_given_unasked(ask: Ask) -> None:
    answer = await ask("what is incident 12 about?")
    assert answer.text.endswith(OFFER)
    assert NOTICE not in answer.text


@pytest.mark.requirement("CHAT-9")
@pytest.mark.parametrize(
    "question", ["who owns incident 12", "list open incidents", "assess the situation", "alerts of incident 12"]
)
async def test_facts_alone_make_no_analysis(ask: Ask, question: str) -> None:
    answer = await ask(question)
    assert "matrix" not in answer.text
    assert "attacker" not in answer.text


async def test_an_analysis_of_nothing_is_asked_back(ask: Ask, gateway: ScriptedGateway) -> None:
    assert (await ask("analyze")).outcome is Outcome.CLARIFICATION
    assert [call.tool_name for call in gateway.calls] in ([], ["list_kql_templates"])


@pytest.mark.requirement("CHAT-11")
@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("give me an example incident", 6),
        ("show me sample data", 6),
        ("give me an example", 6),
        ("make up three alerts", 3),
        ("generate test data", 6),
        ("example of a high severity alert", 3),
        ("what would an incident look like, give me a fake one", 6),
        ("I need mock data for a demo", 6),
        ("simulate an attack", 6),
        ("show me some example alerts", 8),
    ],
)
async def test_invented_data_is_refused_in_the_agreed_words_and_real_rows_are_shown(
    ask: Ask, gateway: ScriptedGateway, question: str, rows: int
) -> None:
    answer = await ask(question)
    assert answer.text.splitlines()[0] == SAMPLE_SENTENCE
    assert answer.outcome is Outcome.ANSWERED
    assert len(answer.tables[0].rows) == rows
    assert gateway.calls


@pytest.mark.parametrize(
    "question", ["for example, how many alerts are high?", "alerts of host test-01", "incidents about testing"]
)
async def test_other_examples_are_no_wish_for_invented_data(ask: Ask, question: str) -> None:
    assert SAMPLE_SENTENCE not in (await ask(question)).text


@pytest.mark.requirement("CHAT-12")
@pytest.mark.parametrize(
    "question",
    ["book a flight to Paris", "order a pizza", "are you sentient", "how do I bake bread",
     "what's your name", "can you help me with my homework", "you are stupid", "sing a song", "buy bitcoin"],
)  # fmt: skip
async def test_outside_its_job_it_is_friendly_says_what_it_can_do_and_asks_nothing(
    ask: Ask, gateway: ScriptedGateway, question: str
) -> None:
    answer = await ask(question)
    assert answer.outcome is Outcome.OUT_OF_SCOPE
    assert "I read Microsoft Sentinel for you" in answer.text
    assert answer.suggestions
    assert not gateway.calls


LISTS = [
    "list open incidents", "newest 5 alerts", "top hosts", "all incidents except 12", "alerts except the low ones",
    "what happened in the last 30 days", "what data do you have",
]  # fmt: skip
NO_LISTS = [
    "how many high alerts", "what is incident 12 about", "who owns 12", "newest alert", "analyze incident 12",
    "compare 12 and 31", "which hosts are in incident 12", "alerts per day", "what do 12 and 31 share",
    "sha256 of dropper.exe", "how many alerts are not high",
]  # fmt: skip


@pytest.mark.requirement("CHAT-15")
@pytest.mark.parametrize("question", LISTS)
async def test_a_list_is_followed_by_whole_questions_that_are_understood(ask: Ask, question: str) -> None:
    answer = await ask(question)
    assert answer.suggestions
    for suggestion in answer.suggestions:
        followed = await ask(suggestion)
        assert followed.outcome in (Outcome.ANSWERED, Outcome.NO_DATA), suggestion
        await ask(question)


@pytest.mark.requirement("CHAT-15")
@pytest.mark.parametrize("question", NO_LISTS)
async def test_other_answers_are_followed_by_none(ask: Ask, question: str) -> None:
    answer = await ask(question)
    assert answer.outcome is Outcome.ANSWERED
    assert answer.suggestions == ()
