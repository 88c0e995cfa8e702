"""A model server on loopback that says what a script says: the second, shipped implementation behind the model port.

It speaks HTTP by itself over TCP, so that a reply can break the protocol at any byte. It is as strict as the services:
paths, keys and request bodies are checked before the script is asked. Keeps every request for assertions.
"""

from __future__ import annotations

import json
import re
import socket
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import anyio
from anyio import TypedAttributeProvider
from anyio.abc import Listener, SocketAttribute, SocketStream
from anyio.from_thread import start_blocking_portal

from sentinel_rag_testing.scripted_model.replies import (
    Cut,
    Event,
    Hang,
    Part,
    Pause,
    Raw,
    Repeated,
    Reply,
    event_bytes,
    json_reply,
)
from sentinel_rag_testing.scripted_model.request_rules import embedding_fault, request_fault

_AZURE_DEPLOYMENT = re.compile(r"/openai/deployments/([^/]+)/(?:chat/completions|embeddings)")
_AZURE_V1 = ("/openai/v1/chat/completions", "/openai/v1/embeddings")
_COMPATIBLE = re.compile(r"(?:/[\w.-]+)*/v\d+(?:/chat/completions|/embeddings|/models)")
MAX_REQUEST_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class ModelHttpRequest:
    """A request as it arrived. `fault` is what a service would have refused in its body, None if nothing."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    fault: str | None

    @property
    def model(self) -> str:
        """The deployment of an Azure path, else the body's model."""
        match = _AZURE_DEPLOYMENT.fullmatch(self.path)
        return unquote(match[1]) if match else str(self.body.get("model")) if isinstance(self.body, dict) else ""


Respond = Callable[[ModelHttpRequest], Reply]


@dataclass(slots=True)
class ScriptedModel:
    """The server. `replies` are given out in order and the last one repeats; `respond` decides instead if it is given.

    `key` is asked for as each path does: `api-key` or a bearer token on Azure's, a bearer token elsewhere; empty asks
    for none. `models` are the names that exist; empty lets any name be. Requests that the checks refuse are kept too.
    `connections` counts every one that was opened. `together` holds answers back until so many requests have arrived.
    `of_others` lets in what clients of others send and this product never does.
    """

    replies: Sequence[Reply] = ()
    key: str = ""
    models: frozenset[str] = frozenset()
    respond: Respond | None = None
    port: int = 0
    together: int = 0
    of_others: bool = False
    requests: list[ModelHttpRequest] = field(default_factory=list)
    open_connections: int = 0
    most_connections: int = 0
    connections: int = 0
    _given: int = 0
    _all_here: anyio.Event = field(default_factory=anyio.Event)

    @contextmanager
    def running(self) -> Iterator[str]:
        """Serve on loopback in a thread of its own and yield `http://127.0.0.1:PORT`."""
        with start_blocking_portal("asyncio") as portal:
            listener = portal.call(self._listen)
            stop = portal.call(anyio.Event)
            done = portal.start_task_soon(self._serve, listener, stop)
            try:
                yield f"http://127.0.0.1:{_socket(listener).getsockname()[1]}"
            finally:
                portal.call(stop.set)
                done.result()

    async def run(self, announce: Callable[[str], None]) -> None:
        """Serve until cancelled; `announce` is told the address."""
        listener = await self._listen()
        announce(f"http://127.0.0.1:{_socket(listener).getsockname()[1]}")
        await self._serve(listener, anyio.Event())

    async def _listen(self) -> Listener[SocketStream]:
        many = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=self.port, backlog=512)
        return many.listeners[0]

    async def _serve(self, listener: Listener[SocketStream], stop: anyio.Event) -> None:
        async with listener, anyio.create_task_group() as group:
            group.start_soon(listener.serve, self._connection)
            await stop.wait()
            group.cancel_scope.cancel()

    async def _connection(self, stream: SocketStream) -> None:
        self.connections += 1
        self.open_connections += 1
        self.most_connections = max(self.most_connections, self.open_connections)
        try:
            async with stream:
                _socket(stream).setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, _CutError):
                    while await self._exchange(stream):
                        pass
        finally:
            self.open_connections -= 1

    async def _exchange(self, stream: SocketStream) -> bool:
        """Read one request and answer it; False if the connection ends with it."""
        head = bytearray()
        while b"\r\n\r\n" not in head:
            head += await stream.receive()
        lines, _, rest = bytes(head).partition(b"\r\n\r\n")
        first, *fields = lines.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = {name.casefold(): value.strip() for name, _, value in (line.partition(":") for line in fields)}
        length = min(int(headers.get("content-length", "0")), MAX_REQUEST_BYTES)
        body = bytearray(rest)
        while len(body) < length:
            body += await stream.receive()
        reply = self._decide(method, target, headers, bytes(body))
        if len(self.requests) >= self.together:
            self._all_here.set()
        await self._all_here.wait()
        return await _write(stream, reply)

    def _decide(self, method: str, target: str, headers: Mapping[str, str], raw: bytes) -> Reply:
        parts = urlsplit(target)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        try:
            body = json.loads(raw) if raw else None
        except ValueError:
            body = None
        embeds = parts.path.endswith("/embeddings")
        fault = embedding_fault(body) if embeds else request_fault(body, of_others=self.of_others)
        request = ModelHttpRequest(parts.path, query, headers, body, fault)
        azure = _AZURE_DEPLOYMENT.fullmatch(parts.path) is not None
        if not azure and parts.path not in _AZURE_V1 and not _COMPATIBLE.fullmatch(parts.path):
            return json_reply({"error": {"code": "404", "message": "Resource not found"}}, 404)
        if azure and not re.fullmatch(r"\d{4}-\d\d-\d\d(-preview)?", query.get("api-version", "")):
            return json_reply({"error": {"code": "404", "message": "Resource not found"}}, 404)
        if not self._lets_in(request, azure=azure or parts.path in _AZURE_V1):
            shown = headers.get("authorization", "") or headers.get("api-key", "")
            message = f"Incorrect API key provided: {shown}. Access denied."
            return json_reply({"error": {"code": "invalid_api_key", "message": message}}, 401)
        if method == "GET":
            names = [{"id": name, "object": "model"} for name in sorted(self.models)]
            return json_reply({"object": "list", "data": names})
        self.requests.append(request)
        if self.models and request.model not in self.models:
            code = "DeploymentNotFound" if azure else "model_not_found"
            return json_reply({"error": {"code": code, "message": f"The model {request.model} does not exist."}}, 404)
        if request.fault is not None:
            error = {"message": request.fault, "type": "invalid_request_error", "param": None, "code": None}
            return json_reply({"error": error}, 400)
        if self.respond is not None:
            return self.respond(request)
        place = min(self._given, len(self.replies) - 1)
        self._given += 1
        if place < 0:
            return json_reply({"error": {"message": "The script has no reply.", "code": "no_reply"}}, 500)
        return self.replies[place]

    def _lets_in(self, request: ModelHttpRequest, *, azure: bool) -> bool:
        if not self.key:
            return True
        given = request.headers.get("authorization", "")
        return given == f"Bearer {self.key}" or (azure and request.headers.get("api-key") == self.key)


