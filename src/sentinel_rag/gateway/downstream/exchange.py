"""One answer over HTTP: a JSON body, or a stream of server-sent events once something has to be said before the end.

Whether it becomes a stream is settled by the work itself, at the first thing that it says. Nothing here knows MCP's
methods.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sentinel_rag.gateway.downstream.messages import Code, RequestId, RpcFault, error_bytes

_COMMON = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
_STREAM = [*_COMMON, (b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no")]

BROKEN = "The gateway failed; the call may have no result."

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reply:
    """The last word: the JSON of a message. `status` counts only where nothing was said before."""

    body: bytes
    status: int = 200


class Stream:
    """What may be said before the answer. Several tasks may speak."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._lock = anyio.Lock()
        self.started = False

    async def say(self, message: bytes) -> None:
        """Send a message now; from here on the answer is an event too."""
        async with self._lock:
            if not self.started:
                self.started = True
                await self._send({"type": "http.response.start", "status": 200, "headers": _STREAM})
            await self._send({"type": "http.response.body", "body": _event(message), "more_body": True})

    async def breathe(self) -> None:
        """Show that the connection lives, if it has become a stream."""
        async with self._lock:
            if self.started:
                await self._send({"type": "http.response.body", "body": b": waiting\n\n", "more_body": True})

    async def end(self, message: bytes) -> None:
        await self._send({"type": "http.response.body", "body": _event(message), "more_body": False})


class Exchange(Response):
    """Runs `work` and sends what it returns. Without `streams` the client takes no events, so `work` gets no stream."""

    def __init__(
        self, request_id: RequestId, work: Callable[[Stream | None], Awaitable[Reply]], *, streams: bool
    ) -> None:
        self.status_code = 200
        self.background = None
        self.raw_headers = list(_COMMON)
        self._request_id = request_id
        self._work = work
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        stream = Stream(send)
        try:
            reply = await self._work(stream if self._streams else None)
        except Exception:
            if stream.started:  # the head has gone: the application's own handlers can say nothing any more
                await stream.end(error_bytes(RpcFault(Code.INTERNAL_ERROR, BROKEN, request_id=self._request_id)))
            raise
        if stream.started:
            await stream.end(reply.body)
            return
        size = (b"content-length", b"%d" % len(reply.body))
        headers = [*_COMMON, (b"content-type", b"application/json"), size]
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": reply.body})


def _event(message: bytes) -> bytes:
    # JSON as we write it has no line ends, which would end the event's data.
    return b"event: message\ndata: " + message + b"\n\n"


async def meanwhile(beside: Callable[[], Coroutine[Any, Any, None]], work: Awaitable[T]) -> T:
    """What `work` gives or raises; `beside` runs for as long as it takes."""
    found: list[T] = []
    fault: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(beside)
        try:
            found.append(await work)
        except Exception as error:  # on its own it leaves the group; a group would wrap it
            fault = error
        group.cancel_scope.cancel()
    if fault is not None:
        raise fault
    return found[0]
