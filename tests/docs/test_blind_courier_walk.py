"""The source template's document on the blind courier, walked from top to bottom against real processes.

The zones of `sentinel up` (with a policy file that adds the template's own new tool), the example agent of
examples/langchain_agent and a scripted model in place of OpenRouter. Each test is one part of the document, named in
its docstring; docs/blind-courier.md tells the same to a reader. The adapter itself is tested in tests/integrations.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from tests.support import fork_server
from tests.support.fork_server import SENTINEL
from tests.support.langchain_installation import langchain_packages
from tests.support.otlp_receiver import OtlpReceiver, ReceivedSpan, running_receiver

from sentinel_rag.audit import JournalReader
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.integrations.gateway import GatewayCall, GatewayConnection, told_to_model
from sentinel_rag_testing.fake_tool_server import Dies, FakeToolServer
from sentinel_rag_testing.loopback import serve
from sentinel_rag_testing.running_gateway import running_gateway
from sentinel_rag_testing.scripted_model import ScriptedModel, calls_reply, text_reply
from sentinel_rag_testing.scripted_model.replies import reply_from_dict
from waiting import WAIT_S

pytestmark = pytest.mark.requirement("GATE-8")
REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLE = REPOSITORY / "examples" / "langchain_agent"
SESSION = "550e8400-e29b-41d4-a716-446655440000"

# The three blocks of YAML of the source, as they stand there.
FILE_RULES = """
tools:
  - name: "file_read"
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
"""
SEARCH_RULES = """
  - name: "web_search"
    taint_rules:
      # Allow all web searches (low risk)
      - rule_id: "web_search_default"
        condition: "true"
        taint_level: "LOW"
        requires_approval: false
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
PARAM1: Any = {"type": "object", "properties": {"param1": {"type": "string"}}, "required": ["param1"]}


def loaded(path: Path) -> ModuleType:
    """A module of the example, which is no package."""
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


check = loaded(EXAMPLE / "check.py")


@dataclass(frozen=True)
class Walk:
    """The running processes and the answers of the example's conversation."""

    place: Any
    answers: list[Any]
    handler: FakeToolServer
    collector: OtlpReceiver
    settings: dict[str, str]

    def execute(self, body: Any, *, key: str | None = None) -> tuple[int, Any]:
        sent = {"X-API-Key": self.place.key if key is None else key}
        status, answer = check.post(f"{self.place.gateway}/v1/proxy-execute", body, sent)
        return int(status), answer

    def records(self, audit_id: str) -> list[dict[str, Any]]:
        """What the journal says of a call."""
        reader = JournalReader(self.place.home / "gateway" / "journal.sqlite")
        return [entry.record for entry in reader.find(audit_id)]

    def sentinel(self, *arguments: str) -> str:
        """What a command of the product prints, in the home folder of the running zones."""
        environment = {**self.settings, "SENTINEL_HOME": str(self.place.home), "PATH": "/usr/bin:/bin"}
        done = fork_server.run([SENTINEL, *arguments], env=environment, text=True, timeout=WAIT_S)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def trace(self, *names: str) -> list[ReceivedSpan]:
        """The spans of the one trace that has all these; waits until they have come."""
        while True:
            spans = self.collector.spans()
            for trace_id in {span.trace_id for span in spans}:
                found = [span for span in spans if span.trace_id == trace_id]
                if set(names) <= {span.name for span in found}:
                    return found
            self.collector.wait_for(len(spans) + 1)


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    folder = tmp_path_factory.mktemp("walk")
    script = [reply_from_dict(reply) for reply in check.SCRIPT["replies"]]
    searches = calls_reply(("web_search", {"query": "what is a panda"}))
    with (
        fork_server.forking(),
        FakeToolServer([ToolSchema("new_tool", "", PARAM1)], token="t-of-the-handler").running() as handler,
        ScriptedModel([searches, text_reply("A panda is a bear.")]).running() as model,
        ScriptedModel(script, key=check.MODEL_KEY, of_others=True).running() as model_of_example,
        running_receiver() as collector,
    ):
        policy = folder / "policy.yaml"
        policy.write_text(with_new_tool(handler.url))
        settings = {
            "SENTINEL_UPSTREAM_HANDLER": "t-of-the-handler",
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "SENTINEL_MODEL": "openai-compatible",
            "SENTINEL_MODEL_URL": f"{model}/v1",
            "SENTINEL_MODEL_NAME": "scripted",
        }
        with check.running(
            folder, policy=policy, variables=settings, model=model_of_example, packages=langchain_packages()
        ) as place:
            yield Walk(place, check.conversation(place.agent), handler, collector, settings)


