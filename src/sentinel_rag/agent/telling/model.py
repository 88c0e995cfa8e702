"""The span of one request to a model, `llm.invoke`: which model, how many tokens, how it ended. No message is told."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Self

from sentinel_rag.agent.models import ChatModel, Finished, ModelError, ModelEvent, ModelRequest, ModelStream
from sentinel_rag.agent.models.port import NO_DEADLINE
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
        stream = self._model.stream(request, deadline=deadline)
        return _ToldStream(stream, partial(self._begin, request), self._counts, self.name)

    async def aclose(self) -> None:
        await self._model.aclose()

    def _begin(self, request: ModelRequest) -> AnySpan:
        span = start_span("llm.invoke", Kind.CLIENT)
        span.set("gen_ai.operation.name", "chat")
        span.set("gen_ai.provider.name", self._provider)
        span.set("gen_ai.request.model", self.name)
        span.set("gen_ai.request.max_tokens", request.max_output_tokens)
        span.set("server.address", self._host or None)
        return span


class _ToldStream:
    """The span lasts from entering the stream to leaving it, and is never the current one: a stream may be read in
    another task than it was opened in."""

    def __init__(
        self, stream: ModelStream, begin: Callable[[], AnySpan], counts: AgentCounts | None, model: str
    ) -> None:
        self._stream = stream
        self._begin = begin
        self._counts = counts
        self._model = model
        self._span: AnySpan | None = None
        self._started = 0.0
        self._result = "left"

    async def __aenter__(self) -> Self:
        self._span, self._started = self._begin(), time.perf_counter()
        try:
            await self._stream.__aenter__()
        except BaseException as failure:
            self._end(failure)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._stream.__aexit__(kind, error, trace)
        finally:
            self._end(error)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ModelEvent:
        event = await anext(self._stream)
        if isinstance(event, Finished):
            self._tell(event)
        return event

    def _tell(self, finished: Finished) -> None:
        self._result = finished.reason.value
        if self._span is None:
            return
        self._span.set("gen_ai.response.finish_reasons", (finished.reason.value,))
        if finished.usage.uncounted == 0:
            tokens = finished.usage.tokens
            self._span.set("gen_ai.usage.input_tokens", tokens.input)
            self._span.set("gen_ai.usage.output_tokens", tokens.output)
            if self._counts is not None:
                self._counts.tokens.add(self._model, "input", by=tokens.input)
                self._counts.tokens.add(self._model, "output", by=tokens.output)

    def _end(self, failure: BaseException | None) -> None:
        if self._span is None:
            return
        if failure is not None:
            self._result = failure.kind.value if isinstance(failure, ModelError) else "stopped"
            self._span.fail(self._result)
        self._span.end()
        self._span = None
        if self._counts is not None:
            self._counts.requests.add(self._model, self._result)
            self._counts.model_seconds.observe(time.perf_counter() - self._started, self._model)
