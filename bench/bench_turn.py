"""What a question costs outside its model and its tools: with a long history, and over a thousand questions.

A model and a gateway in this process answer at once, so that the rest is what is measured: resolving references,
fitting 100,000 tokens of history, the loop, the check of the answer. The CPU's time stands beside the clock's, since
other programs of the machine count in that.
"""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import anyio
from tests.support.small_estate import NOW, small_estate

from bench.harness import write
from sentinel_rag.agent.history import Budget
from sentinel_rag.agent.model_analyst import ModelAnalyst
from sentinel_rag.agent.models.port import (
    NO_DEADLINE,
    AssistantMessage,
    Finished,
    FinishReason,
    ModelEvent,
    ModelRequest,
    ModelToolCall,
    ModelUsage,
    TokenCounts,
    ToolResultMessage,
)
from sentinel_rag.agent.models.retrying import Tier
from sentinel_rag.contracts.ports import Question
from sentinel_rag.contracts.tool_calls import ToolCall, ToolOutcome
from sentinel_rag_testing.scripted_gateway import shipped_catalogue

QUESTIONS = 60
HISTORY_TOKENS = 100_000
MANY = 1_000
QUESTION = "Which high severity incidents are open?"
ANSWER = "[1] Incident 40, High, New\n[2] Incident 18, High, Active\n[3] Incident 12, High, Active"


@dataclass
class _Timer:
    """Seconds that were spent inside the model and the tools."""

    inside: float = 0.0


@dataclass
class _Stream:
    events: Sequence[ModelEvent]
    place: int = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ModelEvent:
        if self.place == len(self.events):
            raise StopAsyncIteration
        self.place += 1
        return self.events[self.place - 1]


@dataclass
class InstantModel:
    """Calls one tool, then answers."""

    name: str = "instant"
    calls: int = 0

    def of(self, _: Tier) -> InstantModel:
        return self

    def stream(self, request: ModelRequest, *, deadline: float = NO_DEADLINE) -> _Stream:
        del deadline
        usage = ModelUsage(requests=1, tokens=TokenCounts(input=1, output=1), unpriced=1, models=(self.name,))
        if isinstance(request.messages[-1], ToolResultMessage):
            return _Stream([Finished(FinishReason.STOP, AssistantMessage(ANSWER), usage)])
        self.calls += 1
        call = ModelToolCall(f"call_{self.calls}", "query_incidents", {"status": "Open", "min_severity": "High"}, "{}")
        return _Stream([Finished(FinishReason.TOOL_CALLS, AssistantMessage("", (call,)), usage)])

    async def aclose(self) -> None:
        return None


class TimedGateway:
    """The small estate, whose time is taken out of what is measured."""

    def __init__(self, timer: _Timer) -> None:
        self._inner = small_estate(lambda: NOW)
        self._timer = timer

    async def execute(self, call: ToolCall) -> ToolOutcome:
        begin = time.perf_counter()
        outcome = await self._inner.execute(call)
        self._inner.calls.clear()
        self._timer.inside += time.perf_counter() - begin
        return outcome

    async def offered_tools(self) -> frozenset[str]:
        return await self._inner.offered_tools()


async def _filled(analyst: ModelAnalyst, session_id: str) -> int:
    """Ask until the history holds HISTORY_TOKENS; how many questions that took."""
    words = "Tell me about the sign-ins of account m.keller on host fin-ws-014 at 2024-07-20T06:12:00Z. " * 60
    asked = 0
    memory = None
    while memory is None or sum(turn.tokens for turn in memory.history._turns) < HISTORY_TOKENS:
        await analyst.answer(Question(words, session_id))
        asked += 1
        memory = analyst._memories.known(session_id)
    return asked


async def _measure() -> dict[str, Any]:
    timer = _Timer()
    budget = Budget(total=160_000, turns=1_000)
    gateway = TimedGateway(timer)
    tools = shipped_catalogue(gateway)
    analyst = ModelAnalyst(gateway, InstantModel(), catalogue=tools, clock=lambda: NOW, budget=budget)
    turns = await _filled(analyst, "long")
    seconds: list[float] = []
    worked: list[float] = []
    for _ in range(QUESTIONS):
        timer.inside = 0.0
        begin, begin_cpu = time.perf_counter(), time.process_time()
        answer = await analyst.answer(Question(QUESTION, "long"))
        worked.append(time.process_time() - begin_cpu - timer.inside)
        seconds.append(time.perf_counter() - begin - timer.inside)
        assert "[1] Incident 40" in answer.text, answer.text
    ordered = sorted(seconds)
    flat = ModelAnalyst(gateway, InstantModel(), catalogue=tools, clock=lambda: NOW)
    tracemalloc.start()
    held: list[int] = []
    for asked in range(1, MANY + 1):
        await flat.answer(Question(QUESTION, "many"))
        if asked in (MANY // 4, MANY):
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    return {
        "history_tokens": HISTORY_TOKENS,
        "history_turns": turns,
        "questions": QUESTIONS,
        "overhead_p50_ms": round(statistics.median(ordered) * 1e3, 2),
        "overhead_cpu_p50_ms": round(statistics.median(worked) * 1e3, 2),
        "overhead_p95_ms": round(ordered[int(len(ordered) * 0.95)] * 1e3, 2),
        "held_kib_after_250_turns": round(held[0] / 1024),
        "held_kib_after_1000_turns": round(held[1] / 1024),
    }


def main() -> None:
    measured = anyio.run(_measure)
    write(
        "turn",
        measured,
        claim="Outside its model and tools a question costs under 15 ms of CPU (p50) with 100,000 tokens of history, "
        "and what is held stays flat over 1,000 questions.",
    )


if __name__ == "__main__":
    main()