def with_new_tool(url: str) -> str:
    """The shipped policy with the source's new tool, and the server at `url` that handles it."""
    shipped = (REPOSITORY / "config" / "sentinel_config.yaml").read_text()
    block = NEW_TOOL.replace("\ntools:\n", "").replace('"new_tool"\n', '"new_tool"\n    server: handler\n', 1)
    tools = "\ntools:\n"
    assert shipped.count(tools) == 1
    with_it = shipped.replace(tools, f"{tools}{block}\n")
    return f"{with_it}\nservers: [{{name: handler, url: {url}, token_variable: SENTINEL_UPSTREAM_HANDLER}}]\n"


def test_the_example_answers_as_the_source_says(walk: Walk) -> None:
    """User flow, steps 1 to 8: a message over HTTP, a search through the gateway, an answer made of what it found."""
    assert list(check.faults(walk.answers)) == []
    panda = walk.answers[0]
    assert panda["answer"].startswith("A panda is a bear species")
    assert [tool["tool"] for tool in panda["tools"]] == ["web_search"]


def test_the_session_of_the_agent_is_the_session_of_the_record(walk: Walk) -> None:
    """User flow, steps 2, 5 and 6, and the audit trail of the pattern: every operation is on record."""
    panda, file, _ = walk.answers
    intent, outcome = walk.records(panda["tools"][0]["audit_id"])
    assert (intent["kind"], intent["tool"], intent["rule_id"]) == ("intent", "web_search", "web_search_default")
    assert intent["session_id"] == panda["session_id"]
    assert outcome["status"] == "success"
    assert file["session_id"] == panda["session_id"]


def test_request_and_success_have_the_sources_form(walk: Walk) -> None:
    """Request/response format, and phases 3 and 5: the request letter by letter, and a result of the tool's server."""
    asked = {"query": "what is a panda", "context": "user question about animals"}
    status, body = walk.execute({"session_id": SESSION, "tool_name": "web_search", "args": asked})
    assert (status, body["status"]) == (200, "success")
    result = body["result"]
    assert (result["query"], result["total"]) == ("what is a panda", len(result["results"]))
    assert {"title", "url", "snippet"} <= result["results"][0].keys()
    assert set(body) == {"result", "status", "audit_id"}  # the last one is ours


def test_a_denial_has_the_sources_form(walk: Walk) -> None:
    """Access denied response, and the denied arm of phase 4."""
    wish = {"session_id": SESSION, "tool_name": "file_read", "args": {"file_path": "confidential/salaries.csv"}}
    status, body = walk.execute(wish)
    assert (status, body["detail"]) == (403, "Access denied by security policy. Taint level: HIGH")
    assert (body["status"], body["reason"], body["rule_id"]) == (
        "denied",
        "approval_required",
        "file_read_confidential",
    )
    status, body = walk.execute({**wish, "args": {"file_path": "public/handbook.md"}})
    assert (status, body["status"]) == (200, "success")


def test_key_and_session_are_checked_before_anything_runs(walk: Walk) -> None:
    """Phase 4, steps 1 and 2."""
    wish = {"session_id": SESSION, "tool_name": "web_search", "args": {"query": "panda"}}
    assert walk.execute(wish, key="no-such-key-0123456789")[0] == 401
    assert walk.execute({**wish, "session_id": "../etc"})[0] == 422
    _, opened = check.post(f"{walk.place.gateway}/v1/sessions", {}, {"X-API-Key": walk.place.key})
    with GatewayConnection(walk.place.gateway, walk.place.key) as connection:
        assert connection._conversations.keep("", opened["session_id"]) == opened["session_id"]
    assert walk.execute({**wish, "session_id": opened["session_id"]})[0] == 409  # it was closed with the connection


