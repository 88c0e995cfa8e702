"""Traces, metrics and logs of the whole product: real zones, a scripted model, a receiver that reads OTLP.

One run serves all tests. What must not be told stands as canaries in the question, in the arguments of calls, in names
of tools that the model made up, in its answers, in headers and keys, and in the rows of the sample estate.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from tests.support.otlp_receiver import OtlpReceiver, ReceivedSpan, running_receiver
from tests.support.web_client import Client, signed_in

from sentinel_rag.app.run_state import RunFolder, RunState
from sentinel_rag_testing.scripted_model import ModelHttpRequest, Reply, ScriptedModel, calls_reply, text_reply
from waiting import WAIT_S

REPOSITORY = Path(__file__).resolve().parents[2]
DEPLOY = REPOSITORY / "deploy" / "observability"
QUESTION = "canary-question-5501"
ARGUMENT = "canary-argument-5502"
TOOL = "canary_tool_5503"
OUTSIDE = "00f067aa0ba902b7"
ANSWER = "canary-answer-5504"
MODEL_KEY = "sk-canary-model-key-5505"
COLLECTOR_KEY = "canary-collector-key-5506"
METRICS_TOKEN = "canary-metrics-token-5507"
BAGGAGE = "canary-baggage-5508"
CALLS = (
    ("query_incidents", {"status": "Open", "limit": 5}),
    ("query_alerts", {"name_contains": ARGUMENT}),
    ("query_incidents", {"severity": ARGUMENT}),  # refused: no such severity
    (TOOL, {"to": ARGUMENT}),  # no such tool
    ("file_read", {"file_path": f"../../{ARGUMENT}"}),  # the tool says no, and repeats the path
    ("add_incident_comment", {"incident": "124", "message": ARGUMENT}),  # a person has to approve it
)


def respond(request: ModelHttpRequest) -> Reply:
    """Every call at once, then an answer."""
    messages = request.body["messages"]
    asked = max(place for place, message in enumerate(messages) if message["role"] == "user")
    if any(message["role"] == "tool" for message in messages[asked:]):
        return text_reply(f"I found {ANSWER}.")
    return calls_reply(*CALLS, first=len(messages))


@dataclass(frozen=True)
class Watched:
    """The running product with what it tells."""

    product: Any
    state: RunState
    receiver: OtlpReceiver
    model: ScriptedModel

    def url(self, zone: str) -> str:
        found = self.state.zone(zone)
        assert found is not None
        return found.url

    def metrics(self, zone: str) -> dict[str, Any]:
        """The families of a zone's /metrics, as Prometheus's own parser reads them."""
        request = urllib.request.Request(
            f"{self.url(zone)}/metrics", headers={"Authorization": f"Bearer {METRICS_TOKEN}"}
        )
        with urllib.request.urlopen(request, timeout=WAIT_S) as response:
            return {family.name: family for family in text_string_to_metric_families(response.read().decode())}

    def trace(self, root: str, least: int, *, decisions: int = 0) -> list[ReceivedSpan]:
        """The spans of the trace that `root` names, once there are so many, the root is among them, and the gateway has
        told so many decisions and, of each call that ran, the tool server its part: zones send at their own time."""

        def whole(spans: list[ReceivedSpan]) -> bool:
            own = [span for span in spans if span.trace_id == root]
            known = {OUTSIDE, *(span.span_id for span in own)}
            complete = all(span.parent_id in known for span in own)
            decided = named(own, "POST /v1/proxy-execute")
            parents = {span.parent_id for span in own}
            ran = all(
                span.span_id in parents for span in decided if span.attributes.get("http.response.status_code") == 200
            )
            told = ran and len(decided) >= decisions
            return complete and told and len(own) >= least and any(span.name == "agent.invoke" for span in own)

        return [span for span in self.receiver.wait_until(whole) if span.trace_id == root]


@pytest.fixture(scope="module")
def watched(generated: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    model = ScriptedModel(key=MODEL_KEY, respond=respond)
    with running_receiver() as receiver, model.running() as url:
        own = generated.afresh(tmp_path_factory.mktemp("telemetry") / "home")
        settings = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
            "OTEL_EXPORTER_OTLP_HEADERS": f"x-collector-key={COLLECTOR_KEY}",
            "OTEL_BSP_SCHEDULE_DELAY": "100",
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=tests",
            "SENTINEL_METRICS_TOKEN": METRICS_TOKEN,
            "SENTINEL_MODEL": "openai-compatible",
            "SENTINEL_MODEL_URL": f"{url}/v1",
            "SENTINEL_MODEL_NAME": "scripted-large",
            "SENTINEL_MODEL_API_KEY": MODEL_KEY,
            "SENTINEL_LOG_LEVEL": "DEBUG",
        }
        product = replace(own, settings={**own.settings, **settings})
        with product.up("--web"):
            state = RunFolder(product.home).read()
            assert state is not None
            yield Watched(product, state, receiver, model)


def ask(watched: Watched, trace: str, *, flags: str = "01", session_id: str = "telemetry-session-1") -> dict[str, Any]:
    """`POST /chat` of the agent, as a surface whose own program has begun a trace sends it."""
    headers = {
        "Authorization": f"Bearer {watched.state.agent_token}",
        "Content-Type": "application/json",
        "traceparent": f"00-{trace}-{OUTSIDE}-{flags}",
        "tracestate": f"vendor={BAGGAGE}",
        "baggage": f"user={BAGGAGE}",
    }
    body = json.dumps({"message": f"What of {QUESTION}?", "session_id": session_id}).encode()
    request = urllib.request.Request(f"{watched.url('agent')}/chat", body, headers)
    with urllib.request.urlopen(request, timeout=WAIT_S) as response:
        answer: dict[str, Any] = json.loads(response.read())
    return answer


def call_the_gateway(watched: Watched, trace: str, tool: str, **arguments: str) -> tuple[int, Any]:
    """A call with the agent's own key, as a hijacked agent's process sends it."""
    headers = {
        "X-API-Key": watched.product.environment["SENTINEL_API_KEY"],
        "Content-Type": "application/json",
        "traceparent": f"00-{trace}-{OUTSIDE}-01",
        "baggage": f"user={BAGGAGE}",
    }
    body = json.dumps({"session_id": "telemetry-session-9", "tool_name": tool, "args": arguments}).encode()
    request = urllib.request.Request(f"{watched.url('interceptor')}/v1/proxy-execute", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as refused:
        return refused.code, json.loads(refused.read())


@pytest.fixture(scope="module")
def asked(watched: Watched) -> tuple[dict[str, Any], list[ReceivedSpan]]:
    """The answer to one question with all the calls, and the spans of its trace."""
    trace = "a" * 31 + "1"
    answer = ask(watched, trace)
    assert [tool["name"] for tool in answer["tools"]] == [name for name, _ in CALLS if name != TOOL]
    status, _ = call_the_gateway(
        watched, trace, TOOL, to=ARGUMENT
    )  # the agent's loop asks for no tool that is not there
    assert status == 403
    return answer, watched.trace(trace, 16, decisions=len(CALLS))


def named(spans: list[ReceivedSpan], name: str, service: str | None = None) -> list[ReceivedSpan]:
    return [span for span in spans if span.name == name and service in (None, span.service)]


@pytest.mark.requirement("OBS-1")
def test_a_question_is_one_trace_through_all_zones(asked: tuple[dict[str, Any], list[ReceivedSpan]]) -> None:
    answer, spans = asked
    by_id = {span.span_id: span for span in spans}
    [root] = named(spans, "agent.invoke")
    assert (root.service, root.parent_id) == ("sentinel-rag-agent", OUTSIDE)
    session = root.attributes["session.id"]
    assert re.fullmatch("hashed-[0-9a-f]{16}", session)  # its caller named it
    assert root.attributes["sentinel.tool.calls"] == len(CALLS) - 1
    assert root.resource["deployment.environment.name"] == "tests"
    for span in spans:
        assert span.parent_id in by_id or span.parent_id == OUTSIDE, f"{span.name} hangs in the air"
    [alerts] = named(spans, "tool.query_alerts")
    assert alerts.parent_id == root.span_id
    wanted = {"tool.name": "query_alerts", "session.id": session, "http.status_code": 200}
    assert wanted.items() <= alerts.attributes.items()
    assert alerts.attributes["gen_ai.operation.name"] == "execute_tool"
    recorded = next(trace["audit_id"] for trace in answer["tools"] if trace["name"] == "query_alerts")
    assert alerts.attributes["gen_ai.tool.call.id"] == recorded
    [decided] = [span for span in named(spans, "POST /v1/proxy-execute") if span.parent_id == alerts.span_id]
    assert decided.service == "sentinel-rag-interceptor"
    told = {"sentinel.outcome": "allowed", "sentinel.audit.id": recorded, "http.response.status_code": 200}
    assert decided.attributes["session.id"] == session  # every zone tells the same
    assert told.items() <= decided.attributes.items()
    assert decided.attributes["sentinel.label.sensitivity"] in ("LOW", "MEDIUM", "HIGH")
    assert type(decided.attributes["sentinel.upstream.ms"]) is int
    [ran] = [span for span in named(spans, "tools/call query_alerts") if span.parent_id == decided.span_id]
    assert ran.attributes["mcp.method.name"] == "tools/call"
    assert (ran.service, ran.resource["sentinel.zone"]) == ("sentinel-rag-tools", "executor-sentinel")
    queries = [span for span in named(spans, "kql.query") if span.parent_id == ran.span_id]
    assert queries
    assert all(query.attributes["db.system.name"] == "azure.log_analytics" for query in queries)
    assert all(type(query.attributes["db.response.returned_rows"]) is int for query in queries)


@pytest.mark.requirement("OBS-1")
def test_each_request_to_the_model_is_a_span(asked: tuple[dict[str, Any], list[ReceivedSpan]]) -> None:
    _, spans = asked
    [root] = named(spans, "agent.invoke")
    first, *_, last = sorted(named(spans, "llm.invoke"), key=lambda span: span.attributes["gen_ai.usage.input_tokens"])
    assert first.parent_id == last.parent_id == root.span_id
    for span in (first, last):
        told = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "scripted-large",
        }
        assert told.items() <= span.attributes.items()
        assert span.attributes["gen_ai.usage.output_tokens"] == 5
    reasons = {span.attributes["gen_ai.response.finish_reasons"] for span in named(spans, "llm.invoke")}
    assert reasons >= {("tool_calls",), ("stop",)}


@pytest.mark.requirement("OBS-1")
def test_a_refusal_and_a_failing_tool_show_as_such(asked: tuple[dict[str, Any], list[ReceivedSpan]]) -> None:
    """A tool's error does not hide in a span of status 200."""
    _, spans = asked
    [commented] = named(spans, "tool.add_incident_comment")
    assert commented.failed
    assert commented.attributes["http.status_code"] == 403
    assert commented.attributes["error.type"] == "approval_required"
    decided = named(spans, "POST /v1/proxy-execute")
    [unknown] = [span for span in decided if span.attributes.get("sentinel.reason") == "unknown_tool"]
    assert unknown.attributes["sentinel.outcome"] == "denied"
    assert "tool.name" not in unknown.attributes
    [file_read] = named(spans, "tool.file_read")
    assert (file_read.failed, file_read.attributes["http.status_code"]) == (True, 422)
    wrong = [span for span in named(spans, "tool.query_incidents") if span.failed]
    assert [span.attributes["http.status_code"] for span in wrong] == [422]
    assert all(span.attributes["error.type"] == "invalid_argument" for span in wrong)