class _CutError(Exception):
    """The script resets the connection."""


def _socket(owner: TypedAttributeProvider) -> socket.socket:
    found: socket.socket = owner.extra(SocketAttribute.raw_socket)  # noqa: S610  # anyio's, and not Django's
    return found


async def _write(stream: SocketStream, reply: Reply) -> bool:
    plain = reply.framing != "chunked" or reply.status == 0
    for part in reply.before_head:
        await _write_part(stream, part, plain=True)
    if reply.status:
        await stream.send(_head(reply))
    for part in reply.parts:
        await _write_part(stream, part, plain=plain)
    if not plain:
        await stream.send(b"0\r\n\r\n")
    return reply.status != 0 and reply.framing != "close"


def _head(reply: Reply) -> bytes:
    headers = {"Content-Type": reply.content_type, **reply.headers}
    if reply.framing == "chunked":
        headers["Transfer-Encoding"] = "chunked"
    elif reply.framing == "length":
        headers["Content-Length"] = str(sum(len(_content(part)) for part in reply.parts))
    else:
        headers["Connection"] = "close"
    lines = [f"HTTP/1.1 {reply.status} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _content(part: Part) -> bytes:
    match part:
        case Event(document):
            return event_bytes(document)
        case Raw(content):
            return content
        case Repeated(content, times):
            return content * times
        case _:
            return b""


async def _write_part(stream: SocketStream, part: Part, *, plain: bool) -> None:
    async def send(content: bytes) -> None:
        if content:
            await stream.send(content if plain else b"%x\r\n%b\r\n" % (len(content), content))

    match part:
        case Event() | Raw():
            await send(_content(part))
        case Repeated(content, times, pause_s):
            for _ in range(times):
                await send(content)
                await anyio.sleep(pause_s)
        case Pause(seconds):
            await anyio.sleep(seconds)
        case Hang():
            await stream.receive()  # a client that waits sends nothing; when it leaves, this ends
        case Cut():
            _socket(stream).setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            raise _CutError
