"""`ChatModel` over the OpenAI wire: Azure OpenAI, OpenAI, OpenRouter, Ollama, vLLM, llama.cpp.

Sends one request a stream and bounds each wait of it; what comes goes through `answer_parts`.
Asks again by itself only where the server says how: without a field that it does not take.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace

import anyio

from sentinel_rag.agent.models.answer_parts import (
    MAX_STREAM_BYTES,
    AnswerParts,
    EventDecoder,
    ServerEvent,
    StreamTooLargeError,
)
from sentinel_rag.agent.models.endpoints import ModelEndpoint, request_body
from sentinel_rag.agent.models.failures import FailureKind, ModelError, ModelTimedOutError
from sentinel_rag.agent.models.port import (
    NO_DEADLINE,
    ModelEvent,
    ModelRequest,
    ModelStream,
    ModelUsage,
    Price,
    TextDelta,
)
from sentinel_rag.agent.models.refusals import Asked, failure_of_error, failure_of_response, longest_part
from sentinel_rag.agent.models.sdk_connection import ByteAnswer, RefusedResponse, SdkConnection

_DONE = "[DONE]"
_MARGIN_S = 1.0
_MARGIN_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Seconds for each wait. `tail_s`: how long usage may follow an answer that has ended."""

    connect_s: float = 10.0
    first_token_s: float = 60.0
    next_token_s: float = 30.0
    whole_answer_s: float = 120.0
    tail_s: float = 2.0


class OpenAIWireModel:
    """A model at `endpoint`. `price` is None where nobody said what it costs."""

    def __init__(
        self, endpoint: ModelEndpoint, *, limits: TimeLimits | None = None, price: Price | None = None
    ) -> None:
        self._limits = limits or TimeLimits()
        self.endpoint = endpoint
        self.price = price
        self.dialect = endpoint.dialect
        self.connection = SdkConnection(
            endpoint.base_url,
            query=endpoint.query,
            connect_s=self._limits.connect_s,
            use_proxy=not endpoint.is_loopback,
        )

    @property
    def name(self) -> str:
        return self.endpoint.model

    def stream(self, request: ModelRequest, *, deadline: float = NO_DEADLINE) -> ModelStream:
        """As `ChatModel.stream`; `whole_answer_s` is a deadline too."""
        return aclosing(_WireAnswer(self, request, self._limits, deadline).events())

    async def aclose(self) -> None:
        await self.connection.close()