@pytest.mark.requirement("OBS-1")
@pytest.mark.requirement("OBS-2")
def test_no_word_of_a_question_a_call_a_row_or_a_key_leaves(
    watched: Watched, asked: tuple[dict[str, Any], list[ReceivedSpan]]
) -> None:
    rows = {
        value
        for request in watched.model.requests
        for message in request.body["messages"]
        if message["role"] == "tool"
        for line in message["content"].splitlines()
        if (row := re.match(r"\[c\d+\.\d+\] (.*)", line))
        for value in (cell.strip("«»") for cell in row[1].split(" | "))
        if len(value) > 7
    }
    assert len(rows) >= 10, "the rows hold nothing to look for"
    keys = {*watched.state.keys.values(), watched.state.agent_token, MODEL_KEY, COLLECTOR_KEY, METRICS_TOKEN}
    canaries = {"telemetry-session", QUESTION, ARGUMENT, TOOL, ANSWER, BAGGAGE, *rows, *keys}
    exported = watched.receiver.raw
    assert b"agent.invoke" in exported
    served = "".join(
        sample.name + repr(sample.labels)
        for zone in ("interceptor", "agent", "web", "executor-sentinel")
        for family in watched.metrics(zone).values()
        for sample in family.samples
    )
    logs = "".join(path.read_text() for path in (watched.product.home / "logs").iterdir())
    for canary in canaries:
        assert canary.encode() not in exported, canary
        assert canary not in served, canary
        assert canary not in logs or canary in rows, canary
    assert {headers["x-collector-key"] for headers in watched.receiver.headers} == {COLLECTOR_KEY}


