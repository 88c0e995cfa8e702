"""Servers that strangers wrote behind the gateway, and the SDK's client before it: filesystem, memory and everything.

`make mcp-servers` installs them (npm packages, pinned by hash) and runs this. Each is declared by the YAML below alone,
started by the gateway as a process, and called in both eras. What does not come out as it is written here is a failure.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from bench.harness import write
from bench.npm_tools import HOW_TO_INSTALL, is_installed, node, script, versions
from sentinel_rag.app.tool_servers import ToolServers
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway

ERAS = ("legacy", "2026-07-28")

POLICY = """
servers:
  - {{name: filesystem, command: ["{node}", "{filesystem}", "."]}}
  - {{name: memory, command: ["{node}", "{memory}"], environment: {{MEMORY_FILE_PATH: "{graph}"}}}}
  - {{name: everything, command: ["{node}", "{everything}", stdio]}}
tools:
  - name: read_text_file
    server: filesystem
    effect: read
    parameters: [{{name: path, type: string, required: true, format: path}}]
    taint_rules:
      - {{rule_id: files_confidential, condition: "path.startswith('confidential/')", taint_level: HIGH, deny: true}}
      - {{rule_id: files_any, condition: "true", taint_level: LOW}}
  - name: list_directory
    server: filesystem
    effect: read
    parameters: [{{name: path, type: string, required: true, format: path}}]
    taint_rules: [{{rule_id: list_any, condition: "true", taint_level: LOW}}]
  - name: write_file
    server: filesystem
    effect: write
    accepts: {{sensitivity: HIGH, integrity: UNTRUSTED}}
    parameters:
      - {{name: path, type: string, required: true, format: path}}
      - {{name: content, type: string, required: true}}
    taint_rules: [{{rule_id: write_any, condition: "true", taint_level: LOW, requires_approval: true}}]
  - name: create_entities
    server: memory
    effect: write
    accepts: {{sensitivity: HIGH, integrity: UNTRUSTED}}
    parameters: [{{name: entities, type: array, items: object, required: true}}]
    taint_rules: [{{rule_id: remember_any, condition: "true", taint_level: LOW}}]
  - name: read_graph
    server: memory
    effect: read
    taint_rules: [{{rule_id: recall_any, condition: "true", taint_level: LOW}}]
  - name: echo
    server: everything
    effect: read
    parameters: [{{name: message, type: string, required: true}}]
    taint_rules: [{{rule_id: echo_any, condition: "true", taint_level: LOW}}]
  - name: get-sum
    server: everything
    effect: read
    parameters: [{{name: a, type: number, required: true}}, {{name: b, type: number, required: true}}]
    taint_rules: [{{rule_id: sum_any, condition: "true", taint_level: LOW}}]
  - name: get-structured-content
    server: everything
    effect: read
    parameters: [{{name: location, type: string, required: true}}]
    taint_rules: [{{rule_id: weather_any, condition: "true", taint_level: LOW}}]
  - name: get-tiny-image
    server: everything
    effect: read
    taint_rules: [{{rule_id: image_any, condition: "true", taint_level: LOW}}]
  - name: get-env
    server: everything
    effect: read
    taint_rules: [{{rule_id: env_any, condition: "true", taint_level: LOW}}]
  - name: get-resource-links
    server: everything
    effect: read
    parameters: [{{name: count, type: number}}]
    taint_rules: [{{rule_id: links_any, condition: "true", taint_level: LOW}}]
  - name: trigger-long-running-operation
    server: everything
    effect: read
    parameters: [{{name: duration, type: number}}, {{name: steps, type: number}}]
    taint_rules: [{{rule_id: long_any, condition: "true", taint_level: LOW}}]
