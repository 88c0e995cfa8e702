"""A yes or no to a question about a state is a fact, and is asked of the tools (CHAT-16)."""

from __future__ import annotations

import pytest

from sentinel_rag.agent.model_analyst.composing import UNASKED
from sentinel_rag.testing.scripted_model import calls_reply, text_reply

pytestmark = pytest.mark.anyio
DETAIL = ("get_incident_detail", {"incident": "40"})


@pytest.mark.requirement("CHAT-16")
@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Is incident 40 closed?", "No."),
        ("is incident 40 still open?", "**Yes**, still."),
        ("Has anyone been assigned to incident 40?", "Nobody."),
        ("are there any high incidents?", "None"),
        ("Did the attack succeed?", "Not yet."),
        ("is incident 40 closed?", "Still the same."),
    ],
)
async def test_a_bare_answer_about_a_state_is_asked_of_the_tools(question, said, desk):
    at = desk(text_reply(said))
    answer = await at.ask(question)
    assert answer.text == UNASKED
    assert at.server.requests[-1].body["tool_choice"] == "required"


@pytest.mark.requirement("CHAT-16")
async def test_it_stands_once_a_tool_was_asked(desk):
    at = desk(text_reply("No."), calls_reply(DETAIL), text_reply("No, incident 40 is New."))
    answer = await at.ask("Is incident 40 closed?")
    assert answer.text.startswith("No, incident 40 is New.")


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Do you speak German?", "No."),
        ("Thanks, that is all", "You are welcome."),
        ("Is incident 40 closed?", "I cannot tell; shall I look it up?"),
        ("Can you close incidents?", "No, a person has to approve that."),
        ("Is phishing dangerous?", "Yes, since a person is the target."),
    ],
)
async def test_other_short_answers_pass_as_they_are(question, said, desk):
    at = desk(text_reply(said))
    assert (await at.ask(question)).text == said