@pytest.mark.requirement("OBS-1")
def test_a_caller_that_is_not_recorded_is_not_recorded_here(watched: Watched) -> None:
    ask(watched, "b" * 32, flags="00", session_id="telemetry-session-2")
    ask(watched, "c" * 32, session_id="telemetry-session-3")
    watched.trace("c" * 32, 10)
    assert not [span for span in watched.receiver.spans() if span.trace_id == "b" * 32]


@pytest.mark.requirement("OBS-1")
def test_a_persons_own_program_begins_the_trace_at_the_web_surface(watched: Watched) -> None:
    password, trace = "lantern over wet gravel", "d" * 32
    made = watched.product.run("users", "add", "dana", "--password-stdin", "--json", stdin=f"{password}\n")
    assert made.returncode == 0, made.stderr
    answer = Client(watched.url("web")).post("/sign-in", {"name": "dana", "password": password})
    dana = signed_in(watched.url("web"), answer)
    place = {"traceparent": f"00-{trace}-{OUTSIDE}-01"}
    assert dana.request("POST", "/chat", {"message": f"What of {QUESTION}?"}, place).status == 200
    [root] = named(watched.trace(trace, 8), "agent.invoke")
    assert root.parent_id == OUTSIDE


@pytest.mark.requirement("OBS-2")
def test_every_zone_counts_what_it_did(watched: Watched, asked: tuple[dict[str, Any], list[ReceivedSpan]]) -> None:
    gateway = watched.metrics("interceptor")
    calls = {
        (sample.labels["tool"], sample.labels["decision"], sample.labels["reason"]): sample.value
        for sample in gateway["sentinel_gateway_calls"].samples
    }
    assert calls["query_alerts", "allowed", ""] >= 1
    assert calls["unknown", "denied", "unknown_tool"] >= 1
    assert calls["add_incident_comment", "denied", "approval_required"] >= 1
    results = {
        (sample.labels["tool"], sample.labels["status"], sample.labels["reason"]): sample.value
        for sample in gateway["sentinel_gateway_results"].samples
    }
    assert results["query_alerts", "success", ""] >= 1
    assert results["query_incidents", "error", "invalid_argument"] >= 1
    up = {sample.labels["server"]: sample.value for sample in gateway["sentinel_gateway_upstream_up"].samples}
    assert up == {"sentinel": 1, "files": 1, "web": 1, "knowledge": 1}
    quarantined = {s.labels["server"]: s.value for s in gateway["sentinel_gateway_tools_quarantined"].samples}
    assert quarantined == dict.fromkeys(up, 0)  # an alert sees the first one, since there was a 0 before
    [pending] = gateway["sentinel_gateway_approvals_pending"].samples
    assert pending.labels == {"tool": "add_incident_comment"}
    assert gateway["sentinel_gateway_journal_writable"].samples[0].value == 1
    decided = [s for s in gateway["sentinel_gateway_decision_seconds"].samples if s.name.endswith("_count")]
    assert decided[0].value >= len(CALLS)
    agent = watched.metrics("agent")
    assert sum(sample.value for sample in agent["sentinel_agent_questions"].samples) >= 1
    tokens = {s.labels["type"]: s.value for s in agent["sentinel_agent_llm_tokens"].samples}
    assert tokens["input"] > tokens["output"] > 0
    named_tools = {sample.labels["tool"] for sample in agent["sentinel_agent_tool_calls"].samples}
    assert "query_alerts" in named_tools
    assert TOOL not in named_tools
    spans = {s.labels["result"]: s.value for s in agent["sentinel_telemetry_spans"].samples}
    assert (spans["dropped"], spans["failed"]) == (0, 0)
    for zone in ("web", "executor-files"):
        assert watched.metrics(zone)["sentinel_build_info"].samples[0].labels["zone"] == zone


