"""Every shipped scenario of the OpenAI wire ends in its typed outcome, within its time, and leaves the conversation
valid. The same file runs on both majors of the SDK (test_models_both_majors.py)."""

from __future__ import annotations

import json
import logging

import anyio
import pytest

from conversation_rules import conversation_faults
from sentinel_rag.agent.models.failures import FailureKind, ModelError
from sentinel_rag.agent.models.port import (
    AssistantMessage,
    Finished,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolResultMessage,
    UserMessage,
    complete,
)
from sentinel_rag_testing.scripted_model import (
    SCENARIOS,
    Answered,
    ExpectedCall,
    Failed,
    Scenario,
    ScriptedModel,
    text_reply,
)
from sentinel_rag_testing.scripted_model.replies import Hang, reply_from_dict
from waiting import WAIT_S

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("OPS-3")]
CANARY = "sk-canary-7f"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
@pytest.mark.requirement("CHAT-13")
async def test_a_scenario_ends_in_its_typed_outcome(
    scenario: Scenario, connect, question, caplog, short_limits, patient_limits
):
    caplog.set_level(logging.DEBUG)
    server = ScriptedModel(scenario.replies, key=CANARY)
    with server.running() as url:
        model = connect(url, key=CANARY, limits=short_limits if _falls_silent(scenario) else patient_limits)
        events: list[ModelEvent] = []
        failure: ModelError | None = None
        with anyio.fail_after(WAIT_S):
            try:
                async with model.stream(question) as stream:
                    async for event in stream:
                        events.append(event)
            except ModelError as error:
                failure = error
        match scenario.expected:
            case Answered() as expected:
                assert failure is None, f"{failure!r}"
                _assert_answer(events, expected)
                assert len(server.requests) == expected.requests
            case Failed() as expected:
                assert failure is not None, f"it ended well: {events}"
                _assert_failure(failure, events, expected)
                seen = [str(failure), repr(failure), failure.next_step, json.dumps(failure.to_dict())]
                assert CANARY not in "".join(seen), "a provider's words, or the key, stand in the error"
        assert CANARY not in caplog.text
        # Whatever happened, the next question of the same conversation is answered.
        server.replies, server._given = [text_reply("Yes.")], 0
        messages = [*question.messages]
        if events and isinstance(events[-1], Finished) and events[-1].message != AssistantMessage():
            messages.append(events[-1].message)
            messages += [ToolResultMessage(call.call_id, "done") for call in events[-1].message.tool_calls]
        follow_up = ModelRequest([*messages, UserMessage("Sure?")], tools=question.tools)
        assert conversation_faults(follow_up.messages) == ()
        answer = await complete(model, follow_up)
        assert answer.message.text == "Yes."
        assert server.requests[-1].fault is None


def _falls_silent(scenario: Scenario) -> bool:
    parts = [part for reply in scenario.replies for part in (*reply.before_head, *reply.parts)]
    timed_out = isinstance(scenario.expected, Failed) and scenario.expected.kind is FailureKind.TIMED_OUT
    return timed_out or any(isinstance(part, Hang) for part in parts)


def _assert_answer(events: list[ModelEvent], expected: Answered) -> None:
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert [type(event) for event in events].count(Finished) == 1
    message = finished.message
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == expected.text
    assert message.text == expected.text
    assert finished.reason is expected.reason
    assert finished.stated is expected.stated
    assert tuple(finished.filtered) == expected.filtered
    ready = message.tool_calls
    assert tuple(ExpectedCall(call.name, call.arguments, call.problem) for call in ready) == expected.calls
    assert all(bool(call.explanation) == (call.problem is not None) for call in ready)
    assert len({call.call_id for call in ready}) == len(ready)
    assert finished.usage.requests == 1
    assert (finished.usage.tokens.input, finished.usage.tokens.output) == ((20, 5) if expected.counted else (0, 0))
    assert finished.usage.uncounted == (0 if expected.counted else 1)


def _assert_failure(failure: ModelError, events: list[ModelEvent], expected: Failed) -> None:
    assert failure.kind is expected.kind
    assert {name: getattr(failure, name) for name in expected.facts} == expected.facts
    assert failure.delivered is expected.delivered
    assert failure.usage.requests == 1
    assert failure.next_step
    assert str(failure).endswith(".")
    assert not any(isinstance(event, Finished) for event in events), "half an answer was given out"


def test_there_are_more_than_forty_scenarios_and_each_has_a_name_of_its_own():
    assert len(SCENARIOS) >= 40
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_json_form_of_a_scenario_says_the_same(scenario: Scenario):
    for reply in scenario.replies:
        assert reply_from_dict(json.loads(json.dumps(reply.to_dict()))).to_dict() == reply.to_dict()
