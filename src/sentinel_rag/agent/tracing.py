"""Spans and counts of the agent: a question, its requests to models and its tool calls.

Never a word of a question, an argument, a result or an answer: names, ids, sizes, statuses and codes only. A model, or
a page that a model has read, chooses what a call is named; so a name is recorded only once the gateway has shown that
it knows the tool.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from sentinel_rag.agent.models.failures import ModelError
from sentinel_rag.agent.models.port import NO_DEADLINE, ChatModel, Finished, ModelEvent, ModelRequest, ModelStream
from sentinel_rag.contracts.conversations import CarriedFact
from sentinel_rag.contracts.evidence import Answer
from sentinel_rag.contracts.ports import Chat, Question
from sentinel_rag.contracts.query_results import QueryResult
from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS
from sentinel_rag.contracts.tool_calls import Denied, Failed, Reason, Succeeded, ToolCall, ToolOutcome
from sentinel_rag.telemetry import Span, SpanKind, start_span

if TYPE_CHECKING:
    from sentinel_rag.telemetry.metrics import Registry

AGENT_NAME = "sentinel-rag-agent"
UNKNOWN = "unknown"
SHIPPED = frozenset(tool.name for tool in SHIPPED_TOOLS)
_OF_A_TOOL = frozenset(
    {
        Reason.NO_RULE_MATCHED,
        Reason.RULE_DENIES,
        Reason.APPROVAL_REQUIRED,
        Reason.CONDITION_UNDECIDED,
        Reason.SINK_LABEL,
        Reason.TOOL_QUARANTINED,
        Reason.TOOL_SWITCHED_OFF,
    }
)
"""The denials that the gateway gives to tools it knows; a key without its scope is denied before any name is looked
at."""


class AgentCounts:
    """Questions, tool calls and model requests, counted into `registry`."""

    def __init__(self, registry: Registry) -> None:
        from sentinel_rag.telemetry.metrics import Counter, Histogram  # an agent that counts nothing does not load it

        self.questions = Counter("sentinel_agent_questions_total", "Questions by how they ended.", ("outcome",))
        self.seconds = Histogram("sentinel_agent_question_seconds", "From a question to its answer.")
        self.calls = Counter("sentinel_agent_tool_calls_total", "Tool calls of the agent.", ("tool", "status"))
        self.requests = Counter("sentinel_agent_llm_requests_total", "Requests to models.", ("model", "result"))
        self.model_seconds = Histogram("sentinel_agent_llm_seconds", "How long a model took to answer.", ("model",))
        self.tokens = Counter("sentinel_agent_llm_tokens_total", "Tokens as the provider counts.", ("model", "type"))
        registry.add(self.questions, self.seconds, self.calls, self.requests, self.model_seconds, self.tokens)

    def answered(self, answer: Answer | None, seconds: float) -> None:
        """Count a question; None for one that was not answered."""
        self.questions.add("failed" if answer is None else answer.outcome.value)
        self.seconds.observe(seconds)
        for trace in () if answer is None else answer.tools:
            self.calls.add(trace.name if trace.name in SHIPPED else "other", trace.status)


class TracedChat:
    """Wraps the analyst that surfaces talk to. `counts` is None where nobody reads them."""

    def __init__(self, chat: Chat, counts: AgentCounts | None = None) -> None:
        self._chat = chat
        self._counts = counts

    async def answer(self, question: Question) -> Answer:
        """See `Chat.answer`."""
        started, answer = time.perf_counter(), None
        try:
            with start_span("agent.invoke", SpanKind.INTERNAL) as span:
                span.set("session.id", question.session_id)
                span.set("gen_ai.conversation.id", question.session_id)
                span.set("gen_ai.operation.name", "invoke_agent")
                span.set("gen_ai.agent.name", AGENT_NAME)
                answer = await self._chat.answer(question)
                span.set("sentinel.outcome", answer.outcome.value)
                span.set("sentinel.tool.calls", len(answer.tools))
        finally:
            if self._counts is not None:
                self._counts.answered(answer, time.perf_counter() - started)
        return answer

    async def clear(self, session_id: str, *, carry: bool) -> tuple[CarriedFact, ...]:
        """See `Chat.clear`."""
        return await self._chat.clear(session_id, carry=carry)

    async def delete(self, session_id: str) -> None:
        """See `Chat.delete`."""
        await self._chat.delete(session_id)


class TracedModel:
    """Wraps a model. `provider` is its name in OpenTelemetry's conventions, `host` the machine that it is asked at."""

    def __init__(self, model: ChatModel, counts: AgentCounts | None, *, provider: str, host: str) -> None:
        self._model = model
        self._counts = counts
        self._provider = provider
        self._host = host

    @property
    def name(self) -> str:
        return self._model.name

    def stream(self, request: ModelRequest, *, deadline: float = NO_DEADLINE) -> ModelStream:
        """See `ChatModel.stream`."""
        return aclosing(self._events(request, deadline))

    async def aclose(self) -> None:
        await self._model.aclose()

    async def _events(self, request: ModelRequest, deadline: float) -> AsyncGenerator[ModelEvent, None]:
        # Never the current span: a stream may be read in another task than it was opened in.
        span, started, result = self._begin(request), time.perf_counter(), "left"
        try:
            async with self._model.stream(request, deadline=deadline) as events:
                async for event in events:
                    if isinstance(event, Finished):
                        result = event.reason.value
                        self._record(span, event)
                    yield event
        except GeneratorExit:  # the caller left
            raise
        except BaseException as failure:
            result = failure.kind.value if isinstance(failure, ModelError) else "stopped"
            span.fail(result)
            raise
        finally:
            span.end()
            if self._counts is not None:
                self._counts.requests.add(self.name, result)
                self._counts.model_seconds.observe(time.perf_counter() - started, self.name)

    def _begin(self, request: ModelRequest) -> Span:
        span = start_span("llm.invoke", SpanKind.CLIENT)
        span.set("gen_ai.operation.name", "chat")
        span.set("gen_ai.provider.name", self._provider)
        span.set("gen_ai.request.model", self.name)
        span.set("gen_ai.request.max_tokens", request.max_output_tokens)
        span.set("server.address", self._host or None)
        return span

    def _record(self, span: Span, finished: Finished) -> None:
        span.set("gen_ai.response.finish_reasons", (finished.reason.value,))
        if finished.usage.uncounted == 0:
            tokens = finished.usage.tokens
            span.set("gen_ai.usage.input_tokens", tokens.input)
            span.set("gen_ai.usage.output_tokens", tokens.output)
            if self._counts is not None:
                self._counts.tokens.add(self.name, "input", by=tokens.input)
                self._counts.tokens.add(self.name, "output", by=tokens.output)


