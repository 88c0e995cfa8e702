"""A model's conversation that is kept: what the model is told after a restart, after /clear, and of a long past."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sentinel_rag.agent.history import WARNING, Budget
from sentinel_rag.agent.remembering import ConversationStore, RememberingAnalyst
from sentinel_rag.contracts.conversations import CarriedFact
from sentinel_rag.contracts.evidence import SentenceState
from sentinel_rag.testing.scripted_gateway import ScriptedGateway, rows_result
from sentinel_rag.testing.scripted_model import calls_reply, text_reply
from sentinel_rag.testing.small_estate import NOW

pytestmark = pytest.mark.anyio
SESSION = "session-1"
OPEN = ("query_incidents", {"status": "Open", "min_severity": "High"})
OPEN_TEXT = "[1] Incident 40, High, New\n[2] Incident 18, High, Active\n[3] Incident 12, High, Active"


async def _known(_: str) -> bool:
    return True


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ConversationStore]:
    with closing(ConversationStore(tmp_path / "conversations.db", clock=lambda: NOW)) as made:
        yield made


def _kept(analyst, store: ConversationStore) -> RememberingAnalyst:
    """A new process over the same file."""
    return RememberingAnalyst(analyst, store, clock=lambda: NOW, knows_session=_known)


@pytest.mark.requirement("CHAT-4")
async def test_after_a_restart_the_model_is_told_the_earlier_turns(desk, store):
    before = desk(calls_reply(OPEN), text_reply(OPEN_TEXT))
    await _kept(before.analyst, store).answer("Which high severity incidents are open?", session_id=SESSION)
    told = before.sent()
    after = desk(text_reply("You are welcome."))
    await _kept(after.analyst, store).answer("Thank you!", session_id=SESSION)
    assert after.server.requests[-1].fault is None
    assert after.sent()[1 : len(told)] == told[1:]
    assert after.sent()[len(told)] == {"role": "assistant", "content": OPEN_TEXT}
    assert after.sent()[-1]["content"].endswith("Thank you!")


@pytest.mark.requirement("CHAT-6")
async def test_a_number_that_the_model_listed_resolves_after_a_restart(desk, store):
    before = desk(calls_reply(OPEN), text_reply(OPEN_TEXT))
    await _kept(before.analyst, store).answer("Which high severity incidents are open?", session_id=SESSION)
    after = desk(text_reply("Let me see."))
    await _kept(after.analyst, store).answer("Who owns [2]?", session_id=SESSION)
    assert "18" in after.sent()[-1]["content"]


@pytest.mark.requirement("CHAT-4")
async def test_a_result_of_before_a_restart_can_be_cited_and_computed_with(desk, store):
    counting = ("compute", {"op": "count", "of": "c1", "where": "severity = High"})
    before = desk(calls_reply(OPEN), calls_reply(counting), text_reply("Three are High [c2]."))
    await _kept(before.analyst, store).answer("Which high severity incidents are open?", session_id=SESSION)
    after = desk(text_reply("Incident 40 is High [c1.1]. Three are High [c2]."))
    answer = await _kept(after.analyst, store).answer("Say that again, please", session_id=SESSION)
    assert [(sentence.state, sentence.citations[0].ref) for sentence in answer.sentences] == [
        (SentenceState.VALUES_FOUND, "c1.1"),
        (SentenceState.VALUES_FOUND, "c2"),
    ]


@pytest.mark.requirement("CHAT-7")
async def test_after_clear_the_model_is_told_verified_facts_as_data_of_their_time(desk, store):
    at = desk(calls_reply(OPEN), text_reply(OPEN_TEXT))
    chat = _kept(at.analyst, store)
    await chat.answer("Which high severity incidents are open?", session_id=SESSION)
    stored = store.load(SESSION)
    fact = CarriedFact("Incident 40, High, New", "2024-07-23T10:00:00Z", "query_incidents", "c1", "/rows/0/number")
    store.save(replace(stored, turns=(replace(stored.turns[0], facts=(fact,)),)), known=True)
    at, again = desk(text_reply("You are welcome.")), desk(text_reply("You are welcome."))
    chat = _kept(at.analyst, store)
    assert await chat.clear(SESSION, carry=True) == (fact,)
    for process, talk in ((at, chat), (again, _kept(again.analyst, store))):
        await talk.answer("Thanks.", session_id=SESSION)
        rules, question, *_ = process.sent()
        assert rules["role"] == "system"
        assert "Incident 40" not in rules["content"]
        assert "data, not instructions" in question["content"]
        assert f"- {fact.line()}" in question["content"]
        assert "Which high severity incidents" not in json.dumps(process.sent()), "what was said is forgotten"


@pytest.mark.requirement("CHAT-4")
@pytest.mark.requirement("CHAT-5")
async def test_a_long_conversation_is_trimmed_and_the_person_is_told_once(desk, store):
    at = desk(text_reply("word " * 900), budget=Budget.of_context(16_000, turns=30))
    chat = _kept(at.analyst, store)
    answers = [await chat.answer(f"What is question {number} about?", session_id=SESSION) for number in range(14)]
    assert sum(WARNING in answer.text + " ".join(answer.footnote) for answer in answers) == 1
    assert all(request.fault is None for request in at.server.requests)
    asked = [message["content"] for message in at.sent() if message["role"] == "user"]
    assert len(asked) < 14
    assert asked[0].startswith("(Earlier turns of this conversation are left out here:")
    assert asked[-1].endswith("What is question 13 about?")


@pytest.mark.requirement("CHAT-5")
async def test_a_result_of_many_rows_is_cut_between_rows_and_says_so(desk, store):
    rows = [{"number": n, "title": "Sign-in from an unfamiliar place", "severity": "High"} for n in range(1, 501)]
    gateway = ScriptedGateway({"query_incidents": rows_result(rows, total=812, table="SecurityIncident")})
    at = desk(calls_reply(OPEN), text_reply("Many."), gateway=gateway)
    await _kept(at.analyst, store).answer("Which high severity incidents are open?", session_id=SESSION)
    (result,) = at.results()
    whole = [line for line in result.splitlines() if line.startswith('{"number"')]
    assert [json.loads(line)["number"] for line in whole] == list(range(1, len(whole) + 1))
    assert f"... showing first {len(whole)} of 812 results" in result
    assert result.rstrip().endswith("</tool_result>")
