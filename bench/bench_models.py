"""What the model port costs: a streamed answer through it against the SDK's own stream, and 200 answers at once.

The scripted model answers both on loopback, so what differs is the client alone.
"""

from __future__ import annotations

import gc
import resource
import time
from typing import Any

import anyio
from openai import AsyncOpenAI

from bench.harness import paired, write
from sentinel_rag.agent.models.endpoints import compatible_endpoint, no_key
from sentinel_rag.agent.models.openai_wire import OpenAIWireModel
from sentinel_rag.agent.models.port import ModelRequest, UserMessage, complete
from sentinel_rag_testing.scripted_model import ScriptedModel, text_reply

CHUNKS = 400
STREAMS = 200
TEXT = "Three incidents are open on WEB-01. " * 40


async def measure() -> dict[str, Any]:
    with ScriptedModel([text_reply(TEXT, pieces=CHUNKS)]).running() as url:
        model = OpenAIWireModel(compatible_endpoint(f"{url}/v1", "m", no_key))
        client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
        request = ModelRequest([UserMessage("How many?")])

        async def ours() -> None:
            assert (await complete(model, request)).message.text == TEXT

        async def sdk() -> None:
            stream = await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "How many?"}], stream=True
            )
            parts = [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
            assert "".join(parts) == TEXT

        from anyio.from_thread import run as run_here

        pairs = await anyio.to_thread.run_sync(
            lambda: paired(lambda: run_here(ours), lambda: run_here(sdk), runs=40, warmup=3)
        )
        begun = time.perf_counter()
        async with anyio.create_task_group() as group:
            for _ in range(STREAMS):
                group.start_soon(ours)
        first_s, first_mib = time.perf_counter() - begun, _peak_mib()
        gc.collect()
        for _ in range(4):
            async with anyio.create_task_group() as group:
                for _ in range(STREAMS):
                    group.start_soon(ours)
        await model.aclose()
        await client.close()
        return {
            f"one_answer_of_{CHUNKS}_chunks": pairs,
            f"{STREAMS}_answers_at_once": {
                "seconds": round(first_s, 2),
                "peak_mib_after_the_first_round": first_mib,
                "peak_mib_after_the_fifth_round": _peak_mib(),
            },
        }


def _peak_mib() -> int:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


measured = anyio.run(measure)
write("models", measured, claim="an answer through the port takes no longer than through the SDK's own stream")