def tool_span(call: ToolCall) -> Span:
    """The span, named by a tool of this product or, for now, `tool.unknown`."""
    return start_span(f"tool.{call.tool_name if call.tool_name in SHIPPED else UNKNOWN}", SpanKind.CLIENT)


def trace_response(span: Span, call: ToolCall, status: int | None, outcome: ToolOutcome) -> None:
    """Record what came back; does nothing for a span that is not recorded."""
    if not span.recording:
        return
    name = call.tool_name if call.tool_name in SHIPPED or _shows_tool(outcome) else UNKNOWN
    span.rename(f"tool.{name}")
    audit_id = outcome.audit_id or None
    for attribute, value in (
        ("tool.name", name),
        ("gen_ai.tool.name", name),
        ("session.id", call.session_id),
        ("gen_ai.conversation.id", call.session_id),
        ("http.status_code", status),
        ("http.response.status_code", status),
        ("http.request.method", "POST"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.type", "function"),
        ("gen_ai.tool.call.id", audit_id),
        ("sentinel.audit.id", audit_id),
    ):
        span.set(attribute, value)
    match outcome:
        case Succeeded(result=QueryResult() as result):
            span.set("sentinel.outcome", "succeeded")
            span.set("sentinel.result.rows", len(result.rows))
        case Succeeded():
            span.set("sentinel.outcome", "succeeded")
        case Denied(reason=reason, approval_id=approval_id):
            span.set("sentinel.outcome", "denied")
            span.set("sentinel.reason", reason.value)
            span.set("sentinel.approval.id", approval_id)
            span.fail(reason.value)
        case Failed(error=error):
            span.set("sentinel.outcome", "failed")
            span.fail(error.code.value)


def _shows_tool(outcome: ToolOutcome) -> bool:
    """True if the outcome comes from a gateway that knows the tool."""
    return isinstance(outcome, Succeeded) or (isinstance(outcome, Denied) and outcome.reason in _OF_A_TOOL)
