"""`ChatModel` over the OpenAI wire: Azure OpenAI, OpenAI, OpenRouter, Ollama, vLLM, llama.cpp.

Sends one request a stream and bounds each wait of it; what comes goes through `answer_parts`. Asks again by itself only
where the server says how: without a field that it does not take.

The openai SDK builds and sends the request, and nothing of it leaves here: its raw bytes are read past its parsers, and
every fault is a `ModelError`. Both majors work alike (2.54 on httpx, 3.x on httpx2). It is an extra, so it is imported
on first use, in a thread since that takes a second or two. No redirect is followed (it would carry the key away),
nothing is retried, and a proxy is asked only for other machines.
"""

from __future__ import annotations

import json
import logging
import math
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager
from dataclasses import dataclass, replace
from ssl import PROTOCOL_TLS_CLIENT, SSLContext
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from sentinel_rag.agent.models.answer_parts import (
    MAX_STREAM_BYTES,
    AnswerParts,
    EventDecoder,
    ServerEvent,
    StreamTooLargeError,
)
from sentinel_rag.agent.models.endpoints import ModelEndpoint, request_body
from sentinel_rag.agent.models.failures import (
    Asked,
    FailureKind,
    ModelError,
    ModelTimedOutError,
    failure_of_error,
    failure_of_response,
    longest_part,
)
from sentinel_rag.agent.models.port import (
    NO_DEADLINE,
    ModelEvent,
    ModelRequest,
    ModelStream,
    ModelUsage,
    Price,
    TextDelta,
)

if TYPE_CHECKING:
    from types import ModuleType

    from openai import AsyncOpenAI

