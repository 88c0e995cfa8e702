"""The processes that the gateway's benchmarks measure, and two ways to call: straight to a tool server, and through.

Tool server, gateway and caller are three processes. The caller is one HTTP client for both ways; the direct one posts
a finished `tools/call` and decodes the answer, which is the least that a call can cost.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from sentinel_rag.audit import PostgresPlace
from sentinel_rag.gateway.upstream.mcp_http import ConnectionPool

CONFIG = Path(__file__).parents[1] / "config" / "sentinel_config.yaml"
TOKEN = "bench"
TOOL = "query_incidents"
ARGUMENTS = {"min_severity": "High", "time_window": "last_7d", "limit": 20}

SDK_EXECUTOR = """
import json, sys
from mcp.server.lowlevel import Server
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool
from sentinel_rag.contracts.tool_schemas import SENTINEL_TOOLS
from sentinel_rag_testing.loopback import serve
tools = [
    Tool(name=each.name, description=each.description, input_schema=dict(each.parameters)) for each in SENTINEL_TOOLS
]
async def list_tools(_, __):
    return ListToolsResult(tools=tools)
async def echo(_, called):
    value = {"tool": called.name, "arguments": dict(called.arguments or {})}
    return CallToolResult(content=[TextContent(type="text", text=json.dumps(value))], structured_content=value)
server = Server("sentinel", version="1", on_list_tools=list_tools, on_call_tool=echo)
with serve(server.streamable_http_app(json_response=True, stateless_http=True)) as url:
    print(url + "/mcp", flush=True)
    sys.stdin.read()
"""
"""An echo behind the official SDK's server, without the product's frame, which answers our gateway's calls past it."""

LEAN_EXECUTOR = """
import sys
from sentinel_rag_testing.fake_tool_server import FakeToolServer
with FakeToolServer(token="bench").running() as executor:
    print(executor.url, flush=True)
    sys.stdin.read()
"""
"""The same echo from the test server, which does next to nothing: what the gateway adds shows most here."""

INTERCEPTOR = """
import json, resource, sys
from pathlib import Path
from sentinel_rag.app.serving import settle_memory
from sentinel_rag.audit import PostgresPlace
from sentinel_rag.gateway.app import create_app
from sentinel_rag.gateway.admission import GatewayLimits
from sentinel_rag.gateway.policy import FixedPolicy, load_policy
from sentinel_rag.gateway.policy.model import Rate
from sentinel_rag.gateway.store import Scope, open_state
from sentinel_rag.gateway.upstream import Launch, McpHttpUpstream, McpStdioUpstream
from sentinel_rag_testing.loopback import serve
behind, folder = json.loads(sys.argv[1]), Path(sys.argv[3])
upstream = (McpHttpUpstream(behind, token="bench", is_ours=True) if isinstance(behind, str)
            else McpStdioUpstream(Launch(tuple(behind), {}, folder)))
database, told = json.loads(sys.argv[5]), json.loads(sys.argv[6])
place = None if database is None else PostgresPlace(**database, folder=folder)
if told is not None:
    from sentinel_rag.telemetry.process import ProcessTelemetry
    told = ProcessTelemetry("interceptor", told)
with open_state(folder, segment_records=int(sys.argv[4]), postgres=place) as state:
    key, _ = state.keys.create([Scope.EXECUTE])
    app = create_app(policies=FixedPolicy(load_policy(Path(sys.argv[2]))), keys=state.keys, state=state,
                     upstreams={"sentinel": upstream},
                     registry=None if told is None else told.registry,
                     limits=GatewayLimits(key_rate=Rate(calls=10**9, seconds=60.0)))
    if told is not None:
        app = told.around(app)
    settle_memory()  # as every zone of the product does
    with serve(app) as url:
        print(json.dumps([url, key]), flush=True)
        for line in sys.stdin:
            used = resource.getrusage(resource.RUSAGE_SELF)
            with open("/proc/self/statm") as memory:
                resident = int(memory.read().split()[1]) * resource.getpagesize()
            print(json.dumps([used.ru_utime + used.ru_stime, resident]), flush=True)
"""
"""The product's gateway with its shipped policy and everything on. It answers each line with the processor seconds it
has used and the bytes it has in memory."""

