"""The peers that serve MCP over HTTP, with what their documentation says about authentication and audit switched on.

Limits on how often a key may call are raised and left on, as the gateway's is.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from pathlib import Path
from typing import Any

from bench.gateway_processes import TOOL
from bench.peers.callers import HttpEndpoint, http_call, status_without_credential
from bench.peers.peer import (
    ECHO_STDIO,
    NotStarted,
    Peer,
    Running,
    Upstream,
    free_port,
    lines_of,
    listening,
    plain_environment,
    server,
)
from bench.peers.process_tree import ProcessTree

SECRET = "bench-secret-longer-than-thirty-two-bytes"
PASSWORD = "Bench-Pass-2026x"
FASTMCP_PROGRAM = Path(__file__).parent / "programs" / "fastmcp_proxy.py"


def fastmcp(client: str) -> Callable[[Path, Path, Upstream], AbstractAsyncContextManager[Running]]:
    """How to start a FastMCP proxy with a `fresh` or a `shared` backend client."""

    @asynccontextmanager
    async def start(python: Path, folder: Path, upstream: Upstream) -> AsyncIterator[Running]:
        port, log = free_port(), folder / "audit.log"
        program = [str(python / "python"), str(FASTMCP_PROGRAM)]
        command = [*program, upstream.url, upstream.token, str(port), SECRET, str(log), client]
        with server(command, folder, plain_environment(folder)) as process:
            await listening(port, process, folder)
            async with _endpoint(f"http://127.0.0.1:{port}/mcp") as endpoint:
                yield Running(
                    await http_call(endpoint, TOOL),
                    ProcessTree(process.pid),
                    lambda: lines_of(log, "tools/call"),
                    await status_without_credential(f"http://127.0.0.1:{port}/mcp"),
                )

    return start


@asynccontextmanager
async def contextforge(python: Path, folder: Path, upstream: Upstream) -> AsyncIterator[Running]:
    port, database = free_port(), folder / "mcp.db"
    a_lot = str(10**8)
    environment = plain_environment(
        folder,
        HOST="127.0.0.1",
        JWT_SECRET_KEY=SECRET,
        AUTH_ENCRYPTION_SECRET=SECRET,
        DATABASE_URL=f"sqlite:///{database}",
        BASIC_AUTH_PASSWORD=PASSWORD,
        PLATFORM_ADMIN_EMAIL="admin@example.com",
        PLATFORM_ADMIN_PASSWORD=PASSWORD,
        DEFAULT_USER_PASSWORD=PASSWORD,
        AUTH_REQUIRED="true",
        AUDIT_TRAIL_ENABLED="true",
        STRUCTURED_LOGGING_DATABASE_ENABLED="true",
        LOG_LEVEL="INFO",
        SSRF_ALLOW_LOCALHOST="true",
        SSRF_ALLOW_PRIVATE_NETWORKS="true",
        CACHE_TYPE="memory",
        MCPGATEWAY_UI_ENABLED="false",
        RATE_LIMITING_REDIS_ENABLED="false",
        RATE_LIMIT_HIGH_RPM=a_lot,
        RATE_LIMIT_MEDIUM_RPM=a_lot,
        RATE_LIMIT_LOW_RPM=a_lot,
    )
    command = [str(python / "mcpgateway"), "--host", "127.0.0.1", "--port", str(port)]
    with server(command, folder, environment) as process:
        await listening(port, process, folder)
        base = f"http://127.0.0.1:{port}"
        token = _last_line(
            [str(python / "python"), "-m", "mcpgateway.utils.create_jwt_token", "--username", "admin@example.com",
             "--admin", "--exp", "600", "--secret", SECRET], folder, environment
        )  # fmt: skip
        registration = {
            "name": "echo",
            "url": upstream.url,
            "transport": "STREAMABLEHTTP",
            "auth_type": "bearer",
            "auth_token": upstream.token,
        }
        await _post(f"{base}/gateways", token, registration)
        async with _endpoint(f"{base}/mcp/", token) as endpoint:
            yield Running(
                await http_call(endpoint, f"echo-{TOOL.replace('_', '-')}"),
                ProcessTree(process.pid),
                lambda: _rows(database, "structured_log_entries", "message LIKE 'Tool %invoked%'"),
                await status_without_credential(f"{base}/mcp/"),
            )


@asynccontextmanager
async def authmcp(python: Path, folder: Path, upstream: Upstream) -> AsyncIterator[Running]:
    port = free_port()
    environment = plain_environment(folder, JWT_SECRET_KEY=SECRET, AUTH_REQUIRED="true")
    program = str(python / "authmcp-gateway")
    _last_line([program, "init-db"], folder, environment)
    admin = ["--username", "bench", "--email", "bench@example.com", "--password", PASSWORD]
    _last_line([program, "create-admin", *admin], folder, environment)
    settings = folder / "data" / "auth_settings.json"
    settings.write_text(json.dumps({"rate_limit": {"mcp_limit": 10**9, "mcp_window": 60}}))
    with server([program, "start", "--host", "127.0.0.1", "--port", str(port)], folder, environment) as process:
        await listening(port, process, folder)
        base = f"http://127.0.0.1:{port}"
        answer = await _post(f"{base}/auth/login", "", {"username": "bench", "password": PASSWORD})
        # Its admin API wants a browser's CSRF cookie; this is the function behind that API.
        register = (
            "import sys; from authmcp_gateway.mcp.store import create_mcp_server as create; "
            "create(db_path='data/auth.db', name='echo', url=sys.argv[1], auth_type='bearer', auth_token=sys.argv[2])"
        )
        _last_line([str(python / "python"), "-c", register, upstream.url, upstream.token], folder, environment)
        async with _endpoint(f"{base}/mcp", answer["access_token"]) as endpoint:
            yield Running(
                await http_call(endpoint, TOOL),
                ProcessTree(process.pid),
                lambda: lines_of(folder / "data" / "logs" / "mcp_requests.log", "tools/call"),
                await status_without_credential(f"{base}/mcp"),
            )


@asynccontextmanager
async def mcp_proxy(python: Path, folder: Path, upstream: Upstream) -> AsyncIterator[Running]:
    port = free_port()
    command = [str(python / "mcp-proxy"), "--port", str(port), "--stateless", "--log-level", "ERROR", "--",
               *upstream.command]  # fmt: skip
    with server(command, folder, plain_environment(folder)) as process:
        await listening(port, process, folder)
        url = f"http://127.0.0.1:{port}/mcp"
        async with _endpoint(url, "") as endpoint:
            yield Running(
                await http_call(endpoint, TOOL),
                ProcessTree(process.pid, but_not=str(ECHO_STDIO)),
                None,
                await status_without_credential(url),
            )


HTTP_PEERS = (
    Peer(
        "fastmcp proxy", "fastmcp", "http",
        authenticates=True, decides=False, audits=True,
        as_configured="static bearer token, structured log of requests with payloads to a file; a backend client of "
        "its own for each request (its default)",
        start=fastmcp("fresh"),
    ),
    Peer(
        "fastmcp proxy, shared client", "fastmcp", "http",
        authenticates=True, decides=False, audits=True,
        as_configured="static bearer token, structured log of requests with payloads to a file; one connected backend "
        "client for all requests, which mixes their contexts",
        start=fastmcp("shared"),
    ),
    Peer(
        "ContextForge", "mcp-contextforge-gateway", "http",
        authenticates=True, decides=True, audits=True,
        as_configured="JWT, role checks, audit trail and structured log in its SQLite database (its audit trail alone "
        "leaves out tool calls); one worker",
        start=contextforge,
    ),
    Peer(
        "AuthMCP Gateway", "authmcp-gateway", "http",
        authenticates=True, decides=False, audits=True,
        as_configured="JWT of a user, log of each MCP request to a file",
        start=authmcp,
    ),
    Peer(
        "mcp-proxy", "mcp-proxy", "http_to_stdio",
        authenticates=False, decides=False, audits=False,
        as_configured="it has neither authentication nor audit on its own side; without sessions",
        start=mcp_proxy,
    ),
)  # fmt: skip


@asynccontextmanager
async def _endpoint(url: str, token: str = SECRET) -> AsyncIterator[HttpEndpoint]:
    endpoint = HttpEndpoint(url, {"Authorization": f"Bearer {token}"} if token else {})
    try:
        yield endpoint
    finally:
        await endpoint.aclose()


async def _post(url: str, token: str, body: Mapping[str, Any]) -> Any:
    async with _endpoint(url, token) as endpoint:
        answer = await endpoint.send(endpoint.request(body))
    if answer.status // 100 != 2:
        raise NotStarted(f"{url} answered {answer.status}: {str(answer.document)[:200]}")
    return answer.document


def _last_line(command: list[str], folder: Path, environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        command, cwd=folder, env=dict(environment), capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode:
        raise NotStarted((done.stderr.strip().splitlines() or ["it said nothing"])[-1][:300])
    return (done.stdout.strip().splitlines() or [""])[-1]


def _rows(database: Path, table: str, where: str) -> int:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        count: int = connection.execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchone()[0]
        return count
