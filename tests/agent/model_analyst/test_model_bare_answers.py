"""A state is asked of the tools, also where a model would answer it with one word."""

from __future__ import annotations

import pytest

from sentinel_rag.agent.model_analyst.bare_answers import answers_a_state
from sentinel_rag.agent.model_analyst.composing import UNASKED
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.testing.scripted_model import calls_reply, text_reply

pytestmark = pytest.mark.requirement("CHAT-16")
ANSWERS = ["No.", "Yes, it is.", "**No**, not yet.", "Still the same.", "Not anymore.", "It is not.", "Unchanged."]


@pytest.mark.anyio
@pytest.mark.parametrize("said", ["No.", "Still the same."])
async def test_a_one_word_answer_without_a_call_is_not_shown(desk, said):
    at = desk(text_reply(said))
    answer = await at.ask("is incident 40 closed?")
    assert answer.text == UNASKED
    assert answer.outcome is Outcome.TOOL_FAILED
    assert at.server.requests[1].body["tool_choice"] == "required"


@pytest.mark.anyio
async def test_the_model_is_told_to_ask_and_its_answer_stands_then(desk):
    detail = calls_reply(("get_incident_detail", {"incident": "40"}))
    at = desk(text_reply("No."), detail, text_reply("No. Incident 40 is High."))
    answer = await at.ask("is incident 40 closed?")
    assert "Incident 40 is High." in answer.text
    assert len(at.gateway.calls) == 1


@pytest.mark.parametrize("said", ANSWERS)
@pytest.mark.parametrize(
    "question",
    [
        "is it still open?",
        "are there any new alerts?",
        "has anybody closed it?",
        "and is [2] assigned?",
        "do you know if it is closed?",
        "was the host involved?",
        "did they sign in from there?",
        "incident 40 is closed, right?",
    ],
)
def test_verdicts_on_the_data_are_claims(question: str, said: str) -> None:
    assert answers_a_state(question, said)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("do you speak German?", "Yes, I do."),
        ("are you a model?", "Yes."),
        ("is phishing a crime?", "Yes, in most countries."),
        ("thanks, that is all", "You are welcome."),
        ("is incident 40 closed?", "Which workspace do you mean?"),
        ("is incident 40 closed?", "Incident numbers repeat between workspaces."),
    ],
)
def test_other_answers_are_none(question: str, said: str) -> None:
    assert not answers_a_state(question, said)