def test_a_block_is_told_to_the_model_and_the_conversation_goes_on(walk: Walk) -> None:
    """Error handling: what the model sees of a 403, and that it can tell the user and be asked for something else."""
    _, file, later = walk.answers
    [read] = file["tools"]
    assert read["told"].startswith(
        "Tool 'file_read' was blocked by a security policy. Reason: Access denied by security policy. Taint level: HIGH"
    )
    assert file["answer"] == "I may not read that file; a person has to approve it."
    assert later["answer"].startswith("You asked about pandas")


def test_a_failing_tool_is_a_text_and_not_the_end(walk: Walk) -> None:
    """Error handling: system errors do not block."""
    walk.handler.on("new_tool", Dies())
    with GatewayConnection(walk.place.gateway, walk.place.key) as connection:
        called = connection.call(GatewayCall("new_tool", {"param1": "x"}, effect="write"))
    walk.handler.on("new_tool")
    assert told_to_model("new_tool", called.answer).startswith("Result: SYSTEM_ERROR: ")


def test_the_taint_rules_load_as_they_stand_and_decide_as_they_say(tmp_path: Path) -> None:
    """Taint rule examples: the blocks of the source as one whole policy file, in front of a server of both tools."""
    policy = parse_policy(FILE_RULES + SEARCH_RULES)
    with FakeToolServer().running() as executor, running_gateway(policy, tmp_path, executor) as gateway:
        denied = gateway.call("file_read", {"file_path": "confidential/x"})
        assert (denied.status, denied.body["rule_id"]) == (403, "file_read_confidential")
        assert denied.body["detail"].endswith("Taint level: HIGH")
        assert denied.body["approval_id"]
        assert gateway.call("file_read", {"file_path": "public/x"}).status == 200
        assert gateway.call("file_read", {"file_path": "elsewhere/x"}).body["reason"] == "no_rule_matched"
        assert gateway.call("web_search", {"query": "what is a panda"}).status == 200
    running = parse_policy((REPOSITORY / "config" / "sentinel_config.yaml").read_text())
    assert [rule.rule_id for rule in running.tools["file_read"].rules] == ["file_read_confidential", "file_read_public"]


@pytest.mark.parametrize(
    "condition", ["file_path.startswith('...')", "directory == 'confidential'", "true"], ids=["values", "equal", "true"]
)
def test_the_three_kinds_of_conditions_load(condition: str) -> None:
    """Custom taint rules."""
    rule = {"rule_id": "own", "condition": condition, "taint_level": "HIGH"}
    parameters = [{"name": name, "type": "string"} for name in ("file_path", "directory")]
    policy = parse_policy(yaml.safe_dump({"tools": [{"name": "t", "parameters": parameters, "taint_rules": [rule]}]}))
    assert policy.tools["t"].rules[0].condition == condition


def test_a_new_tool_takes_three_steps(walk: Walk) -> None:
    """Adding new tools: the block of the source in the policy file, a handler behind the gateway, a restart."""
    assert set(parse_policy(NEW_TOOL).tools) == {"new_tool"}
    with GatewayConnection(walk.place.gateway, walk.place.key) as connection:
        [offered] = [tool for tool in connection.tools() if tool.name == "new_tool"]
        assert (offered.description, offered.parameters["required"]) == ("Does something new", ["param1"])
    wish = {"session_id": SESSION, "tool_name": "new_tool", "args": {"param1": "x"}}
    status, body = walk.execute(wish)
    assert (status, body["result"]) == (200, {"tool": "new_tool", "arguments": {"param1": "x"}})
    assert walk.execute({**wish, "args": {}})[0] == 422


