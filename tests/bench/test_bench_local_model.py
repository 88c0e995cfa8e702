"""A real model behind a real server of the OpenAI wire: what must hold for any model, at the cost of a small one.

SmolLM2 of 135 million parameters writes nonsense, and nothing here depends on what it writes. Whole questions of the
product are asked of it by `make model-local`, since they take minutes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import anyio
import pytest

from sentinel_rag.agent.models.endpoints import compatible_endpoint, no_key
from sentinel_rag.agent.models.failures import ContextOverflowError, ModelTimedOutError, Overflowing
from sentinel_rag.agent.models.openai_wire import OpenAIWireModel, TimeLimits
from sentinel_rag.agent.models.port import (
    AssistantMessage,
    FinishReason,
    ModelRequest,
    ModelToolCall,
    SystemMessage,
    ToolChoice,
    ToolResultMessage,
    UserMessage,
    complete,
)
from sentinel_rag.agent.models.retrying import RetryingModel
from sentinel_rag.agent.prompts import prompt
from sentinel_rag.agent.tokens import count_message, count_tool, load_counter
from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS
from sentinel_rag.contracts.tool_schemas import TOOLS_BY_NAME

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("OPS-3")]
CONTEXT = 2_048
LIMITS = TimeLimits(first_token_s=240, next_token_s=120, whole_answer_s=240)
QUESTION = ModelRequest(
    [SystemMessage("Answer with a call of a tool."), UserMessage("Which incidents are open?")],
    [TOOLS_BY_NAME["list_tables"], TOOLS_BY_NAME["list_workspaces"]],
    max_output_tokens=12,
)


@contextmanager
def serving_model(*, loaded: bool) -> Iterator[str]:
    from bench.local_model import missing, serving

    lacking = missing()
    if lacking is not None:
        if os.environ.get("CI"):
            pytest.fail(f"CI must not skip: {lacking}")
        pytest.skip(lacking)
    # One thread: two wait for each other in a loop where a suite keeps the cores busy, and take five times as long.
    with serving(context=CONTEXT, threads=1, loaded=loaded) as url:
        yield url


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving_model(loaded=True) as url:
        yield url


def model_of(url: str) -> OpenAIWireModel:
    return OpenAIWireModel(compatible_endpoint(url, "smollm2", no_key), limits=LIMITS)


@pytest.fixture
def model(server: str) -> OpenAIWireModel:
    return model_of(server)


async def test_asked_while_it_still_loads_it_answers_and_has_read_the_tools() -> None:
    with serving_model(loaded=False) as url:
        model = model_of(url)
        answer = await complete(RetryingModel(model), QUESTION)
        await model.aclose()
    counter = await load_counter()
    own = sum(count_message(each, counter) for each in QUESTION.messages)
    own += sum(count_tool(each, counter) for each in QUESTION.tools)
    assert isinstance(answer.reason, FinishReason)
    assert answer.usage.requests - answer.usage.uncounted == 1, "only a try while it loads is without a count"
    assert answer.usage.tokens.output <= 12
    assert 0.85 * own < answer.usage.tokens.input < 2 * own


@pytest.mark.parametrize("choice", ToolChoice)
async def test_whatever_it_writes_the_next_question_of_the_conversation_is_answered(
    model: OpenAIWireModel, choice: ToolChoice
) -> None:
    first = await complete(model, replace(QUESTION, tool_choice=choice))
    call = ModelToolCall("call_1", "list_tables", "{}", {})
    said = [first.message] if first.message.text and not first.message.tool_calls else []
    results = [AssistantMessage("", (call,)), ToolResultMessage("call_1", "[c1.1] SecurityIncident 28 rows")]
    messages = [*QUESTION.messages, *said, UserMessage("And the tables?"), *results]
    second = await complete(model, replace(QUESTION, messages=messages))
    await model.aclose()
    assert second.usage.tokens.input > first.usage.tokens.input


async def test_what_does_not_fit_is_told_with_its_numbers_and_what_helps(model: OpenAIWireModel) -> None:
    rules = [SystemMessage(prompt("rules").text), UserMessage("Which incidents are open?")]
    with pytest.raises(ContextOverflowError) as caught:
        await complete(model, ModelRequest(rules, SHIPPED_TOOLS))
    await model.aclose()
    failure = caught.value
    assert failure.overflowing is Overflowing.FIXED_PART
    assert failure.limit_tokens == CONTEXT
    assert failure.used_tokens is not None
    assert failure.used_tokens > CONTEXT
    assert "--ctx-size" in failure.next_step


async def test_left_amid_an_answer_or_too_slow_it_serves_the_next_one(model: OpenAIWireModel) -> None:
    async with model.stream(replace(QUESTION, max_output_tokens=500)) as stream:
        await anext(stream)
    unread = [SystemMessage("x " * 250), *QUESTION.messages[1:]]
    with pytest.raises(ModelTimedOutError, match="had not begun to answer"):
        await complete(model, replace(QUESTION, messages=unread), deadline=anyio.current_time() + 0.2)
    answer = await complete(model, QUESTION)
    await model.aclose()
    assert isinstance(answer.reason, FinishReason)