"""


@contextmanager
def servers_behind(folder: Path) -> Iterator[RunningGateway]:
    """The three servers behind a gateway; its state and their working folders lie in `folder`."""
    programs = {name: script(f"@modelcontextprotocol/server-{name}") for name in ("filesystem", "memory", "everything")}
    policy = parse_policy(POLICY.format(node=node(), graph=folder / "graph.jsonl", **programs))
    files = folder / "servers" / "filesystem"
    (files / "confidential").mkdir(parents=True)
    (files / "hello.txt").write_text("hello of a file é\n")
    (files / "confidential" / "x.txt").write_text("canary-of-the-file\n")
    path = os.environ.get("PATH", "/usr/bin")
    servers = ToolServers(folder=str(folder / "servers"), environment={"PATH": path}, credentials={})
    upstreams = servers.upstreams(policy)
    with running_gateway(policy, folder / "state", FakeToolServer(), upstreams=upstreams) as gateway:
        yield gateway


async def calls(client: Any, gateway: RunningGateway, folder: Path) -> dict[str, Any]:
    """What comes of one call of each kind, and whether it is what it should be."""
    found: dict[str, Any] = {}

    async def expect(name: str, tool: str, arguments: dict[str, Any], right: Any, **more: Any) -> Any:
        result = await client.call_tool(tool, arguments, **more)
        found[name] = bool(right(result))
        return result

    def text(result: Any) -> str:
        return "".join(block.text for block in result.content if block.type == "text")

    names = {tool.name for tool in (await client.list_tools()).tools}
    found["every tool of the policy is offered"] = (
        names == {tool["name"] for tool in _offered(gateway)} and len(names) == 12
    )
    await expect("a file is read", "read_text_file", {"path": "hello.txt"}, lambda r: "hello of a file é" in text(r))
    await expect("a folder is listed", "list_directory", {"path": "."}, lambda r: "hello.txt" in text(r))
    for path in ("confidential/x.txt", "./confidential/x.txt", "confidential//x.txt"):
        await expect(f"{path} is denied", "read_text_file", {"path": path}, lambda r: _refused(r, "rule_denies"))
    for path in ("../state/journal.sqlite", "/etc/passwd"):
        await expect(f"{path} is no path", "read_text_file", {"path": path}, lambda r: _refused(r, "invalid_argument"))
    wish = {"path": "made.txt", "content": "by a person's leave"}
    asked = await expect("writing needs a person", "write_file", wish, lambda r: _refused(r, "approval_required"))
    made = folder / "servers" / "filesystem" / "made.txt"
    found["nothing is written before"] = not made.exists()
    approve = f"/v1/approvals/{asked.structured_content['approval_id']}/approve"
    gateway.request("POST", approve, key=gateway.approver, body=b"{}")
    await expect("and is done with one", "write_file", wish, lambda r: not r.is_error)
    found["with the content that was approved"] = made.exists() and made.read_text() == wish["content"]
    made.unlink(missing_ok=True)
    entity = {"name": "WS-77", "entityType": "host", "observations": ["was isolated"]}
    await expect("a note is kept", "create_entities", {"entities": [entity]}, lambda r: not r.is_error)
    await expect("and read again", "read_graph", {}, lambda r: "was isolated" in json.dumps(r.structured_content))
    await expect("a text comes back", "echo", {"message": "00713"}, lambda r: text(r) == "Echo: 00713")
    await expect("numbers stay numbers", "get-sum", {"a": 1.5, "b": 2}, lambda r: "3.5" in text(r))
    await expect(
        "structured content is structured",
        "get-structured-content",
        {"location": "Chicago"},
        lambda r: "temperature" in (r.structured_content or {}),
    )
    await expect("a picture is a picture", "get-tiny-image", {}, lambda r: "image" in {b.type for b in r.content})
    await expect(
        "a link is not followed", "get-resource-links", {"count": 2}, lambda r: {b.type for b in r.content} == {"text"}
    )
    await expect("its environment is bare", "get-env", {}, lambda r: set(json.loads(text(r))) <= {"PATH", "HOME"})
    told: list[Any] = []

    async def progress(done: float, _: float | None, message: str | None) -> None:
        told.append((done, message))

    await expect(
        "progress is told in the gateway's words",
        "trigger-long-running-operation",
        {"duration": 2.5, "steps": 5},
        lambda r: not r.is_error and told and {message for _, message in told} == {"The tool runs."},
        progress_callback=progress,
    )
    return found


def _offered(gateway: RunningGateway) -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = gateway.request("GET", "/v1/tools", key=gateway.key).body["tools"]
    return tools


def _refused(result: Any, reason: str) -> bool:
    return bool(result.is_error and result.structured_content["reason"] == reason)


async def measure(gateway: RunningGateway, folder: Path, era: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {gateway.key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{gateway.url}/mcp", http_client=http), mode=era) as client,
    ):
        return await calls(client, gateway, folder)


def run(folder: Path) -> dict[str, dict[str, bool]]:
    """For each era whether each expectation holds."""
    found: dict[str, dict[str, bool]] = {}
    for era in ERAS:
        with servers_behind(folder / era) as gateway:
            found[era] = anyio.run(measure, gateway, folder / era, era)
    return found


def main() -> None:
    if not is_installed():
        sys.exit(HOW_TO_INSTALL)
    with tempfile.TemporaryDirectory() as folder:
        found = run(Path(folder))
    failed = [f"{era}: {name}" for era, each in found.items() for name, right in each.items() if not right]
    if failed:
        sys.exit("\n".join(["Not as it should be:", *failed]))
    servers = {name: version for name, version in versions().items() if "server-" in name}
    held = sum(len(each) for each in found.values())
    write(
        "mcp_servers",
        {"servers": servers, "expectations": found},
        claim="The public reference servers filesystem, memory and everything work behind the gateway, in both eras of "
        "the protocol, and its policy holds for them.",
        figures={"servers": len(servers), "expectations that hold": f"{held} of {held}"},
        group="correctness",
    )


if __name__ == "__main__":
    main()
