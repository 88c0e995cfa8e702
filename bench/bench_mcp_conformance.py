"""The public conformance suite of MCP against the gateway, scenario by scenario.

`make mcp-servers` installs it (an npm package, pinned by hash) and runs this. The tool server behind the gateway is the
one that the suite asks for; before it stands only what adds a key, because the suite sends none. Scenarios of what the
gateway does not offer are named with the reason; every other one has to pass.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from bench.harness import write
from bench.npm_tools import FOLDER, HOW_TO_INSTALL, is_installed, node, script, versions
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.interceptor import create_app
from sentinel_rag.interceptor.policy import FixedPolicy, parse_policy
from sentinel_rag.interceptor.store import Scope as KeyScope
from sentinel_rag.interceptor.store import open_state
from sentinel_rag.interceptor.upstream import McpHttpUpstream
from sentinel_rag.testing.fake_executor import Answers, AnswersText, AnswersWith, Behaviour, FakeExecutor
from sentinel_rag.testing.loopback import serve

SUITE = "@modelcontextprotocol/conformance"
SECONDS = 120

IMAGE = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
SOUND = {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}
HELD = {"type": "resource", "resource": {"uri": "test://held", "mimeType": "text/plain", "text": "held"}}

BEHAVIOURS: Mapping[str, Behaviour] = {
    "test_simple_text": AnswersText(("This is a simple text response for testing.",)),
    "test_image_content": AnswersWith({"content": [IMAGE]}),
    "test_audio_content": AnswersWith({"content": [SOUND]}),
    "test_embedded_resource": AnswersWith({"content": [HELD]}),
    "test_multiple_content_types": AnswersWith({"content": [{"type": "text", "text": "both"}, IMAGE, HELD]}),
    "test_error_handling": AnswersText(("This tool intentionally returns an error for testing",), is_error=True),
    "json_schema_2020_12_tool": Answers({}),
}
SCHEMAS: Mapping[str, dict[str, Any]] = {
    "json_schema_2020_12_tool": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}
        },
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
        "additionalProperties": False,
    }
}

OTHERS_WORDS = "what a tool server says before its result is not passed on, because no label covers it"
QUESTIONS = "questions of a tool server to the client or its user are refused"
NOTHING_KEPT = "a stream that broke is not resumed: the call is repeated, and judged again"
ONLY_TOOLS = "only tools are offered"
NOT_OFFERED: Mapping[str, str] = {
    "logging-set-level": OTHERS_WORDS,
    "tools-call-with-logging": OTHERS_WORDS,
    "tools-call-with-progress": f"{OTHERS_WORDS}; progress is the gateway's own",
    "tools-call-sampling": QUESTIONS,
    "tools-call-elicitation": QUESTIONS,
    "elicitation-sep1034-defaults": QUESTIONS,
    "elicitation-sep1330-enums": QUESTIONS,
    "server-sse-polling": NOTHING_KEPT,
    "completion-complete": ONLY_TOOLS,
    **dict.fromkeys(
        ("resources-list", "resources-read-text", "resources-read-binary", "resources-templates-read"), ONLY_TOOLS
    ),
    **dict.fromkeys(("resources-subscribe", "resources-unsubscribe"), ONLY_TOOLS),
    **dict.fromkeys(("prompts-list", "prompts-get-simple", "prompts-get-with-args"), ONLY_TOOLS),
    **dict.fromkeys(("prompts-get-embedded-resource", "prompts-get-with-image"), ONLY_TOOLS),
}


def with_key(app: ASGIApp, key: str) -> ASGIApp:
    """`app` for whoever sends no key."""

    async def keyed(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["headers"] = [*scope["headers"], (b"authorization", f"Bearer {key}".encode())]
        await app(scope, receive, send)

    return keyed


def policy_text() -> str:
    """Every tool of the suite may be read; two have parameters."""
    tools = []
    for name in BEHAVIOURS:
        parameters = [
            {"name": given, "type": "object" if "$ref" in schema else "string"}
            for given, schema in SCHEMAS.get(name, {"properties": {}})["properties"].items()
        ]
        rule = {"rule_id": f"{name}_any", "condition": "true", "taint_level": "LOW"}
        tools.append({"name": name, "effect": "read", "parameters": parameters, "taint_rules": [rule]})
    return json.dumps({"tools": tools})


@contextmanager
def gateway(folder: Path) -> Iterator[str]:
    """The address of a gateway before the suite's tools, that asks for no key."""
    empty = {"type": "object", "properties": {}}
    tools = [ToolSchema(name, f"The suite's {name}.", SCHEMAS.get(name, empty)) for name in BEHAVIOURS]
    policy = parse_policy(policy_text())
    with FakeExecutor(tools).running() as executor, open_state(folder) as state:
        for name, behaviour in BEHAVIOURS.items():
            executor.on(name, behaviour)
        key, _ = state.keys.create([KeyScope.EXECUTE], name="conformance")
        upstreams = dict.fromkeys(policy.servers(), McpHttpUpstream(executor.url))
        app = create_app(policies=FixedPolicy(policy), keys=state.keys, state=state, upstreams=upstreams)
        with serve(with_key(app, key)) as url:
            yield url


def scenarios() -> list[str]:
    """The suite's scenarios for servers."""
    listed = subprocess.run(
        [node(), script(SUITE), "list"], capture_output=True, text=True, timeout=SECONDS, check=True
    )
    servers = listed.stdout.split("Client scenarios")[0]
    return [line.split()[1] for line in servers.splitlines() if line.strip().startswith("- ")]


def passes(url: str, scenario: str, folder: Path) -> tuple[bool, list[str]]:
    """Whether a scenario passes, and what it says that is wrong."""
    command = [node(), script(SUITE), "server", "--url", f"{url}/mcp", "--scenario", scenario, "-o", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, cwd=FOLDER)
    checks = [check for found in sorted(folder.rglob("checks.json")) for check in json.loads(found.read_text())]
    wrong = [str(check.get("errorMessage") or check["id"]) for check in checks if check["status"] == "FAILURE"]
    return done.returncode == 0 and bool(checks) and not wrong, wrong


def run(folder: Path) -> dict[str, dict[str, Any]]:
    """What came of each scenario."""
    found: dict[str, dict[str, Any]] = {}
    with gateway(folder / "state") as url:
        for scenario in scenarios():
            if scenario in NOT_OFFERED:
                found[scenario] = {"not offered": NOT_OFFERED[scenario]}
                continue
            right, wrong = passes(url, scenario, folder / scenario)
            found[scenario] = {"passes": right, **({"wrong": wrong} if wrong else {})}
    return found


def main() -> None:
    if not is_installed():
        print(HOW_TO_INSTALL, file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as folder:
        found = run(Path(folder))
    failed = {name: each for name, each in found.items() if each.get("passes") is False}
    if failed or not any("passes" in each for each in found.values()):
        sys.exit(f"Not as it should be: {json.dumps(failed, indent=2)}")
    passed = sum("passes" in each for each in found.values())
    write(
        "mcp_conformance",
        {"suite": f"{SUITE} {versions()[SUITE]}", "scenarios": found},
        claim="The gateway passes every scenario of MCP's public conformance suite for what it offers.",
        figures={"scenarios passed": f"{passed} of {passed}", "not offered": len(found) - passed},
        group="correctness",
    )


if __name__ == "__main__":
    main()
