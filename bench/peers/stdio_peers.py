"""The peers that speak MCP over standard streams, each with a policy that allows the one tool and its audit on.

A stdio gateway is started by its one client and belongs to it, so none of them authenticates; that is told, not held
against them.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.gateway_processes import TOOL
from bench.peers.callers import stdio_call
from bench.peers.peer import ECHO_STDIO, Peer, Running, Upstream, lines_of, plain_environment
from bench.peers.process_tree import ProcessTree

BAWBEL_MANIFEST = {
    "schema": "bawbel/capability-manifest/v1",
    "subject": {"kind": "mcp-server", "name": "echo"},
    "provenance_class": "tool.response.echo",
    "instruction_authority": "none",
    "trifecta": {"private_data": True, "untrusted_content": True, "external_comms": False},
    "grants": {"tools": [{"name": TOOL, "effect": "allow"}, {"name": "*", "effect": "deny"}]},
}


@asynccontextmanager
async def bawbel_gate(python: Path, folder: Path, upstream: Upstream) -> AsyncIterator[Running]:
    program, *arguments = upstream.command
    log = folder / "gate.audit.jsonl"
    config = {
        "schema": "bawbel/gate-config/v1",
        "audit_log": str(log),
        "approval": {"channel": "terminal", "timeout_seconds": 120, "on_timeout": "deny"},
        "servers": [{"name": "echo", "command": program, "args": arguments, "manifest": "echo.cap.yaml"}],
    }
    (folder / "gate.yaml").write_text(json.dumps(config))  # JSON is YAML
    (folder / "echo.cap.yaml").write_text(json.dumps(BAWBEL_MANIFEST))
    command = [str(python / "bawbel-gate"), "serve", "--config", str(folder / "gate.yaml")]
    async with _gateway(command, folder, f"echo__{TOOL}", log) as running:
        yield running


@asynccontextmanager
async def mcp_firewall(python: Path, folder: Path, upstream: Upstream) -> AsyncIterator[Running]:
    log = folder / "audit.jsonl"
    config = {
        "default_action": "deny",
        "rate_limit": {"max_calls": 10**9, "window_seconds": 60},
        "rules": [{"name": "echo", "tool": TOOL, "action": "allow"}],
        "audit": {"enabled": True, "path": str(log), "sign": True},
    }
    (folder / "firewall.yaml").write_text(json.dumps(config))
    command = [str(python / "mcp-firewall"), "wrap", "--config", str(folder / "firewall.yaml"), "--", *upstream.command]
    async with _gateway(command, folder, TOOL, log) as running:
        yield running


@asynccontextmanager
async def sovereign(python: Path, folder: Path, upstream: Upstream) -> AsyncIterator[Running]:
    program, *arguments = upstream.command
    log = folder / "audit.jsonl"
    config = {
        "servers": {"echo": {"command": program, "args": arguments}},
        "policy": {"allow_tools": [TOOL], "deny_tools": [], "rate_limit_interval": 0},
        "audit": {"path": str(log)},
    }
    (folder / "gateway.json").write_text(json.dumps(config))
    command = [str(python / "sovereign-mcp-gateway"), "--config", str(folder / "gateway.json")]
    async with _gateway(command, folder, f"echo__{TOOL}", log) as running:
        yield running


STDIO_PEERS = (
    Peer(
        "bawbel-gate", "bawbel-gate", "stdio",
        authenticates=False, decides=True, audits=True,
        as_configured="capability manifest that grants the tool, taint, hash-chained log; it cannot start a server of "
        "the official SDK",
        start=bawbel_gate,
    ),
    Peer(
        "mcp-firewall", "mcp-firewall", "stdio",
        authenticates=False, decides=True, audits=True,
        as_configured="a rule that allows the tool, its detectors, signed and chained log (written without waiting for "
        "the outcome of the call)",
        start=mcp_firewall,
    ),
    Peer(
        "sovereign-mcp-gateway", "sovereign-mcp-gateway", "stdio",
        authenticates=False, decides=True, audits=True,
        as_configured="base install: allow list, frozen definitions, chained log",
        start=sovereign,
    ),
)  # fmt: skip


@asynccontextmanager
async def _gateway(command: list[str], folder: Path, tool: str, log: Path) -> AsyncIterator[Running]:
    async with stdio_call(command, tool, folder=folder, environment=plain_environment(folder)) as (call, pid):
        yield Running(call, ProcessTree(pid, but_not=str(ECHO_STDIO)), lambda: lines_of(log))
