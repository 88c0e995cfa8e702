"""The root span of a question, `agent.invoke`, and the agent's counts."""

from __future__ import annotations

import time

from sentinel_rag.agent.telling.tool_calls import SHIPPED
from sentinel_rag.contracts.conversations import CarriedFact
from sentinel_rag.contracts.evidence import Answer
from sentinel_rag.contracts.ports import Chat, Question
from sentinel_rag.telemetry import Kind, start_span
from sentinel_rag.telemetry.metrics import Counter, Histogram, Registry

AGENT_NAME = "sentinel-rag-agent"
_FAILED = "failed"


class AgentCounts:
    """Questions, tool calls and model requests, counted into `registry`."""

    def __init__(self, registry: Registry) -> None:
        self.questions = Counter("sentinel_agent_questions_total", "Questions by how they ended.", ("outcome",))
        self.seconds = Histogram("sentinel_agent_question_seconds", "From a question to its answer.")
        self.calls = Counter("sentinel_agent_tool_calls_total", "Tool calls of the agent.", ("tool", "status"))
        self.requests = Counter("sentinel_agent_llm_requests_total", "Requests to models.", ("model", "result"))
        self.model_seconds = Histogram("sentinel_agent_llm_seconds", "How long a model took to answer.", ("model",))
        self.tokens = Counter("sentinel_agent_llm_tokens_total", "Tokens as the provider counts.", ("model", "type"))
        registry.add(self.questions, self.seconds, self.calls, self.requests, self.model_seconds, self.tokens)

    def answered(self, answer: Answer, seconds: float) -> None:
        self.questions.add(answer.outcome.value)
        self.seconds.observe(seconds)
        for trace in answer.tools:
            self.calls.add(trace.name if trace.name in SHIPPED else "other", trace.status)

    def unanswered(self, seconds: float) -> None:
        self.questions.add(_FAILED)
        self.seconds.observe(seconds)


class ToldChat:
    """Wraps the analyst that surfaces talk to. `counts` is None where nobody reads them."""

    def __init__(self, chat: Chat, counts: AgentCounts | None = None) -> None:
        self._chat = chat
        self._counts = counts

    async def answer(self, question: Question) -> Answer:
        """See `Chat.answer`."""
        started = time.perf_counter()
        with start_span("agent.invoke", Kind.INTERNAL) as span:
            span.set("session.id", question.session_id)
            span.set("gen_ai.conversation.id", question.session_id)
            span.set("gen_ai.operation.name", "invoke_agent")
            span.set("gen_ai.agent.name", AGENT_NAME)
            try:
                answer = await self._chat.answer(question)
            except BaseException:
                if self._counts is not None:
                    self._counts.unanswered(time.perf_counter() - started)
                raise
            span.set("sentinel.outcome", answer.outcome.value)
            span.set("sentinel.tool.calls", len(answer.tools))
        if self._counts is not None:
            self._counts.answered(answer, time.perf_counter() - started)
        return answer

    async def clear(self, session_id: str, *, carry: bool) -> tuple[CarriedFact, ...]:
        """See `Chat.clear`."""
        return await self._chat.clear(session_id, carry=carry)

    async def delete(self, session_id: str) -> None:
        """See `Chat.delete`."""
        await self._chat.delete(session_id)
