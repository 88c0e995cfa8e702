"""The two ways in which the benchmark calls an MCP server, each as light as it gets: over HTTP with the gateway's own
connection pool, and over a child's standard streams. The caller is the same for a server and for a proxy before it.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from bench.gateway_processes import ARGUMENTS, Call
from sentinel_rag.gateway.upstream.mcp_http import ConnectionPool
from sentinel_rag.gateway.upstream.mcp_messages import events

STATELESS, SESSIONS = "2026-07-28", "2025-06-18"
CLIENT = {"name": "bench", "version": "1"}
ACCEPT = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
LINE_BYTES = 1 << 20


class CallFailed(Exception):
    """The answer is not the echo of what was sent."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int
    headers: Mapping[str, str]
    document: Any


class HttpEndpoint:
    """One MCP endpoint, with the headers that every request to it carries."""

    def __init__(self, url: str, headers: Mapping[str, str], *, max_connections: int = 64) -> None:
        self._pool = ConnectionPool(url, max_connections=max_connections)
        self._headers = {"Host": self._pool.authority, **ACCEPT, **headers}

    def request(self, message: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> bytes:
        """The bytes of a POST."""
        body = json.dumps(message).encode()
        named = {**self._headers, **(headers or {}), "Content-Length": str(len(body))}
        lines = [f"POST {self._pool.target} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items()), "", ""]
        return "\r\n".join(lines).encode() + body

    async def send(self, request: bytes) -> HttpAnswer:
        async with self._pool.exchange(request) as response:
            parts = []
            while part := await response.read():
                parts.append(part)
            body = b"".join(parts)
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                body = next((event.encode() for event in events(body.decode()) if '"id"' in event), b"")
            return HttpAnswer(response.status, response.headers, msgspec.json.decode(body) if body else None)

    async def aclose(self) -> None:
        await self._pool.aclose()


def message(method: str, params: Mapping[str, Any], request_id: int | None = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", **({} if request_id is None else {"id": request_id}), "method": method, "params": params}


def initialize() -> dict[str, Any]:
    return message("initialize", {"protocolVersion": SESSIONS, "capabilities": {}, "clientInfo": CLIENT})


async def http_call(endpoint: HttpEndpoint, tool: str) -> Call:
    """A `tools/call` of `tool`, in the era of the protocol that the endpoint answers: without sessions where it can,
    else in one session that is opened here."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientInfo": CLIENT,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    routed = {"Mcp-Protocol-Version": STATELESS, "Mcp-Method": "tools/call", "Mcp-Name": tool}
    params = {"name": tool, "arguments": ARGUMENTS}
    request = endpoint.request(message("tools/call", {**params, "_meta": meta}), routed)
    try:
        check_echo((await endpoint.send(request)).document)
    except CallFailed:
        opened = await endpoint.send(endpoint.request(initialize()))
        version = opened.document["result"]["protocolVersion"]
        session = opened.headers.get("mcp-session-id")
        named = {"Mcp-Protocol-Version": version, **({"Mcp-Session-Id": session} if session else {})}
        await endpoint.send(endpoint.request(message("notifications/initialized", {}, None), named))
        request = endpoint.request(message("tools/call", params), named)

    async def call() -> None:
        check_echo((await endpoint.send(request)).document)

    await call()
    return call


async def status_without_credential(url: str) -> int:
    """The HTTP status for a stranger who knocks."""
    endpoint = HttpEndpoint(url, {})
    try:
        return (await endpoint.send(endpoint.request(initialize()))).status
    finally:
        await endpoint.aclose()


@asynccontextmanager
async def stdio_call(
    command: Sequence[str], tool: str, *, folder: Path, environment: Mapping[str, str]
) -> AsyncIterator[tuple[Call, int]]:
    """A `tools/call` of `tool` to the server that `command` starts, and its process id. Lines that are no JSON-RPC
    answer are let pass, since some gateways greet on standard output."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=folder,
        env=dict(environment),
        limit=LINE_BYTES,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    waiting: dict[int, asyncio.Future[Any]] = {}
    ids = itertools.count(1)
    sink, source = process.stdin, process.stdout

    async def listen() -> None:
        while line := await source.readline():
            try:
                answer = msgspec.json.decode(line)
            except msgspec.DecodeError:
                continue
            future = waiting.pop(answer.get("id", 0), None) if isinstance(answer, dict) else None
            if future is not None and not future.done():
                future.set_result(answer)
        for future in waiting.values():
            if not future.done():
                future.set_exception(CallFailed("the server ended"))

    async def ask(method: str, params: Mapping[str, Any]) -> Any:
        request_id = next(ids)
        waiting[request_id] = future = asyncio.get_running_loop().create_future()
        sink.write(msgspec.json.encode(message(method, params, request_id)) + b"\n")
        return await future

    async def call() -> None:
        check_echo(await ask("tools/call", {"name": tool, "arguments": ARGUMENTS}))

    async with asyncio.TaskGroup() as group:
        listening = group.create_task(listen())
        try:
            await ask("initialize", {"protocolVersion": SESSIONS, "capabilities": {}, "clientInfo": CLIENT})
            sink.write(msgspec.json.encode(message("notifications/initialized", {}, None)) + b"\n")
            await ask("tools/list", {})
            await call()
            yield call, process.pid
        finally:
            listening.cancel()
            sink.close()
            try:
                await asyncio.wait_for(process.wait(), 5)
            except TimeoutError:
                process.kill()
                await process.wait()


def check_echo(document: Any) -> None:
    """Raises CallFailed unless `document` is a JSON-RPC answer that repeats the arguments of the call."""
    result = document.get("result") if isinstance(document, dict) else None
    if isinstance(result, dict) and not result.get("isError"):
        structured = result.get("structuredContent")
        if isinstance(structured, dict) and structured.get("arguments") == ARGUMENTS:
            return
        content = result.get("content") or [{}]
        text = content[0].get("text") if isinstance(content[0], dict) else None
        if isinstance(text, str) and text.startswith("{") and json.loads(text).get("arguments") == ARGUMENTS:
            return  # some proxies drop the structured form
    raise CallFailed(str(document)[:300])
