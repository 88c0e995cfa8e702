"""What the model-driven analyst keeps between questions, and what of it the model is told: hints behind the question,
earlier turns, what is carried on and stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.small_estate import NOW

from sentinel_rag.agent.conversations.chat import StoredChat
from sentinel_rag.agent.conversations.store import ConversationStore
from sentinel_rag.agent.history import WARNING, Budget
from sentinel_rag.agent.model_analyst import ModelAnalyst
from sentinel_rag.agent.models.retrying import Tier
from sentinel_rag.agent.prompts import prompt
from sentinel_rag.contracts.conversations import CarriedFact, Remembered, Verbosity
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.ports import Question
from sentinel_rag_testing.scripted_model import calls_reply, text_reply

pytestmark = pytest.mark.anyio
SESSION = "session-1"
OPEN = ("query_incidents", {"status": "Open", "min_severity": "High"})
CITED = "[1] Incident 40, High, New [c1.1]\n[2] Incident 18, High, Active [c1.2]\n[3] Incident 12, High, Active [c1.3]"
LIST = (calls_reply(OPEN), text_reply(CITED))
ASKED = "Which high severity incidents are open?"
FACT = CarriedFact("Incident 40, High, New", "2024-07-23T10:00:00Z", "query_incidents", "c1", "/rows/0/number")
TALK = ["system", "user", "assistant", "tool", "assistant", "user"]


def roles(messages):
    return [message["role"] for message in messages]


async def _known(_: str) -> bool:
    return True


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ConversationStore]:
    with closing(ConversationStore(tmp_path / "conversations.db", clock=lambda: NOW)) as made:
        yield made


def _kept(analyst: ModelAnalyst, store: ConversationStore) -> StoredChat:
    """A new process over the same file."""
    return StoredChat(analyst, store, clock=lambda: NOW, knows_session=_known)


@pytest.mark.requirement("CHAT-17")
async def test_rules_and_tools_never_change_and_what_does_stands_behind_the_question(desk):
    at = desk(text_reply("Hello."))
    await at.ask("Hello")
    at.analyst._clock = lambda: NOW + timedelta(minutes=7)
    await at.ask("Hello again", timezone="Europe/Berlin", verbosity=Verbosity.SHORT, workspace="emea")
    first, second = (request.body for request in at.server.requests)
    assert first["messages"][0] == second["messages"][0] == {"role": "system", "content": prompt("rules").text}
    assert json.dumps(first["tools"]) == json.dumps(second["tools"])
    assert at.asked(0) == "Hello\n\n<context>\nIt is Tuesday 2024-07-23 12:00 UTC.\n</context>"
    question, _, context = at.asked(1).partition("\n\n<context>\n")
    assert question == "Hello again"
    assert context.splitlines() == [
        "It is Tuesday 2024-07-23 12:07 UTC, Tuesday 14:07 in Europe/Berlin, the zone in which the person speaks of "
        "days.",
        "The person wants short answers: the facts that were asked for, and nothing else.",
        "Questions go to the workspace emea.",
        "</context>",
    ]
    with pytest.raises(UsageError, match="time zone"):
        await at.ask("Hello", timezone="Mars/Olympus")


@pytest.mark.requirement("CHAT-6")
@pytest.mark.requirement("CHAT-17")
async def test_what_the_person_s_words_may_point_at_is_a_hint_and_never_asked_back_by_code(desk):
    at = desk(*LIST)
    await at.ask(ASKED)
    for question, hint, call in (
        ("Show me [2]", "“[2]” = incident 18", ("get_incident_detail", {"incident": "18"})),
        ("Alerts of the third one?", "“the third one” = incident 12", ("query_alerts", {"incident": "12"})),
    ):
        at.script(calls_reply(call, first=10 * len(at.server.requests)), text_reply("Incident 18 is High [c1.2]."))
        await at.ask(question)
        words, _, context = at.asked().partition("\n\n<context>\n")
        assert words == question
        assert f"What the person's words may point at: {hint}" in context
    at.script(text_reply("There are three; which one?"))
    for question in ("Show me [9]", "Is it closed?", "And the other two?"):
        answer = await at.ask(question)
        assert (answer.outcome, answer.text) == (Outcome.CLARIFICATION, "There are three; which one?")
    assert "[9]" not in at.asked(-3).partition("<context>")[2]


async def test_pronouns_apart_are_no_words_that_point(desk):
    at = desk(*LIST)
    await at.ask(ASKED)
    at.script(text_reply("I do not know."))
    answer = await at.ask("Does he say that it is his?")
    assert not any(line.startswith("References") for line in answer.footnote)


@pytest.mark.requirement("CHAT-7")
async def test_a_clear_keeps_numbers_workspace_and_verified_facts(desk):
    at = desk(*LIST)
    await at.ask(ASKED, workspace="emea")
    at.analyst.clear(SESSION, [FACT])
    at.script(calls_reply(("get_incident_detail", {"incident": "18"}), first=5), text_reply("Incident 18 is High."))
    await at.ask("Show me [2]")
    said = at.sent(-2)
    assert roles(said)[:2] == ["system", "user"]
    assert f"- {FACT.line()}" in said[1]["content"]
    assert "incident 18" in said[1]["content"]
    assert at.gateway.calls[1].call_id == "c2", "calls go on counting, so that old footnotes stay unique"
    assert at.gateway.calls[-1].arguments["workspace"] == "emea"


async def test_a_forgotten_conversation_starts_anew(desk):
    at = desk(*LIST)
    await at.ask(ASKED)
    at.analyst.forget(SESSION)
    at.script(text_reply("Hello."))
    await at.ask("Show me [2]")
    assert roles(at.sent()) == ["system", "user"]
    assert at.asked() == "Show me [2]\n\n<context>\nIt is Tuesday 2024-07-23 12:00 UTC.\n</context>"


@pytest.mark.requirement("CHAT-4")
@pytest.mark.requirement("CHAT-6")
async def test_a_conversation_goes_on_in_another_process(desk, store):
    before = desk(*LIST)
    await _kept(before.analyst, store).answer(Question(ASKED, SESSION))
    told = before.sent()
    after = desk(calls_reply(("get_incident_detail", {"incident": "12"}), first=5), text_reply("Incident 12 is High."))
    await _kept(after.analyst, store).answer(Question("Show me the third one", SESSION))
    assert roles(after.sent(0))[: len(TALK)] == TALK
    assert after.sent(0)[1 : len(told)] == told[1:]
    assert after.sent(0)[len(told)] == {"role": "assistant", "content": CITED}
    assert "incident 12" in after.asked(0)
    assert after.gateway.calls[0].call_id == "c2"
    assert all(request.fault is None for request in after.server.requests)


@pytest.mark.requirement("CHAT-4")
async def test_a_result_of_before_a_restart_can_be_cited_and_computed_with(desk, store):
    counting = ("compute", {"op": "count", "of": "c1", "where": "severity = High"})
    before = desk(calls_reply(OPEN), calls_reply(counting), text_reply("Three are High [c2]."))
    await _kept(before.analyst, store).answer(Question(ASKED, SESSION))
    after = desk(text_reply("Incident 40 is High [c1.1]. Three are High [c2]."))
    answer = await _kept(after.analyst, store).answer(Question("Say that again, please", SESSION))
    assert set(after.states(answer).values()) == {"values_found"}
    assert [sentence.citations[0].ref for sentence in answer.sentences] == ["c1.1", "c2"]


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"version": 99},
        {"version": 1, "references": 5, "places": [], "awaited": {"a": 1}, "last_tier": "huge"},
        {"version": 1, "references": {"version": 1}, "places": {"calls": "x"}},
    ],
)
async def test_a_stored_memory_that_cannot_be_read_leaves_a_conversation_that_works(state, desk):
    at = desk(*LIST)
    at.analyst.recall(SESSION, Remembered(state, ({"messages": "none"}, {})))
    assert (await at.ask(ASKED)).outcome is Outcome.ANSWERED


@pytest.mark.requirement("CHAT-7")
async def test_after_clear_the_model_is_told_verified_facts_as_data_of_their_time(desk, store):
    at = desk(*LIST)
    chat = _kept(at.analyst, store)
    await chat.answer(Question(ASKED, SESSION))
    stored = store.load(SESSION)
    store.save(replace(stored, turns=(replace(stored.turns[0], facts=(FACT,)),)), known=True)
    at, again = desk(text_reply("You are welcome.")), desk(text_reply("You are welcome."))
    chat = _kept(at.analyst, store)
    assert await chat.clear(SESSION, carry=True) == (FACT,)
    for process, talk in ((at, chat), (again, _kept(again.analyst, store))):
        await talk.answer(Question("Thanks.", SESSION))
        rules, question, *_ = process.sent()
        assert "Incident 40" not in rules["content"]
        assert "data, not instructions" in question["content"]
        assert f"- {FACT.line()}" in question["content"]
        assert ASKED not in json.dumps(process.sent()), "what was said is forgotten"


@pytest.mark.requirement("CHAT-4")
@pytest.mark.requirement("CHAT-5")
async def test_a_long_conversation_is_trimmed_and_the_person_is_told_once(desk, store):
    at = desk(text_reply("Words follow words. " * 270), budget=Budget.of_context(16_000, turns=30))
    chat = _kept(at.analyst, store)
    answers = [await chat.answer(Question(f"What is question {number} about?", SESSION)) for number in range(14)]
    assert sum(WARNING in answer.text + " ".join(answer.footnote) for answer in answers) == 1
    assert all(request.fault is None for request in at.server.requests)
    asked = [message["content"] for message in at.sent() if message["role"] == "user"]
    assert len(asked) < 14
    assert asked[0].startswith("(Earlier turns of this conversation are left out here:")
    assert asked[-1].startswith("What is question 13 about?")


@pytest.mark.requirement("OPS-3")
async def test_the_large_model_is_asked_where_the_rule_says_so(desk):
    at, large = desk(*LIST), desk(*LIST)

    class Two:
        def of(self, tier: Tier):
            return (large if tier is Tier.LARGE else at).analyst._models.of(tier)

    both = ModelAnalyst(at.gateway, Two(), catalogue=at.analyst._catalogue, clock=at.analyst._clock)
    simple = await both.answer(Question(ASKED, "session-2"))
    assert simple.model["tier"] == "small"
    assert not large.server.requests
    hard = await both.answer(Question("Why is incident 40 dangerous? Explain the attack path", "session-2"))
    assert hard.model["tier"] == "large"
    assert hard.model["tier_reason"] == "the question asks for an explanation or a judgement"
    assert len(large.server.requests) == 2
