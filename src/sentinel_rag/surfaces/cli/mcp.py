"""`sentinel mcp`: the gateway's MCP server on standard input and output, for clients that start a program.

It holds a key and forwards messages; it decides nothing. A line goes on byte for byte: the gateway parses it, strictly,
and judges those bytes. Here it is looked at only for what HTTP repeats in headers (version, method, tool), so a line
that two parsers read differently is refused there. Standard output carries the protocol alone, so everything for people
goes to standard error.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

import aiohttp  # noqa: TID253  # this module is imported where it is used
import anyio
from anyio.abc import TaskGroup

from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.settings import Settings, load_settings

if TYPE_CHECKING:
    from ssl import SSLContext

RUN_KEY = "mcp"


def run(*, workspace: str | None) -> int:
    """Serve until standard input ends. Raises SentinelError if there is no gateway to speak to."""
    from sentinel_rag.app.tls import trusting

    settings = load_settings()
    with _gateway(settings, workspace) as (url, key):
        signal.signal(signal.SIGTERM, _interrupt)  # clients end their servers so; zones of our own end in order
        if sys.stdin.isatty():
            print(
                "This speaks MCP to the program that started it; docs/mcp.md says how to add it there. Ctrl-D ends it.",
                file=sys.stderr,
            )

        async def serve() -> None:
            lines, write = standard_streams()
            await Bridge(url, key, write, trusting(settings.deployment.tls_ca)).serve(lines)

        with suppress(KeyboardInterrupt):
            anyio.run(serve)
    return 0


def _interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextmanager
def _gateway(settings: Settings, workspace: str | None) -> Iterator[tuple[str, str]]:
    """The address of the gateway, and the key to use there."""
    if settings.gateway_url is not None:
        if workspace is not None:
            raise UsageError(
                "SENTINEL_URL is set, and a gateway that runs elsewhere has its own workspaces.",
                next_step="Leave --workspace out, or unset SENTINEL_URL.",
            )
        if settings.gateway_key is None:
            raise UsageError(
                "SENTINEL_URL is set without SENTINEL_API_KEY, so there is no key for that gateway.",
                next_step="Make one there: sentinel keys create --name my-editor --scope execute",
            )
        yield settings.gateway_url, settings.gateway_key.reveal()
        return
    from sentinel_rag.surfaces.cli._zones import attached_zones

    # Others may use the zones meanwhile: an approver has to see what waits.
    with attached_zones(settings, workspace, shared=True) as (state, _):
        zone = state.zone("interceptor")
        key = state.keys.get(RUN_KEY)
        if zone is None or key is None:
            raise UnavailableError(
                "The zones that run now have no key for MCP clients.",
                next_step="Start them again with this version: sentinel up",
            )
        yield zone.url, key


STATELESS = "2026-07-28"
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
MAX_LINE = 1_000_000
"""Bytes of a message; the gateway takes no longer one."""

MAX_IN_FLIGHT = 64
CONNECT_S = 10.0

_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")

Write = Callable[[bytes], None]


class Bridge:
    """Forwards to the gateway at `url` with `key`. `write` takes one message for the client, without its line end.
    `trusted` are the authorities to believe, those of the system where it is None."""

    def __init__(self, url: str, key: str, write: Write, trusted: SSLContext | None = None) -> None:
        self._url = f"{url.rstrip('/')}/mcp"
        self._headers = {
            "Authorization": f"Bearer {key}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        self._write = write
        self._trusted = trusted
        self._session: dict[str, str] = {}
        self._stateless: dict[str, list[anyio.CancelScope]] = {}
        self._running = 0

    async def serve(self, lines: AsyncIterator[bytes | None]) -> None:
        """Until the lines end; then the session is closed and what still runs is given up. None stands for a line that
        is too long."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
        connector = aiohttp.TCPConnector(limit=0, ssl=self._trusted or True)
        async with aiohttp.ClientSession(timeout=timeout, connector=connector, trust_env=False) as http:
            async with anyio.create_task_group() as group:
                async for line in lines:
                    await self._take(http, group, line)
                group.cancel_scope.cancel()
            if self._session:
                with suppress(aiohttp.ClientError, TimeoutError), anyio.move_on_after(CONNECT_S):
                    await http.delete(self._url, headers={**self._headers, **self._session})

    async def _take(self, http: aiohttp.ClientSession, group: TaskGroup, line: bytes | None) -> None:
        if line is None:
            self._fail(None, -32600, f"A message may have at most {MAX_LINE} bytes.")
            return
        if not line.strip():
            return
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = {}  # the gateway says what is wrong with it
        message = message if isinstance(message, dict) else {}
        if self._cancels(message):
            return
        # In order: what follows initialize is sent in the session that it opens; notifications and answers are short.
        if message.get("method") == "initialize" or ("method" in message) is not ("id" in message):
            await self._forward(http, line, message)
        elif self._running >= MAX_IN_FLIGHT:  # and not a wait, behind which no cancellation would be read
            self._fail(message.get("id"), -32603, f"At most {MAX_IN_FLIGHT} requests may run at once.")
        else:
            self._running += 1
            group.start_soon(self._in_place, http, line, message)

    async def _in_place(self, http: aiohttp.ClientSession, line: bytes, message: Mapping[str, Any]) -> None:
        try:
            if self._session and not _is_stateless(message):
                await self._forward(http, line, message)
                return
            with anyio.CancelScope() as scope:
                name = _name_of(message.get("id"))
                running = self._stateless.setdefault(name, [])
                running.append(scope)  # a client may have several under one id: each ends its own
                try:
                    await self._forward(http, line, message)
                finally:
                    running.remove(scope)
                    if not running and self._stateless.get(name) is running:
                        del self._stateless[name]
        finally:
            self._running -= 1

    def _cancels(self, message: Mapping[str, Any]) -> bool:
        """Whether the message ended requests of ours: without sessions the end of their connection is the word."""
        params = message.get("params")
        if message.get("method") != "notifications/cancelled" or not isinstance(params, dict):
            return False
        running = self._stateless.get(_name_of(params.get("requestId")), [])
        for scope in running:
            scope.cancel()
        return bool(running)

    async def _forward(self, http: aiohttp.ClientSession, line: bytes, message: Mapping[str, Any]) -> None:
        request_id = message.get("id") if "method" in message else None
        try:
            headers = {**self._headers, **self._routing(message)}
            async with http.post(self._url, data=line, headers=headers, allow_redirects=False) as response:
                if response.content_type == "text/event-stream":
                    await self._relay(response, request_id)
                    return
                content = await response.read()
                if response.status < 400 and message.get("method") == "initialize":
                    self._opened(response, content)
                self._tell(content, response.status, request_id)
        except (aiohttp.ClientError, OSError, TimeoutError):
            self._fail(request_id, -32603, "The gateway did not answer; run: sentinel status")

    def _routing(self, message: Mapping[str, Any]) -> dict[str, str]:
        """The headers in which a request repeats what its body says."""
        if not _is_stateless(message):
            return {} if message.get("method") == "initialize" else dict(self._session)
        params = message["params"]
        headers = {
            "Mcp-Protocol-Version": _header(params["_meta"][VERSION_KEY]),
            "Mcp-Method": _header(message.get("method")),
        }
        if message.get("method") == "tools/call":
            headers["Mcp-Name"] = _header(params.get("name"))
        return headers

    def _opened(self, response: aiohttp.ClientResponse, content: bytes) -> None:
        session = response.headers.get("Mcp-Session-Id")
        with suppress(ValueError, KeyError, TypeError):
            version = json.loads(content)["result"]["protocolVersion"]
            if session:
                self._session = {"Mcp-Session-Id": session, "Mcp-Protocol-Version": version}

    async def _relay(self, response: aiohttp.ClientResponse, request_id: Any) -> None:
        answered = False
        async for event in _events(response):
            answered = answered or _is_answer(event)
            self._write(event)
        if not answered:
            self._fail(request_id, -32603, "The gateway ended the connection before the answer.")

    def _tell(self, content: bytes, status: int, request_id: Any) -> None:
        """Pass an answer on. What is no JSON-RPC, such as a refusal of the key, becomes the error of the request."""
        if not content:
            return
        try:
            document = json.loads(content)
        except ValueError:
            document = {}
        if isinstance(document, dict) and document.get("jsonrpc") == "2.0":
            error = document.get("error")
            if document.get("id") is None and request_id is not None and isinstance(error, dict):
                # The gateway could not even read the id; the client waits under the one that it meant.
                self._fail(request_id, error["code"], error["message"], error.get("data"))
                return
            self._write(content)
            return
        detail = document.get("detail") if isinstance(document, dict) else None
        said = detail if isinstance(detail, str) else f"The gateway answered {status}."
        self._fail(request_id, -32603, said, document if isinstance(document, dict) else None)

    def _fail(self, request_id: Any, code: int, message: str, data: Mapping[str, Any] | None = None) -> None:
        error: dict[str, Any] = {"code": code, "message": message, **({"data": data} if data else {})}
        self._write(json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}).encode())