class _WireAnswer:
    """One answer. Waits are bounded one by one: a cancel scope held across events would reach into the caller."""

    def __init__(self, model: OpenAIWireModel, request: ModelRequest, limits: TimeLimits, deadline: float) -> None:
        self._model = model
        self._request = request
        self._limits = limits
        self._deadline = deadline
        self._asked = Asked(
            model.name,
            local=model.endpoint.is_loopback,
            longest=longest_part(request.messages),
            loading_s=limits.first_token_s,
        )
        self._parts = AnswerParts(
            self._asked,
            offered=[name for tool in request.tools for name in (tool.name, *tool.aliases)],
            taken_ids=request.call_ids(),
        )
        self._decoder = EventDecoder()
        self._pending: deque[ModelEvent] = deque()
        self._started = math.nan
        self._heard = False
        self._over = False
        self._all_said = False

    async def events(self) -> AsyncGenerator[ModelEvent, None]:
        """Ask, and give out what comes. Events that were read together with a failure are dropped."""
        await self._model.connection.opened()
        self._started = anyio.current_time()
        # A little before the caller's own deadline, so that it hears what was waited for.
        margin = min(_MARGIN_S, max(self._deadline - self._started, 0.0) * _MARGIN_SHARE)
        self._deadline = min(self._deadline - margin, self._started + self._limits.whole_answer_s)
        delivered, answer = False, None
        try:
            answer = await self._ask()
            if answer.content_type != "text/event-stream":
                await self._read_whole(answer)
            while True:
                while self._pending:
                    event = self._pending.popleft()
                    delivered = delivered or isinstance(event, TextDelta)
                    yield event
                if self._over:
                    return
                await self._advance(answer)
        except ModelError as error:
            error.delivered = delivered
            error.usage = self._usage()
            raise error from None
        finally:
            if answer is not None:
                await answer.close(all_said=self._all_said)

    async def _ask(self) -> ByteAnswer:
        """Send the request; again as long as the server names a field that can be left out."""
        with self._bounded(self._limits.first_token_s, "first_token"):
            headers = await self._model.endpoint.admission()
        while True:
            dialect = self._model.dialect
            body = request_body(self._request, self._model.name, dialect)
            try:
                with self._bounded(self._limits.first_token_s, "first_token"):
                    return await self._model.connection.post(body, headers)
            except RefusedResponse as refused:
                failure = failure_of_response(refused.status, refused.headers, refused.body, asked=self._asked)
            adapted = dialect.without(failure.parameter)
            if adapted is None:
                raise failure
            self._model.dialect = adapted

    @contextmanager
    def _bounded(self, seconds: float, waited_for: str) -> Iterator[None]:
        """A wait of at most `seconds`, and not beyond the deadline; raises ModelTimedOutError that says what was waited
        for."""
        left = self._deadline - anyio.current_time()
        said_s = seconds
        if seconds >= left:
            seconds, said_s, waited_for = max(left, 0.0), max(self._deadline - self._started, 0.0), "whole_answer"
        with anyio.move_on_after(seconds) as scope:
            yield
        if scope.cancelled_caught:
            case = ("next_token" if waited_for == "next_token" else "whole_answer") if self._heard else "first_token"
            # A server on this machine can take minutes to read the prompt alone.
            raise ModelTimedOutError(waited_for, case, local=self._asked.local, seconds=f"{said_s:.3g} seconds")

    async def _advance(self, answer: ByteAnswer) -> None:
        """Read until there is an event, or the answer has ended."""
        seconds, waited_for = (
            (self._limits.next_token_s, "next_token") if self._heard else (self._limits.first_token_s, "first_token")
        )
        try:
            with self._bounded(self._limits.tail_s if self._parts.has_ended else seconds, waited_for):
                chunk = await answer.read()
        except ModelError as failure:
            if not self._parts.has_ended or failure.kind not in (FailureKind.TIMED_OUT, FailureKind.CUT_OFF):
                raise
            self._end(in_order=True)  # the answer was whole already; only its usage is missing
            return
        if chunk is None:
            self._take_all(self._decoder.finish())
            if not self._over:
                self._end(in_order=False)
            return
        try:
            self._take_all(self._decoder.feed(chunk))
        except StreamTooLargeError:
            raise self._endless() from None

    def _take_all(self, events: list[ServerEvent]) -> None:
        for event in events:
            if self._over:
                return
            self._take(event)

    def _take(self, event: ServerEvent) -> None:
        if event.data == _DONE:
            self._all_said = True
            self._end(in_order=True)
            return
        for document in _documents(event.data):
            if document is None:
                if self._parts.has_ended:
                    return
                raise self._unreadable(event.data)
            if event.name == "error":
                raise failure_of_error(document, asked=self._asked)
            found = self._parts.add(document)
            # Azure's remarks on the prompt come at once, and a reasoning model may think for long after them.
            self._heard = self._heard or bool(found)
            self._pending += found

    async def _read_whole(self, answer: ByteAnswer) -> None:
        """An answer that is no stream: a completion, an error, a web page, or a stream under a wrong type."""
        body = bytearray()
        while True:
            with self._bounded(self._limits.first_token_s, "first_token"):
                chunk = await answer.read()
            if chunk is None:
                break
            body += chunk
            if len(body) > MAX_STREAM_BYTES:
                raise self._endless()
        document = _parsed(bytes(body).decode("utf-8", "replace").removeprefix("\ufeff"))
        if document is not None:
            self._pending += self._parts.add(document, whole=True)
            self._end(in_order=True)
            return
        start = bytes(body[:200]).lstrip(b"\xef\xbb\xbf \r\n")
        if not start.startswith((b"data:", b":", b"event:", b"{")):
            raise self._unreadable(start.decode("utf-8", "replace"))
        try:
            self._take_all(self._decoder.feed(bytes(body)) + self._decoder.finish())
        except StreamTooLargeError:
            raise self._endless() from None
        if not self._over:
            self._end(in_order=False)

    def _end(self, *, in_order: bool) -> None:
        ended = self._parts.end(in_order=in_order)
        self._over = True
        self._pending.append(replace(ended, usage=self._usage()))

    def _usage(self) -> ModelUsage:
        seconds = anyio.current_time() - self._started
        return ModelUsage.of_request(self._model.name, self._parts.tokens, self._model.price, seconds)

    def _unreadable(self, data: str) -> ModelError:
        case = "web_page" if data.lstrip()[:1] == "<" else ""
        return ModelError(FailureKind.BAD_ANSWER, case, model=self._model.name, what="is not JSON")

    def _endless(self) -> ModelError:
        return ModelError(FailureKind.BAD_ANSWER, "endless", model=self._model.name)


def _documents(data: str) -> list[object]:
    """The JSON documents of one event: one, or one a line from servers that leave out blank lines. None for one that
    cannot be read."""
    whole = _parsed(data)
    if whole is not None or "\n" not in data:
        return [whole]
    return [_parsed(line) for line in data.splitlines() if line.strip() and line.strip() != _DONE]


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