_DONE = "[DONE]"
_MARGIN_S = 1.0
_MARGIN_SHARE = 0.02
MAX_REFUSAL_BYTES = 200_000
_CLOSING_SECONDS = 2.0
_ENDING_SECONDS = 0.2
_LOGGERS = ("openai", "httpx", "httpcore", "httpx2", "httpcore2")


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
        self.connection = _SdkConnection(
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

    async def _ask(self) -> _ByteAnswer:
        """Send the request; again as long as the server names a field that can be left out."""
        with self._bounded(self._limits.first_token_s, "first_token"):
            headers = await self._model.endpoint.admission()
        while True:
            dialect = self._model.dialect
            body = request_body(self._request, self._model.name, dialect)
            try:
                with self._bounded(self._limits.first_token_s, "first_token"):
                    return await self._model.connection.post(body, headers)
            except _RefusedResponse as refused:
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

    async def _advance(self, answer: _ByteAnswer) -> None:
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

    async def _read_whole(self, answer: _ByteAnswer) -> None:
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


class _RefusedResponse(Exception):  # not a failure yet: `failure_of_response` says what it means
    """An answer with a status other than 200: what it holds, at most MAX_REFUSAL_BYTES of it."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.headers = headers
        self.body = body


class _ByteAnswer:
    """An answer with status 200 that is being read. Close it, also after an error."""

    def __init__(self, manager: AbstractAsyncContextManager[Any], response: Any, address: str) -> None:
        self._manager = manager
        self._bytes: AsyncIterator[bytes] = response.iter_bytes()
        self._address = address
        self.content_type = str(response.headers.get("content-type", "")).partition(";")[0].strip().casefold()

    async def read(self) -> bytes | None:
        """The next bytes, None at the end. Raises ModelError if the connection breaks."""
        try:
            return await anext(self._bytes, None)
        except Exception as error:  # each major of the SDK lets other libraries' errors through; none goes further
            raise _broken(error, self._address) from None

    async def close(self, *, all_said: bool = False) -> None:
        """Give the connection up, whatever is still to come; works while being cancelled. `all_said`: only the end of
        the body can follow, so it is read for a moment and the connection serves the next answer."""
        with anyio.move_on_after(_CLOSING_SECONDS, shield=True):
            try:
                if all_said:
                    with anyio.move_on_after(_ENDING_SECONDS):
                        await anext(self._bytes, None)
                await self._manager.__aexit__(None, None, None)
            except Exception:  # the answer is read or lost already; how its connection ends changes nothing
                return


class _SdkConnection:
    """Connections to one address, shared by all streams of a model. `connect_s` bounds the opening of one."""

    def __init__(self, base_url: str, *, query: Mapping[str, str], connect_s: float, use_proxy: bool) -> None:
        self._base_url = base_url
        self._query = dict(query)
        self._connect_s = connect_s
        self._use_proxy = use_proxy
        self._client: AsyncOpenAI | None = None
        self._opening = anyio.Lock()

    async def post(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> _ByteAnswer:
        """Send one chat completions request and wait for the head of its answer.

        Raises _RefusedResponse for another status than 200 and ModelError if there is no answer.
        """
        client, omit = await self.opened()
        # What the process's environment names for OpenAI's own service is not for every provider.
        without = dict.fromkeys(("OpenAI-Organization", "OpenAI-Project", "Authorization"), omit)
        fields = {key: body[key] for key in ("model", "messages", "stream")}
        manager: AbstractAsyncContextManager[Any] = client.chat.completions.with_streaming_response.create(
            **fields,
            extra_body={key: value for key, value in body.items() if key not in fields},
            extra_headers={**without, "Accept-Encoding": "identity", **headers},
        )
        try:
            return _ByteAnswer(manager, await manager.__aenter__(), self._base_url)
        except Exception as error:  # as above: what is no refusal is told as unreachable
            refused = (cause for cause in _causes(error) if isinstance(cause, _RefusedResponse))  # 2.x wraps it
            raise next(refused, None) or _unreachable(error, self._base_url) from None

    async def close(self) -> None:
        """Close idle connections; the next request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def opened(self) -> tuple[AsyncOpenAI, Any]:
        """The SDK's client and its mark for a header that is left out. Loads the SDK, so it is awaited before any time
        limit runs. Raises ModelError where it is not installed."""
        async with self._opening:
            sdk = await anyio.to_thread.run_sync(_import_sdk)
            if self._client is None:
                timeout = sdk.Timeout(None, connect=self._connect_s)
                self._client = sdk.AsyncOpenAI(
                    base_url=self._base_url,
                    api_key="each request brings its own",
                    default_query=self._query,
                    max_retries=0,
                    timeout=timeout,
                    http_client=sdk.DefaultAsyncHttpxClient(
                        timeout=timeout,
                        follow_redirects=False,
                        trust_env=self._use_proxy,
                        # Over plain http no certificate is checked, so none is loaded; this context trusts none.
                        verify=SSLContext(PROTOCOL_TLS_CLIENT) if self._base_url.startswith("http://") else True,
                        event_hooks={"response": [_stop_at_refusal]},
                    ),
                )
        return self._client, sdk.Omit()


def _import_sdk() -> ModuleType:
    try:
        import openai
        from openai.resources.chat import completions  # noqa: F401  # lazily loaded by the SDK, so load it here too
    except ImportError:
        raise ModelError(FailureKind.NOT_INSTALLED) from None
    for name in _LOGGERS:  # at DEBUG they write request bodies and headers
        logging.getLogger(name).setLevel(logging.WARNING)
    return openai


async def _stop_at_refusal(response: Any) -> None:
    """Read a refusal before the SDK does, which would read a body without end."""
    if response.status_code == 200:
        return
    body = bytearray()
    try:
        async for part in response.aiter_bytes():
            body += part
            if len(body) > MAX_REFUSAL_BYTES:
                break
    except Exception:  # noqa: S110  # the status says enough
        pass
    headers = {str(name).casefold(): str(value) for name, value in response.headers.items()}
    raise _RefusedResponse(response.status_code, headers, bytes(body[:MAX_REFUSAL_BYTES]))


def _causes(error: BaseException) -> list[BaseException]:
    found = [error]
    while len(found) < 10 and (cause := found[-1].__cause__ or found[-1].__context__) is not None:
        found.append(cause)
    return found


def _names(error: BaseException) -> set[str]:
    """Class names of `error` and its causes: the two majors raise the classes of two libraries under one name."""
    return {kind.__name__ for cause in _causes(error) for kind in type(cause).__mro__}


def _unreachable(error: BaseException, address: str) -> ModelError:
    names = _names(error)
    hung_up = any("disconnected" in str(cause) for cause in _causes(error))
    for name, case in (("SSLCertVerificationError", "no_certificate"), ("SSLError", "no_https")):
        if name in names:
            return ModelError(FailureKind.UNREACHABLE, case, address=address)
    if names & {"ConnectTimeout", "PoolTimeout"}:
        return ModelTimedOutError("connection", address=address)
    if names & {"RemoteProtocolError", "LocalProtocolError", "DecodingError"} and not hung_up:
        return ModelError(FailureKind.BAD_ANSWER, "no_http", address=address)
    return ModelError(FailureKind.UNREACHABLE, address=address)


def _broken(error: BaseException, address: str) -> ModelError:
    if "DecodingError" in _names(error):
        return ModelError(FailureKind.BAD_ANSWER, "packed", address=address)
    return ModelError(FailureKind.CUT_OFF, "connection_lost")
