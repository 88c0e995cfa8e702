"""The span of one request to a model, `llm.invoke`: which model, how many tokens, how it ended. No message is told."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from sentinel_rag.agent.models.failures import ModelError
from sentinel_rag.agent.models.port import NO_DEADLINE, ChatModel, Finished, ModelEvent, ModelRequest, ModelStream
from sentinel_rag.agent.telling.chat import AgentCounts
from sentinel_rag.telemetry import AnySpan, Kind, start_span


class ToldModel:
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
                        self._tell(span, event)
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

    def _begin(self, request: ModelRequest) -> AnySpan:
        span = start_span("llm.invoke", Kind.CLIENT)
        span.set("gen_ai.operation.name", "chat")
        span.set("gen_ai.provider.name", self._provider)
        span.set("gen_ai.request.model", self.name)
        span.set("gen_ai.request.max_tokens", request.max_output_tokens)
        span.set("server.address", self._host or None)
        return span

    def _tell(self, span: AnySpan, finished: Finished) -> None:
        span.set("gen_ai.response.finish_reasons", (finished.reason.value,))
        if finished.usage.uncounted == 0:
            tokens = finished.usage.tokens
            span.set("gen_ai.usage.input_tokens", tokens.input)
            span.set("gen_ai.usage.output_tokens", tokens.output)
            if self._counts is not None:
                self._counts.tokens.add(self.name, "input", by=tokens.input)
                self._counts.tokens.add(self.name, "output", by=tokens.output)
