"""The openai SDK, and nothing of it leaves here: one POST, its raw bytes back, every fault a `ModelError`.

Works alike on both majors (2.54 on httpx, 3.x on httpx2): the SDK builds and sends the request, and the bytes are read
past its parsers. It is an extra, so it is imported on first use, in a thread since that takes a second or two. No
redirect is followed (it would carry the key away), nothing is retried, and a proxy is asked only for other machines.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from ssl import PROTOCOL_TLS_CLIENT, SSLContext
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from sentinel_rag.agent.models.failures import FailureKind, ModelError, ModelTimedOutError

if TYPE_CHECKING:
    from types import ModuleType

    from openai import AsyncOpenAI

MAX_REFUSAL_BYTES = 200_000
_CLOSING_SECONDS = 2.0
_ENDING_SECONDS = 0.2
_LOGGERS = ("openai", "httpx", "httpcore", "httpx2", "httpcore2")


class RefusedResponse(Exception):  # not a failure yet: `refusals` says what it means
    """An answer with a status other than 200: what it holds, at most MAX_REFUSAL_BYTES of it."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.headers = headers
        self.body = body


class ByteAnswer:
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


class SdkConnection:
    """Connections to one address, shared by all streams of a model. `connect_s` bounds the opening of one."""

    def __init__(self, base_url: str, *, query: Mapping[str, str], connect_s: float, use_proxy: bool) -> None:
        self._base_url = base_url
        self._query = dict(query)
        self._connect_s = connect_s
        self._use_proxy = use_proxy
        self._client: AsyncOpenAI | None = None
        self._opening = anyio.Lock()

    async def post(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> ByteAnswer:
        """Send one chat completions request and wait for the head of its answer.

        Raises RefusedResponse for another status than 200 and ModelError if there is no answer.
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
            return ByteAnswer(manager, await manager.__aenter__(), self._base_url)
        except Exception as error:  # as above: what is no refusal is told as unreachable
            refused = (cause for cause in _causes(error) if isinstance(cause, RefusedResponse))  # 2.x wraps it
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
    raise RefusedResponse(response.status_code, headers, bytes(body[:MAX_REFUSAL_BYTES]))


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
