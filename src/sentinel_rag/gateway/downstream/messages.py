"""Messages of an MCP client, the era of the protocol that each is of, and its answer over HTTP.

The body was parsed once, strictly, by `request_body`; one body holds one message. 2026-07-28 has no sessions: headers
repeat what a proxy would route by, and one that disagrees with the body is refused, because whoever reads the header
alone would have seen another request. The revisions of 2025 open with `initialize` and name the session that it gave.
An answer becomes a stream at the first thing that has to be said before the end.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, TypeVar

import anyio
import msgspec
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sentinel_rag.contracts.json_values import JsonObject

RequestId = int | str

MAX_ID = 256
"""Characters of an id, a method or a token that a client chooses."""


class Code(IntEnum):
    """Error codes of JSON-RPC and of MCP."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    HEADER_MISMATCH = -32020
    UNSUPPORTED_VERSION = -32022


@dataclass(frozen=True, slots=True)
class Request:
    """Wants an answer under its id, which is unique among the client's requests of a session."""

    request_id: RequestId
    method: str
    params: JsonObject

    @property
    def meta(self) -> JsonObject:
        """`params._meta`; empty where there is none."""
        return meta_of(self.params)


@dataclass(frozen=True, slots=True)
class Notification:
    """Wants no answer."""

    method: str
    params: JsonObject


@dataclass(frozen=True, slots=True)
class ClientAnswer:
    """What the client says to a request of ours; `result` is None where it says that it failed."""

    request_id: RequestId
    result: JsonObject | None


ClientMessage = Request | Notification | ClientAnswer


class RpcFault(Exception):
    """The message gets an error for an answer. `data` may be shown to the client."""

    def __init__(self, code: Code, message: str, *, data: Any = None, request_id: RequestId | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data
        self.request_id = request_id

    def for_request(self, request_id: RequestId | None) -> RpcFault:
        """The same as the answer to that request."""
        return RpcFault(self.code, str(self), data=self.data, request_id=request_id)


def read_message(document: Mapping[str, Any]) -> ClientMessage:
    """The message that a parsed body is. Raises RpcFault."""
    known = {"jsonrpc", "id", "method", "params", "result", "error"}
    request_id = document.get("id")
    if "id" in document and not is_id(request_id):
        raise RpcFault(Code.INVALID_REQUEST, "id must be a text or a whole number.")
    answered = request_id if is_id(request_id) else None
    if document.get("jsonrpc") != "2.0" or document.keys() - known:
        raise RpcFault(Code.INVALID_REQUEST, "The body must be one JSON-RPC 2.0 message.", request_id=answered)
    if "method" in document:
        return _asked(document, request_id)
    result = document.get("result")
    is_answer = isinstance(result, dict) if "result" in document else "error" in document
    if request_id is None or not is_answer or ("result" in document and "error" in document):
        raise RpcFault(Code.INVALID_REQUEST, "The body must be one JSON-RPC 2.0 message.", request_id=answered)
    return ClientAnswer(request_id, result)


def _asked(document: Mapping[str, Any], request_id: Any) -> Request | Notification:
    method, params = document["method"], document.get("params", {})
    if not isinstance(method, str) or not 0 < len(method) <= MAX_ID or "result" in document or "error" in document:
        raise RpcFault(Code.INVALID_REQUEST, "The body must be one JSON-RPC 2.0 message.", request_id=request_id)
    if not isinstance(params, dict):
        raise RpcFault(Code.INVALID_PARAMS, "params must be an object.", request_id=request_id)
    if "_meta" in params and not isinstance(params["_meta"], dict):
        raise RpcFault(Code.INVALID_PARAMS, "params._meta must be an object.", request_id=request_id)
    return Notification(method, params) if request_id is None else Request(request_id, method, params)


def is_id(value: Any) -> bool:
    """Whether a value may be the id of a request, or a progress token. True is a number to Python only."""
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, str) and len(value) <= MAX_ID)


def meta_of(params: JsonObject) -> JsonObject:
    """`_meta` of params that `read_message` has read; empty where there is none."""
    meta = params.get("_meta")
    return meta if isinstance(meta, dict) else {}


def result_bytes(request_id: RequestId, result: Mapping[str, Any]) -> bytes:
    """The answer to a request."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def error_bytes(fault: RpcFault) -> bytes:
    """The answer that says why there is no result."""
    error: dict[str, Any] = {"code": fault.code.value, "message": str(fault)}
    if fault.data is not None:
        error["data"] = fault.data
    return msgspec.json.encode({"jsonrpc": "2.0", "id": fault.request_id, "error": error})


def request_bytes(request_id: RequestId, method: str, params: Mapping[str, Any]) -> bytes:
    """A request to the client."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def notification_bytes(method: str, params: Mapping[str, Any]) -> bytes:
    """Something that the client is told."""
    return msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params})