Call = Callable[[], Awaitable[None]]


@contextmanager
def child(source: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", source, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@contextmanager
def executor(source: str) -> Iterator[str]:
    """A tool server; its URL."""
    with child(source) as process:
        yield line(process).strip()


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running gateway."""

    url: str
    key: str
    process: subprocess.Popen[str]

    def cpu_seconds(self) -> float:
        return self._usage()[0]

    def resident_bytes(self) -> int:
        return int(self._usage()[1])

    def _usage(self) -> tuple[float, float]:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        cpu, resident = json.loads(line(self.process))
        return cpu, resident


@contextmanager
def interceptor(
    executor: str | Sequence[str],
    folder: Path,
    *,
    segment_records: int = 10**9,
    postgres: PostgresPlace | None = None,
    telemetry: Mapping[str, Any] | None = None,
) -> Iterator[Gateway]:
    """A gateway with its state in `folder`, or in `postgres`, before the tool server at a URL or the one that a
    command starts; all of its journal in one file, unless `segment_records` says, and with the `telemetry` of a zone's
    configuration."""
    database = None if postgres is None else {"url": postgres.url, "schema": postgres.schema}
    options = [json.dumps(executor), str(CONFIG), str(folder), str(segment_records)]
    with child(INTERCEPTOR, *options, json.dumps(database), json.dumps(telemetry)) as process:
        url, key = json.loads(line(process))
        yield Gateway(url, key, process)


class Client:
    """The caller of both ways: the gateway's own lean HTTP client, so that the caller weighs little on two cores."""

    def __init__(self) -> None:
        self._pools: dict[str, ConnectionPool] = {}

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Callable[[], Awaitable[Any]]:
        """A function that sends this request and returns the decoded answer."""
        pool = self._pools.setdefault(url, ConnectionPool(url, max_connections=64))
        head = [f"POST {pool.target} HTTP/1.1", f"Host: {pool.authority}", f"Content-Length: {len(body)}"]
        lines = [*head, *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        request = "\r\n".join(lines).encode() + body

        async def send() -> Any:
            async with pool.exchange(request) as response:
                parts = []
                while part := await response.read():
                    parts.append(part)
                return msgspec.json.decode(b"".join(parts))

        return send

    async def aclose(self) -> None:
        for pool in self._pools.values():
            await pool.aclose()


@asynccontextmanager
async def http_client() -> AsyncIterator[Client]:
    client = Client()
    try:
        yield client
    finally:
        await client.aclose()


def straight(client: Client, url: str, token: str = TOKEN) -> Call:
    """One MCP call to a server: to the tool server itself, or with its key to the gateway's own `/mcp`."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": TOOL, "arguments": ARGUMENTS, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {token}",
        "Mcp-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": TOOL,
    }
    send = client.post(url, body, headers)

    async def call() -> None:
        answer = await send()
        assert answer["result"]["structuredContent"]["arguments"] == ARGUMENTS, answer

    return call


def through(client: Client, gateway: Gateway, session_id: str) -> Call:
    """The same call through a gateway."""
    body = json.dumps({"session_id": session_id, "tool_name": TOOL, "args": ARGUMENTS}).encode()
    headers = {"X-API-Key": gateway.key, "Content-Type": "application/json"}
    send = client.post(f"{gateway.url}/v1/proxy-execute", body, headers)

    async def call() -> None:
        answer = await send()
        assert answer["result"]["arguments"] == ARGUMENTS, answer

    return call


async def timed(call: Call, concurrency: int, count: int) -> tuple[list[float], float]:
    """Seconds of each call, and calls a second."""
    seconds: list[float] = []
    left = iter(range(count))

    async def worker() -> None:
        for _ in left:
            start = time.perf_counter()
            await call()
            seconds.append(time.perf_counter() - start)

    start = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(worker())
    return seconds, count / (time.perf_counter() - start)


def p50_ms(seconds: list[float]) -> float:
    return round(statistics.median(seconds) * 1e3, 3)