def test_zone_a_reaches_nothing_but_the_gateway(walk: Walk) -> None:
    """System overview and security summary: the agent asks, and cannot execute, go around the rules or reach data."""
    zones = walk.place.zones
    servers = [zones["workspace"]["url"], *(each["url"] for each in zones["executors"].values())]
    assert len(servers) == 5
    for server in servers:
        for path in ("/mcp", "/v1/workspaces/default/query"):
            for header in ({"X-API-Key": walk.place.key}, {"Authorization": f"Bearer {walk.place.key}"}):
                assert check.post(server + path, {"query": "SecurityAlert"}, header)[0] in (401, 403, 404)
    offered = urllib.request.Request(f"{walk.place.gateway}/v1/tools", headers={"X-API-Key": walk.place.key})
    with urllib.request.urlopen(offered, timeout=WAIT_S) as answer:
        names = {tool["name"] for tool in json.load(answer)["tools"]}
    assert {"file_read", "search_knowledge_base", "web_search"} <= names  # files, vector database, web search


def test_the_example_imports_nothing_that_executes() -> None:
    """Security summary: what the agent's program has of this product are contracts and the adapter."""
    imported = set()
    for source in (EXAMPLE / "agent.py", EXAMPLE / "main.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.ImportFrom):
                imported.add(node.module or "")
            elif isinstance(node, ast.Import):
                imported |= {name.name for name in node.names}
    ours = {name for name in imported if name.startswith("sentinel_rag")}
    assert {".".join(name.split(".")[:2]) for name in ours} == {"sentinel_rag.contracts", "sentinel_rag.integrations"}
    assert not imported & {"subprocess", "sqlite3", "duckdb", "shutil"}


def test_bad_messages_are_refused_before_a_model_is_asked(walk: Walk) -> None:
    """Phase 1, step 1: validate the request."""
    chat = f"{walk.place.agent}/chat"
    assert check.post(chat, {})[0] == 422
    assert check.post(chat, {"message": ""})[0] == 422
    assert check.post(chat, {"message": "x", "session_id": "of-somebody-else"})[0] == 404


def test_the_example_ends_with_an_error_where_an_answer_is_wrong(
    walk: Walk, capsys: pytest.CaptureFixture[str]
) -> None:
    """check.py itself: 0 for the answers that were given, 1 if one of them is missing or the agent is away."""

    def replaying(answers: list[Any]) -> Starlette:
        left = list(answers)

        async def chat(_: Request) -> Response:
            return JSONResponse(left.pop(0))

        return Starlette(routes=[Route("/chat", chat, methods=["POST"])])

    panda, file, memory = walk.answers
    for answers, code in (
        ([panda, file, memory], 0),
        ([panda, {**file, "tools": [{**file["tools"][0], "status": "success"}]}, memory], 1),
        ([{**panda, "tools": []}, file, memory], 1),
    ):
        with serve(replaying(answers)) as url:
            assert check.main(["--url", url]) == code
    assert check.main(["--url", "http://127.0.0.1:9"]) == 1
    assert "was not blocked" in capsys.readouterr().err


def test_one_trace_has_the_spans_of_the_source(walk: Walk) -> None:
    """Observability: a question to the product's own agent, told to a collector by the names of the source."""
    walk.sentinel("ask", "what is a panda")
    spans = {span.name: span for span in walk.trace("agent.invoke", "tool.web_search", "llm.invoke")}
    root = spans["agent.invoke"]
    assert root.parent_id == ""
    for name in ("agent.invoke", "tool.web_search", "llm.invoke"):
        assert spans[name].service == "sentinel-rag-agent"
    search = spans["tool.web_search"]
    assert search.parent_id == spans["llm.invoke"].parent_id == root.span_id
    assert (search.attributes["tool.name"], search.attributes["http.status_code"]) == ("web_search", 200)
    assert search.attributes["session.id"] == root.attributes["session.id"]


def test_the_page_names_places_that_exist() -> None:
    """docs/blind-courier.md, which tells where each statement lives."""
    page = (REPOSITORY / "docs" / "blind-courier.md").read_text()
    ours = re.sub(r"^\|[^|]*\|", "", page, flags=re.MULTILINE)  # the first column has the places of the source
    paths = set(re.findall(r"`((?:src|examples|config|tests|docs)/[\w./-]+)`", ours))
    assert len(paths) > 8
    assert sorted(path for path in paths if not (REPOSITORY / path).exists()) == []