STATELESS = "2026-07-28"
WITH_SESSIONS = ("2025-03-26", "2025-06-18", "2025-11-25")
"""Oldest first."""

SERVED = (*WITH_SESSIONS, STATELESS)

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"

VERSION_HEADER, METHOD_HEADER, NAME_HEADER = "mcp-protocol-version", "mcp-method", "mcp-name"

_REPEATING = frozenset(name.encode() for name in (VERSION_HEADER, METHOD_HEADER, NAME_HEADER))
_ENCODED = re.compile(r"=\?base64\?(?P<payload>[A-Za-z0-9+/=]*)\?=")


class ProtocolVersion(Enum):
    """Whether a client opens a session and goes on in it."""

    SESSIONS = "sessions"
    STATELESS = "stateless"


def era_of(headers: Headers, message: ClientMessage) -> ProtocolVersion:
    """The era of a message. Raises RpcFault for a version that is not served, and for headers that disagree with each
    other or with the body."""
    said = _said(headers)
    version = said.get(VERSION_HEADER)
    meta = message.meta if isinstance(message, Request) else {}
    if isinstance(message, Request) and message.method == "initialize" and VERSION_KEY not in meta:
        if version == STATELESS:
            raise RpcFault(Code.METHOD_NOT_FOUND, f"MCP {STATELESS} has no initialize.")
        return ProtocolVersion.SESSIONS  # it settles the version; what its header says is not known yet
    if version != STATELESS and VERSION_KEY not in meta:
        if version not in (None, *WITH_SESSIONS):
            raise _unsupported(version)
        return ProtocolVersion.SESSIONS
    if isinstance(message, Request):
        _check_stateless(said, message)
    return ProtocolVersion.STATELESS


def _check_stateless(said: Mapping[str, str], request: Request) -> None:
    meta = request.meta
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]
    if missing:
        raise RpcFault(Code.INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}.")
    if said.get(VERSION_HEADER) != meta[VERSION_KEY]:
        raise RpcFault(Code.HEADER_MISMATCH, f"The header {VERSION_HEADER} is not the version in params._meta.")
    if said.get(METHOD_HEADER) != request.method:
        raise RpcFault(Code.HEADER_MISMATCH, f"The header {METHOD_HEADER} is not the method.")
    if request.method == "tools/call" and decoded(said.get(NAME_HEADER)) != request.params.get("name"):
        raise RpcFault(Code.HEADER_MISMATCH, f"The header {NAME_HEADER} is not the tool's name.")
    if meta[VERSION_KEY] != STATELESS:
        raise _unsupported(meta[VERSION_KEY])


def _said(headers: Headers) -> Mapping[str, str]:
    """The headers that repeat a body. White space around a value is none of it (RFC 9110), and the parser below leaves
    some of it. Raises RpcFault for one that is there twice."""
    said: dict[str, str] = {}
    for raw_name, raw_value in headers.raw:
        if raw_name in _REPEATING:
            name = raw_name.decode()
            if name in said:
                raise RpcFault(Code.HEADER_MISMATCH, f"The header {name} is there more than once.")
            said[name] = raw_value.decode("latin-1").strip(" \t")
    return said


def _unsupported(version: Any) -> RpcFault:
    data = {"supported": list(SERVED), "requested": version}
    return RpcFault(Code.UNSUPPORTED_VERSION, "This version of MCP is not served.", data=data)


def negotiated(wanted: Any, served: Sequence[str] = WITH_SESSIONS) -> str:
    """The version of a session that `initialize` asks for: that one if it is served, else the newest."""
    return wanted if isinstance(wanted, str) and wanted in served else served[-1]


def decoded(header: str | None) -> str | None:
    """The text of a header that may be wrapped, `=?base64?...?=`; None for one that is wrapped in a wrong way."""
    wrapped = _ENCODED.fullmatch(header or "")
    if wrapped is None:
        return header
    payload = wrapped["payload"]
    try:
        text = base64.b64decode(payload, validate=True)
        # Two spellings of one text would be two readings.
        return text.decode() if base64.b64encode(text).decode() == payload else None
    except (binascii.Error, UnicodeDecodeError):
        return None


def is_cancellation(message: ClientMessage) -> bool:
    """Whether a client says that it does not wait for a request any more."""
    return isinstance(message, Notification) and message.method == "notifications/cancelled"


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
