"""The model-driven analyst before a real gateway: tools of other makers, and what the gateway says of each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from sentinel_rag.agent.gateway_client import HttpToolGateway
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag_testing.fake_tool_server import Answers, FakeToolServer
from sentinel_rag_testing.loopback import serve
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway
from sentinel_rag_testing.scripted_model import calls_reply, text_reply

pytestmark = pytest.mark.anyio

POLICY = """
tools:
  - name: ticket_search
    server: tickets
    effect: read
    parameters: [{name: text, type: string, required: true}]
    taint_rules: [{rule_id: search, condition: "true", taint_level: LOW}]
  - name: ticket_close
    server: tickets
    effect: write
    parameters: [{name: number, type: integer, required: true}]
    taint_rules: [{rule_id: close_low, condition: "number < 100", taint_level: LOW}]
"""


def _schema(name: str, parameter: str, kind: str) -> ToolSchema:
    properties = {parameter: {"type": kind}, "secret_mode": {"type": "string"}}
    return ToolSchema(name, f"The {name} of a maker.", {"type": "object", "properties": properties, "required": []})


@pytest.fixture
async def tickets(tmp_path: Path) -> AsyncIterator[tuple[RunningGateway, HttpToolGateway, FakeToolServer]]:
    """A gateway whose tools are a stranger's, and the agent's client of it."""
    served = [_schema("ticket_search", "text", "string"), _schema("ticket_close", "number", "integer")]
    with (
        FakeToolServer(served).running() as executor,
        running_gateway(parse_policy(POLICY), tmp_path, executor) as gateway,
    ):
        async with HttpToolGateway(gateway.url, gateway.key) as client:
            yield gateway, client, executor


async def test_a_model_is_offered_a_stranger_s_tools_as_the_policy_cuts_them_down(desk, tickets):
    _, client, executor = tickets
    executor.on("ticket_search", Answers({"tickets": [{"number": 12, "title": "Phishing at desk 4"}]}))
    at = desk(
        calls_reply(("ticket_search", {"text": "phishing"})),
        text_reply("Ticket 12 has the title “Phishing at desk 4” [c1.1]. Ticket 77 is open [c1.1]."),
        gateway=client,
        catalogue=client.offered_schemas,
    )
    answer = await at.ask("Which tickets are about phishing?")
    offered = {tool["function"]["name"]: tool["function"] for tool in at.server.requests[0].body["tools"]}
    assert list(offered) == ["ticket_search", "ticket_close", "compute", "read_rows"]
    assert list(offered["ticket_search"]["parameters"]["properties"]) == ["text"], "no parameter beside the policy's"
    assert answer.outcome is Outcome.ANSWERED
    assert [sentence.state for sentence in answer.sentences] == ["values_found", "not_found"]
    assert "[c1.1] 12 | Phishing at desk 4" in at.results()[0]


@pytest.mark.requirement("GATE-4")
async def test_a_stranger_s_change_is_sent_once_and_refused_where_no_rule_allows_it(desk, tickets):
    gateway, client, executor = tickets
    executor.on("ticket_close", Answers({"closed": 12}))
    change = ("ticket_close", {"number": 12})
    at = desk(
        calls_reply(change, change, ("ticket_close", {"number": 4000})),
        text_reply("I closed ticket 12 and ticket 4000."),
        gateway=client,
        catalogue=client.offered_schemas,
    )
    answer = await at.ask("Close ticket 12")
    assert [call.arguments for call in executor.calls] == [{"number": 12}]
    assert answer.outcome is Outcome.DENIED
    assert "Not done: ticket_close, number 4000; no rule of the policy allows it" in answer.text
    refused = next(trace for trace in answer.tools if trace.status == "denied")
    records = [record for record in gateway.records() if record.get("audit_id") == refused.audit_id]
    assert records
    assert {record["decision"] for record in records if "decision" in record} == {"deny"}


async def test_a_tool_whose_form_no_model_takes_is_not_offered():
    listed = [
        {"name": "with space", "parameters": {}},
        {"name": "a" * 65, "parameters": {}},
        {"name": "array", "parameters": {"type": "array"}},
        {"name": "nothing", "parameters": None},
        {"name": "bare", "parameters": {}, "effect": "external"},
        {"name": "reads", "description": "Reads.", "parameters": {"type": "object"}, "effect": "read"},
        "no object",
    ]

    async def tools(_: Request) -> JSONResponse:
        return JSONResponse({"tools": listed})

    with serve(Starlette(routes=[Route("/v1/tools", tools)])) as url:
        async with HttpToolGateway(url, "key") as client:
            bare, reads = await client.offered_schemas()
            names = await client.offered_tools()
    assert (bare.schema.name, bare.schema.parameters, bare.reads) == (
        "bare",
        {"type": "object", "properties": {}},
        False,
    )
    assert (reads.schema.name, reads.schema.description, reads.reads) == ("reads", "Reads.", True)
    assert {"with space", "reads"} <= names


async def test_what_a_session_refuses_at_present_is_told_with_the_tools():
    sessions: list[str | None] = []
    schema = {"type": "object", "properties": {}}

    async def tools(request: Request) -> JSONResponse:
        sessions.append(request.query_params.get("session_id"))
        if sessions[-1] == "unknown":
            return JSONResponse({"detail": "There is no such session.", "reason": "not_found"}, 404)
        refused = {"refused_now": True, "reason": "sink_label", "why": "It has read."} if sessions[-1] else {}
        return JSONResponse({"tools": [{"name": "web_search", "parameters": schema, **refused}]})

    with serve(Starlette(routes=[Route("/v1/tools", tools)])) as url:
        async with HttpToolGateway(url, "key") as client:
            found = [await client.offered_schemas(session) for session in ("a/b", "", "unknown")]
    assert [offered.refused_now for [offered] in found] == ["It has read.", "", ""]
    assert sessions == ["a/b", None, "unknown", None]


async def test_a_gateway_that_is_away_offers_nothing():
    async with HttpToolGateway("http://127.0.0.1:9", "key") as client:
        assert await client.offered_schemas() == ()
