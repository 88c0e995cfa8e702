"""The public conformance suite of MCP against the gateway, scenario by scenario.

`make mcp-servers` installs it (an npm package, pinned by hash) and runs this. The tool server behind the gateway is the
one that the suite asks for; before it stands only what adds a key, because the suite sends none. Scenarios of what the
gateway does not offer are named with the reason; every other one has to pass.
"""

from __future__ import annotations

import json
import re
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
from sentinel_rag.gateway.app import create_app
from sentinel_rag.gateway.policy import FixedPolicy, parse_policy
from sentinel_rag.gateway.store import Scope as KeyScope
from sentinel_rag.gateway.store import open_state
from sentinel_rag.gateway.upstream import McpHttpUpstream
from sentinel_rag_testing.fake_tool_server import Answers, AnswersText, AnswersWith, Behaviour, FakeToolServer
from sentinel_rag_testing.loopback import serve

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
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
        "additionalProperties": False,
    }
}

REVISIONS = ("2025-11-25", "2026-07-28")

OTHERS_WORDS = "what a tool server says before its result is not passed on, because no label covers it"
QUESTIONS = "questions of a tool server to the client or its user are refused"
NOTHING_KEPT = "a stream that broke is not resumed: the call is repeated, and judged again"
ONLY_TOOLS = "only tools are offered"
IN_THE_BODY = "arguments stand in the body alone, and no schema asks for them in headers"
CUT_DOWN = "a schema is cut down to the policy's parameters, so what combines several of them is left out"

NOT_OFFERED: Mapping[str, str] = {
    "logging-set-level": OTHERS_WORDS,
    "tools-call-with-logging": OTHERS_WORDS,
    "tools-call-with-progress": f"{OTHERS_WORDS}; progress is the gateway's own",
    "tools-call-sampling": QUESTIONS,
    "tools-call-elicitation": QUESTIONS,
    "elicitation-": QUESTIONS,
    "input-required-result-": f"{QUESTIONS}; the gateway's own question is tested elsewhere",
    "server-sse-polling": NOTHING_KEPT,
    "completion-complete": ONLY_TOOLS,
    "resources-": ONLY_TOOLS,
    "sep-2164-resource-not-found": ONLY_TOOLS,
    "prompts-": ONLY_TOOLS,
    "http-custom-header-server-validation": IN_THE_BODY,
}
"""Scenarios, by the beginning of their names, of what the gateway does not offer."""

CHECKS_NOT_OFFERED: Mapping[str, str] = {
    "sep-2575-server-rejects-undeclared-capability": QUESTIONS,
    "sep-2575-missing-capability-http-400": QUESTIONS,
    "sep-2549-prompts-list-caching-hints": ONLY_TOOLS,
    "sep-2549-resources-list-caching-hints": ONLY_TOOLS,
    "sep-2549-resources-templates-list-caching-hints": ONLY_TOOLS,
    "sep-2106-composition-keywords-preserved": CUT_DOWN,
    "sep-2106-conditional-keywords-preserved": CUT_DOWN,
}
"""Single checks of the scenarios that are run."""


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
    with FakeToolServer(tools).running() as executor, open_state(folder) as state:
        for name, behaviour in BEHAVIOURS.items():
            executor.on(name, behaviour)
        key, _ = state.keys.create([KeyScope.EXECUTE], name="conformance")
        upstreams = dict.fromkeys(policy.servers(), McpHttpUpstream(executor.url))
        app = create_app(policies=FixedPolicy(policy), keys=state.keys, state=state, upstreams=upstreams)
        with serve(with_key(app, key)) as url:
            yield url


def scenarios() -> list[tuple[str, str]]:
    """The suite's scenarios for servers, each with a revision of MCP that it is for. Extensions are left out."""
    command = [node(), script(SUITE), "list"]
    listed = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True).stdout
    found = re.findall(r"^  - (\S+) \[([^\]]*)\]$", listed.split("Client scenarios")[0], re.MULTILINE)
    return [(name, revision) for name, told in found for revision in REVISIONS if revision in told.split(",")]


def checked(url: str, scenario: str, revision: str, folder: Path) -> dict[str, str]:
    """What each check of a scenario says: empty where it holds, else what is wrong."""
    command = [node(), script(SUITE), "server", "--url", f"{url}/mcp", "--scenario", scenario]
    command += ["--spec-version", revision, "-o", str(folder)]
    subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, cwd=FOLDER)
    checks = [check for found in sorted(folder.rglob("checks.json")) for check in json.loads(found.read_text())]
    told = {check["id"]: check for check in checks if check["status"] in ("SUCCESS", "FAILURE")}
    return {
        name: "" if check["status"] == "SUCCESS" else str(check.get("errorMessage") or "it fails")
        for name, check in told.items()
    }


def run(folder: Path) -> dict[str, dict[str, Any]]:
    """What came of each scenario in each revision."""
    found: dict[str, dict[str, Any]] = {}
    with gateway(folder / "state") as url:
        for scenario, revision in scenarios():
            name = f"{scenario} {revision}"
            reason = next((why for begins, why in NOT_OFFERED.items() if scenario.startswith(begins)), None)
            if reason is not None:
                found[name] = {"not_offered": reason}
                continue
            checks = checked(url, scenario, revision, folder / name)
            wrong = {check: told for check, told in checks.items() if told and check not in CHECKS_NOT_OFFERED}
            left_out = {
                check: CHECKS_NOT_OFFERED[check] for check, told in checks.items() if told and check not in wrong
            }
            found[name] = {"passed": sum(not told for told in checks.values())}
            found[name] |= {"wrong": wrong} if wrong else {}
            found[name] |= {"checks_not_offered": left_out} if left_out else {}
    return found


def main() -> None:
    if not is_installed():
        sys.exit(HOW_TO_INSTALL)
    with tempfile.TemporaryDirectory() as folder:
        found = run(Path(folder))
    tried = {name: each for name, each in found.items() if "passed" in each}
    failed = {name: each for name, each in tried.items() if "wrong" in each or not each["passed"]}
    known = {check for each in tried.values() for check in each.get("checks_not_offered", {})}
    if failed or not tried or known != CHECKS_NOT_OFFERED.keys():
        stale = sorted(CHECKS_NOT_OFFERED.keys() - known)
        sys.exit(f"Not as it should be: {json.dumps(failed, indent=2)}, and no longer failing: {stale}")
    passed = sum(each["passed"] for each in tried.values())
    write(
        "mcp_conformance",
        {"suite": f"{SUITE} {versions()[SUITE]}", "scenarios": found},
        claim="The gateway passes MCP's public conformance suite, in the newest revision of each era, for what it "
        "offers; what it does not offer is named with the reason.",
        figures={
            "scenarios tried": len(tried),
            "checks that pass": passed,
            "scenarios not offered": len(found) - len(tried),
            "checks not offered": len(known),
        },
        group="correctness",
    )


if __name__ == "__main__":
    main()