def _is_stateless(message: Mapping[str, Any]) -> bool:
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and VERSION_KEY in meta


def _is_answer(event: bytes) -> bool:
    document = json.loads(event)
    return "result" in document or "error" in document


def _name_of(request_id: Any) -> str:
    return json.dumps(request_id)  # "1" is not 1


def _header(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    if _PLAIN.fullmatch(text) and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'surrogatepass')).decode()}?="


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The data of each event; a message is one line of it, as the gateway writes them."""
    left = b""
    async for chunk in response.content.iter_any():
        *whole, left = (left + chunk).split(b"\n")
        for line in whole:
            if line.startswith(b"data: "):
                yield line.removeprefix(b"data: ")


def standard_streams() -> tuple[AsyncIterator[bytes | None], Write]:
    """The lines of standard input, and what writes a line to standard output. Of a line that is too long comes None."""
    output = os.dup(sys.stdout.fileno())

    def write(message: bytes) -> None:
        left = memoryview(message.replace(b"\n", b" ") + b"\n")
        while left:
            left = left[os.write(output, left) :]

    return lines_of(_chunks(sys.stdin.fileno())), write


async def lines_of(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes | None]:
    """Each line without its end; None for one of more than `MAX_LINE` bytes."""
    left, skips = bytearray(), False
    async for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for part in ends:
            left += part
            yield None if skips or len(left) > MAX_LINE else bytes(left).rstrip(b"\r")
            left, skips = bytearray(), False
        left += rest
        if len(left) > MAX_LINE:
            left, skips = bytearray(), True
    if left or skips:
        yield None if skips else bytes(left)


async def _chunks(descriptor: int) -> AsyncIterator[bytes]:
    """What comes, until its end. A thread reads, since standard input may be a file, a pipe or a terminal; it ends with
    the process and holds no lock that its end would wait for."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[bytes](maxsize=16)

    def read() -> None:
        with suppress(RuntimeError):  # the loop has ended
            while True:
                try:
                    chunk = os.read(descriptor, 65_536)
                except OSError:
                    chunk = b""
                asyncio.run_coroutine_threadsafe(queue.put(chunk), loop).result()
                if not chunk:
                    return

    threading.Thread(target=read, name="standard-input", daemon=True).start()
    while chunk := await queue.get():
        yield chunk
