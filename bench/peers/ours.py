"""The gateway as the peers are measured beside it, and the direct call to the same tool server.

Shipped policy, keys, labels, rate limits and the journal are on, and a record survives the end of the process.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

from bench.gateway_processes import (
    SDK_EXECUTOR,
    TOKEN,
    TOOL,
    Call,
    executor,
    http_client,
    interceptor,
    straight,
    through,
)
from bench.peers.callers import stdio_call
from bench.peers.peer import ECHO_STDIO, Running, Upstream, plain_environment
from bench.peers.process_tree import ProcessTree
from sentinel_rag.gateway.store.state import JOURNAL_FILE

ECHO_COMMAND = (sys.executable, str(ECHO_STDIO))


@dataclass(frozen=True, slots=True)
class Beside:
    """What a peer is measured beside: the direct call, ours, and the tool server to put behind the peer."""

    direct: Call
    ours: Running
    upstream: Upstream


@asynccontextmanager
async def over_http(folder: Path) -> AsyncIterator[Beside]:
    """Before an echo behind the official SDK's server."""
    async with http_client() as client:
        with executor(SDK_EXECUTOR) as url, interceptor(url, folder) as gateway:
            ours = _running(through(client, gateway, "bench"), gateway.process.pid, folder)
            yield Beside(straight(client, url), ours, Upstream(url=url, token=TOKEN))


@asynccontextmanager
async def over_stdio(folder: Path) -> AsyncIterator[Beside]:
    """Before an echo over standard streams; each way has a process of it. Ours is called over HTTP all the same."""
    async with (
        http_client() as client,
        stdio_call(ECHO_COMMAND, TOOL, folder=folder, environment=plain_environment(folder)) as (direct, _),
    ):
        with interceptor(ECHO_COMMAND, folder) as gateway:
            ours = _running(through(client, gateway, "bench"), gateway.process.pid, folder)
            yield Beside(direct, ours, Upstream(command=ECHO_COMMAND))


def _running(call: Call, pid: int, folder: Path) -> Running:
    return Running(call, ProcessTree(pid, but_not=str(ECHO_STDIO)), lambda: _records(folder / JOURNAL_FILE), 401)


def _records(journal: Path) -> int:
    with closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as connection:
        newest: int | None = connection.execute("SELECT max(seq) FROM journal").fetchone()[0]
        return newest or 0