@pytest.mark.requirement("OBS-2")
@pytest.mark.parametrize("token", [None, "wrong-token-0123456789"])
@pytest.mark.parametrize("zone", ["interceptor", "agent", "web", "executor-web"])
def test_metrics_are_for_whoever_has_the_token(watched: Watched, zone: str, token: str | None) -> None:
    request = urllib.request.Request(f"{watched.url(zone)}/metrics")
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    request.add_header("X-API-Key", watched.state.keys["admin"])
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=WAIT_S)
    assert refused.value.code == 401
    assert b"SENTINEL_METRICS_TOKEN" in refused.value.read()


@pytest.mark.requirement("OBS-2")
def test_the_dashboard_and_the_alerts_name_metrics_that_are_served(watched: Watched, asked: object) -> None:
    served: dict[str, set[str]] = {}
    for zone in ("interceptor", "agent"):
        for family in watched.metrics(zone).values():
            for sample in family.samples:
                served.setdefault(sample.name, set()).update(sample.labels)
            name = f"{family.name}_total" if family.type == "counter" else family.name
            served.setdefault(name, set())
    panels = json.loads((DEPLOY / "grafana-dashboard.json").read_text())["panels"]
    rules = yaml.safe_load((DEPLOY / "prometheus-alerts.yaml").read_text())["groups"][0]["rules"]
    wanted = [target["expr"] for panel in panels for target in panel["targets"]] + [rule["expr"] for rule in rules]
    metric = re.compile(r"\b(?:sentinel|process)_[a-z_]+")
    found = {name for expression in wanted for name in metric.findall(expression)}
    seldom = {name for name in found if name.endswith("_bucket") and name.removesuffix("_bucket") in served}
    assert found - seldom <= set(served), found - seldom - set(served)
    assert len(found) > 20
    shown = {name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") for name in found}
    ours = {name for name in served if name.startswith("sentinel_gateway_") and not name.endswith("_created")}
    unseen = {name for name in ours if re.sub("_(bucket|sum|count)$", "", name) not in shown}
    assert unseen == set(), "the dashboard shows every metric of the gateway"


@pytest.mark.requirement("OBS-2")
def test_the_page_names_every_metric(watched: Watched, asked: object) -> None:
    page = (REPOSITORY / "docs" / "observability.md").read_text()
    for zone in ("interceptor", "agent", "web"):
        for family in watched.metrics(zone).values():
            name = f"{family.name}_total" if family.type == "counter" else family.name
            assert f"`{name}`" in page or name.startswith("process_"), name
