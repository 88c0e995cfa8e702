"""The examples of the source template, letter by letter: its requests to the real gateway over HTTP, its answers back.

The gateway runs the shipped policy in front of the real tool servers of files and web, which serve what is shipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.gateway.policy import Policy, parse_policy
from sentinel_rag.gateway.upstream import McpHttpUpstream
from sentinel_rag.tools.files import create_app as files_app
from sentinel_rag.tools.web import WebOptions
from sentinel_rag.tools.web import create_app as web_app
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.loopback import serve
from sentinel_rag_testing.running_gateway import HttpAnswer, RunningGateway, running_gateway

TOKEN = "executor-token-of-the-tests"
SESSION = "550e8400-e29b-41d4-a716-446655440000"

WEB_SEARCH = """
{
  "session_id": "550e8400-e29b-41d4-a716-446655440000",
  "tool_name": "web_search",
  "args": {
    "query": "what is a panda",
    "context": "user question about animals"
  }
}
"""

NEW_TOOL = """
tools:
  - name: "new_tool"
    description: "Does something new"
    parameters:
      - name: "param1"
        type: "string"
        required: true
    taint_rules:
      - rule_id: "new_tool_default"
        condition: "true"
        taint_level: "LOW"
"""

TAINT_RULES = """
tools:
  - name: "file_read"
    parameters:
      - name: "file_path"
        type: "string"
        required: true
    taint_rules:
      # Block confidential files
      - rule_id: "file_read_confidential"
        condition: "file_path.startswith('confidential/')"
        taint_level: "HIGH"
        requires_approval: true

      # Allow public files
      - rule_id: "file_read_public"
        condition: "file_path.startswith('public/')"
        taint_level: "LOW"
        requires_approval: false
  - name: "web_search"
    taint_rules:
      # Allow all web searches (low risk)
      - rule_id: "web_search_default"
        condition: "true"
        taint_level: "LOW"
        requires_approval: false
"""


@pytest.fixture(scope="module")
def product(shipped_policy: Policy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    with (
        serve(files_app(None, token=TOKEN)) as files,
        serve(web_app(WebOptions(), token=TOKEN)) as web,
        FakeToolServer().running() as sentinel,
    ):
        upstreams = {
            "sentinel": McpHttpUpstream(sentinel.url),
            "files": McpHttpUpstream(f"{files}/mcp", token=TOKEN, is_ours=True),
            "web": McpHttpUpstream(f"{web}/mcp", token=TOKEN, is_ours=True),
        }
        folder = tmp_path_factory.mktemp("state")
        with running_gateway(shipped_policy, folder, sentinel, upstreams=upstreams) as gateway:
            yield gateway


def post(gateway: RunningGateway, body: str) -> HttpAnswer:
    return gateway.request("POST", "/v1/proxy-execute", key=gateway.key, body=body.encode())


def test_the_panda_is_found_with_the_request_of_the_source_and_in_its_shape(product: RunningGateway) -> None:
    answer = post(product, WEB_SEARCH)
    assert answer.status == 200
    assert answer.body["status"] == "success"
    result = answer.body["result"]
    assert list(result) == ["query", "results", "total"]
    assert result["query"] == "what is a panda"
    assert result["total"] == len(result["results"]) == 1
    [found] = result["results"]
    assert list(found)[:3] == ["title", "url", "snippet"]
    assert found["title"] == "Giant panda"
    assert found["url"].startswith("https://")
    assert "bear" in found["snippet"]
    assert found["source"] == "bundled sample"
    outcome = product.last_record()
    intent = next(record for record in product.records() if record["audit_id"] == outcome["audit_id"])
    assert (intent["tool"], intent["rule_id"], intent["effect"]) == ("web_search", "web_search_default", "external")
    assert outcome["status"] == "success"


def test_the_page_that_was_found_can_be_fetched_without_a_network(product: RunningGateway) -> None:
    [found] = post(product, WEB_SEARCH).body["result"]["results"]
    page = product.call("web_fetch", {"url": found["url"]}).body["result"]
    assert (page["title"], page["source"], page["next_offset"]) == ("Giant panda", "bundled sample", None)
    assert "bamboo" in page["text"]


@pytest.mark.parametrize("path", ["confidential/salaries.csv", "confidential/no-such-file", "./confidential//x"])
def test_a_confidential_file_is_denied_in_the_words_of_the_source(product: RunningGateway, path: str) -> None:
    body = json.dumps({"session_id": SESSION, "tool_name": "file_read", "args": {"file_path": path}})
    answer = post(product, body)
    assert answer.status == 403
    assert answer.body["detail"] == "Access denied by security policy. Taint level: HIGH"
    record = product.last_record()
    assert (record["kind"], record["reason"], record["rule_id"]) == (
        "refusal",
        "approval_required",
        "file_read_confidential",
    )


def test_a_public_file_is_read(product: RunningGateway) -> None:
    body = json.dumps({"session_id": SESSION, "tool_name": "file_read", "args": {"file_path": "public/handbook.md"}})
    answer = post(product, body)
    assert (answer.status, answer.body["status"]) == (200, "success")
    result = answer.body["result"]
    assert result["content"].startswith("# Security handbook")
    assert result["source"] == "bundled sample"


@pytest.mark.parametrize("path", ["other/x.txt", "handbook.md", "PUBLIC/handbook.md", "public", "publicity/x"])
def test_any_other_path_matches_no_rule(product: RunningGateway, path: str) -> None:
    answer = product.call("file_read", {"file_path": path})
    assert (answer.status, answer.body["reason"]) == (403, "no_rule_matched")


def test_the_yaml_of_adding_new_tools_loads_and_its_tool_runs(tmp_path: Path) -> None:
    parameters: Any = {"type": "object", "properties": {"param1": {"type": "string"}}, "required": ["param1"]}
    served = ToolSchema("new_tool", "Does something new", parameters)
    policy = parse_policy(NEW_TOOL)
    with FakeToolServer([served]).running() as executor, running_gateway(policy, tmp_path, executor) as gateway:
        answer = gateway.call("new_tool", {"param1": "x"})
        assert (answer.status, answer.body["status"]) == (200, "success")
        assert answer.body["result"] == {"tool": "new_tool", "arguments": {"param1": "x"}}
        assert gateway.call("new_tool", {}).status == 422


def test_the_taint_rules_of_the_source_load_as_they_stand() -> None:
    policy = parse_policy(TAINT_RULES)
    rules = {rule.rule_id: (rule.taint_level.name, rule.requires_approval) for rule in policy.tools["file_read"].rules}
    assert rules == {"file_read_confidential": ("HIGH", True), "file_read_public": ("LOW", False)}
    [search] = policy.tools["web_search"].rules
    assert (search.rule_id, search.taint_level.name, search.requires_approval) == ("web_search_default", "LOW", False)


@pytest.mark.parametrize("condition", ["file_path.startswith('confidential/')", "directory == 'confidential'", "true"])
def test_the_conditions_of_the_source_load(condition: str) -> None:
    policy = parse_policy(f"""
tools:
  - name: file_read
    parameters:
      - {{name: file_path, type: string}}
      - {{name: directory, type: string}}
    taint_rules:
      - {{rule_id: one, condition: "{condition}", taint_level: HIGH}}
""")
    assert policy.tools["file_read"].rules[0].condition == condition
