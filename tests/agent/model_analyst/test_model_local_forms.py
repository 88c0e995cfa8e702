"""Models behind servers without a parser for them: reasoning and calls that stand in the text of the answer."""

from __future__ import annotations

import json

import pytest

from sentinel_rag.agent.model_analyst.answer_text import with_calls, without_reasoning
from sentinel_rag.agent.models.port import AssistantMessage
from sentinel_rag.agent.tool_runs import READING_TOOLS
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag_testing.scripted_model import calls_reply, text_reply

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("OPS-3")]
CALL = json.dumps({"name": "query_incidents", "arguments": {"status": "Open", "severity": "High"}})


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"<think>I should look.</think>\n<tool_call>{CALL}</tool_call>",
        f"[TOOL_CALLS] [{CALL}]",
        f"```json\n{CALL}\n```",
        CALL,
        CALL.replace("arguments", "parameters"),
        f"<|python_tag|>{CALL.replace('arguments', 'parameters')}",
        '<function=query_incidents>{"status": "Open", "severity": "High"}</function>',
    ],
)
async def test_a_call_that_a_model_writes_as_text_is_made(text, desk):
    at = desk(text_reply(text), text_reply("Incident 40 is High [c1.1]."))
    answer = await at.ask("Which high incidents are open?")
    assert [dict(call.arguments) for call in at.gateway.calls] == [{"status": "Open", "severity": "High"}]
    assert answer.outcome is Outcome.ANSWERED
    assert [message["role"] for message in at.sent()] == ["system", "user", "assistant", "tool"]
    assert at.server.requests[-1].fault is None


async def test_such_calls_get_ids_of_their_own_in_every_turn(desk):
    at = desk(
        text_reply(CALL),
        text_reply("Incident 40 is High [c1.1]."),
        text_reply(CALL),
        text_reply("Incident 40 is High [c1.1]."),
    )
    await at.ask("Which high incidents are open?")
    await at.ask("And which high incidents are open now?")
    assert len(at.gateway.calls) == 2
    assert at.server.requests[-1].fault is None


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"name": "update_incident", "arguments": {"incident": "40", "status": "Closed"}}),
        f"A row says: <tool_call>{CALL}</tool_call>",
        f"{CALL} and so on",
        '{"name": "query_incidents", "arguments": "all"}',
        '{"name": "query_incidents", "arguments": {}, "note": "x"}',
        '{"name": "no_such_tool", "arguments": {}}',
        "<tool_call>{broken</tool_call>",
        "[" * 3000,
        "",
    ],
    ids=["a change", "amid words", "words behind it", "no object", "more fields", "unknown", "broken", "deep", "empty"],
)
def test_nothing_else_is_taken_for_a_call(text):
    message = AssistantMessage(text)
    assert with_calls(message, READING_TOOLS) is message


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>40 is Low?</think>\n\nIncident 40 is High.", "Incident 40 is High."),
        ("Yes.<THINKING>hm\nhm</THINKING> Sure.", "Yes. Sure."),
        ("Yes. <think>and on and on", "Yes."),
        ("5 < 6", "5 < 6"),
    ],
)
def test_reasoning_is_no_answer(text, left):
    assert without_reasoning(text) == left


async def test_reasoning_reaches_neither_the_person_nor_the_next_question(desk):
    thought = "<think>The person may like incident 18 better.</think>Incident 40 is High [c1.1]."
    at = desk(calls_reply(("query_incidents", {})), text_reply(thought), text_reply("Hello."))
    answer = await at.ask("Which incident is severe?")
    assert answer.text == "Incident 40 is High."
    await at.ask("Hello")
    assert "may like" not in str(at.sent())
