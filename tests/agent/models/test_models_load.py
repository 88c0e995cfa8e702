"""Many answers at once: none is mixed up, no connection stays open, memory does not grow with the number of answers."""

from __future__ import annotations

import gc
import tracemalloc

import anyio
import pytest

from sentinel_rag.agent.models.endpoints import compatible_endpoint, no_key
from sentinel_rag.agent.models.failures import ModelError
from sentinel_rag.agent.models.openai_wire import OpenAIWireModel, TimeLimits
from sentinel_rag.agent.models.port import Finished, ModelRequest, TextDelta, UserMessage, complete
from sentinel_rag_testing.scripted_model import ModelHttpRequest, Reply, ScriptedModel, stream_reply, text_reply
from sentinel_rag_testing.scripted_model.replies import Cut, chunk, ending
from waiting import WAIT_S

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("OPS-3")]
STREAMS = 200
PATIENT = TimeLimits(connect_s=60, first_token_s=60, next_token_s=60, whole_answer_s=120)


def _echo(request: ModelHttpRequest) -> Reply:
    """The question again in pieces; every seventh answer breaks off."""
    text = request.body["messages"][-1]["content"]
    pieces = [chunk({"content": piece}) for piece in (text[:3], text[3:])]
    end = (Cut(),) if int(text.split()[-1]) % 7 == 0 else ending()
    return stream_reply(*pieces, *end)


async def test_two_hundred_streams_at_once_end_as_they_should_and_leave_no_connection():
    server = ScriptedModel(respond=_echo, together=STREAMS)
    outcomes: dict[int, str] = {}

    async def ask(model: OpenAIWireModel, number: int) -> None:
        said: list[str] = []
        try:
            async with model.stream(ModelRequest([UserMessage(f"question {number}")])) as stream:
                async for event in stream:
                    if isinstance(event, TextDelta):
                        said.append(event.text)
                    elif isinstance(event, Finished):
                        outcomes[number] = event.message.text
        except ModelError as error:
            outcomes[number] = error.code
        assert "".join(said) in (f"question {number}", "que", "")

    with server.running() as url:
        model = OpenAIWireModel(compatible_endpoint(f"{url}/v1", "m", no_key), limits=PATIENT)
        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as group:
                for number in range(STREAMS):
                    group.start_soon(ask, model, number)
            await model.aclose()
            while server.open_connections:
                await anyio.sleep(0.005)
    expected = {number: "model_cut_off" if number % 7 == 0 else f"question {number}" for number in range(STREAMS)}
    assert outcomes == expected
    assert server.most_connections == STREAMS


async def test_memory_does_not_grow_with_the_number_of_answers():
    server = ScriptedModel([text_reply("Three incidents are open. " * 20, pieces=20)])
    request = ModelRequest([UserMessage("How many?")])
    with server.running() as url:
        model = OpenAIWireModel(compatible_endpoint(f"{url}/v1", "m", no_key), limits=PATIENT)

        async def answers(count: int) -> int:
            for _ in range(count):
                await complete(model, request)
            server.requests.clear()
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        try:
            await answers(20)
            before = await answers(20)
            after = await answers(50)
        finally:
            tracemalloc.stop()
        await model.aclose()
    assert after - before < 75_000, f"{(after - before) / 50:.0f} bytes stay for each answer"
