"""Every shipped scenario of the OpenAI wire, through a whole turn: it ends in a typed answer within its time, without a
fact that no tool gave, and the next question of the same conversation is answered."""

from __future__ import annotations

import anyio
import pytest

from sentinel_rag.agent.model_analyst import TurnLimits
from sentinel_rag.agent.models.failures import FailureKind
from sentinel_rag.agent.models.openai_wire import TimeLimits
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag_testing.scripted_model import SCENARIOS, Failed, Scenario, text_reply
from sentinel_rag_testing.scripted_model.replies import Hang
from waiting import WAIT_S

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("CHAT-13")]
SHORT = TimeLimits(connect_s=30, first_token_s=1.0, next_token_s=0.8, whole_answer_s=2.0, tail_s=0.3)
LIMITS = TurnLimits(turn_s=30, rounds=2, retries=0)
"""Without further tries: what happens after a try is over is the same, and waits cost time."""


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
async def test_a_scenario_ends_in_an_answer_and_the_next_question_is_answered(scenario: Scenario, desk):
    options = {"times": SHORT} if _falls_silent(scenario) else {}
    at = desk(*scenario.replies, limits=LIMITS, **options)
    with anyio.fail_after(WAIT_S):
        answer = await at.ask("Which incidents are open?")
    assert answer.text.strip()
    assert answer.outcome in Outcome
    if isinstance(scenario.expected, Failed):
        assert answer.outcome is Outcome.TOOL_FAILED
        assert answer.model is not None
    requests = list(at.server.requests)
    assert all(request.fault is None for request in requests), "a provider would have refused the conversation"

    at.be_patient()
    at.script(text_reply("Ready when you are."))
    after = await at.ask("Thanks")
    assert after.text == "Ready when you are."
    assert at.server.requests[-1].fault is None


def _falls_silent(scenario: Scenario) -> bool:
    parts = [part for reply in scenario.replies for part in (*reply.before_head, *reply.parts)]
    timed_out = isinstance(scenario.expected, Failed) and scenario.expected.kind is FailureKind.TIMED_OUT
    return timed_out or any(isinstance(part, Hang) for part in parts)
