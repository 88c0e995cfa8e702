"""What a caller is offered: tools of the policy that are really served, cut to what the policy allows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway


def tool(name: str, properties: dict[str, Any], required: tuple[str, ...] = (), **more: Any) -> ToolSchema:
    return ToolSchema(
        name, f"The server's {name}.", {"type": "object", "properties": properties, "required": list(required), **more}
    )


def test_the_shipped_policy_offers_every_tool_of_the_contract(gateway: RunningGateway) -> None:
    answer = gateway.request("GET", "/v1/tools", key=gateway.key)
    assert answer.status == 200
    offered = {each["name"]: each for each in answer.body["tools"]}
    assert list(offered) == [each.name for each in SHIPPED_TOOLS]
    for schema in SHIPPED_TOOLS:
        found = offered[schema.name]
        assert {**found["parameters"], "required": found["parameters"].get("required", [])} == {
            **schema.parameters,
            "required": sorted(schema.required()),
        }
        assert (found["description"], tuple(found["aliases"])) == (schema.description, schema.aliases)
    assert answer.body["policy"] == gateway.request("GET", "/v1/tools", key=gateway.key).body["policy"]


def test_a_tool_is_withheld_if_policy_and_server_do_not_fit(tmp_path: Path) -> None:
    policy = parse_policy("""
tools:
  - {name: fits, parameters: [{name: a, type: string}]}
  - {name: narrower, parameters: [{name: a, type: integer, description: "Ours."}]}
  - {name: untyped, parameters: [{name: a, type: object}]}
  - {name: union, parameters: [{name: a, type: string}]}
  - {name: other_type, parameters: [{name: a, type: string}]}
  - {name: unknown_parameter, parameters: [{name: b, type: string}]}
  - {name: needs_more, parameters: [{name: a, type: string}]}
  - {name: not_served}
  - {name: elsewhere, server: other}
""")
    text = {"type": "string"}
    served = [
        tool("fits", {"a": {"$ref": "#/$defs/A", "type": "string"}}, ("a",), **{"$defs": {"A": text}}),
        tool("narrower", {"a": {"type": "number"}, "b": text}),
        tool("untyped", {"a": {}}),
        tool("union", {"a": {"anyOf": [{"type": "null"}, text]}}),
        tool("other_type", {"a": {"type": "integer"}}),
        tool("unknown_parameter", {"a": text}),
        tool("needs_more", {"a": text, "b": text}, ("b",)),
        tool("elsewhere", {}),
        tool("not_in_the_policy", {}),
    ]
    with FakeToolServer(served).running() as executor:
        from sentinel_rag.gateway.upstream import McpHttpUpstream

        upstreams = {"sentinel": McpHttpUpstream(executor.url)}
        with running_gateway(policy, tmp_path, executor, upstreams=upstreams) as gateway:
            offered = {
                each["name"]: each for each in gateway.request("GET", "/v1/tools", key=gateway.key).body["tools"]
            }
            assert set(offered) == {"fits", "narrower", "untyped", "union"}
            assert offered["fits"]["parameters"]["required"] == ["a"]
            assert offered["fits"]["parameters"]["$defs"] == {"A": text}
            assert offered["narrower"]["parameters"]["properties"] == {"a": {"type": "number", "description": "Ours."}}
            ready = gateway.request("GET", "/readyz")
            assert (ready.status, ready.body) == (
                503,
                {
                    "status": "not_ready",
                    "checks": {
                        "policy": "ok",
                        "journal": "ok",
                        "upstreams": "1 not reachable",
                        "tools": "5 not available",
                    },
                },
            )
            parts = {part: gateway.request("GET", f"/readyz?part={part}").status for part in ready.body["checks"]}
            assert parts == {"policy": 200, "journal": 200, "upstreams": 503, "tools": 503}, "calls go on without them"
            assert gateway.request("GET", "/readyz?part=disk").status == 422


def test_ready_and_healthy(gateway: RunningGateway) -> None:
    assert gateway.request("GET", "/healthz").body == {"status": "ok"}
    ready = gateway.request("GET", "/readyz")
    assert (ready.status, ready.body["status"]) == (200, "ready")
    assert gateway.executor.calls == []


def test_a_server_that_came_later_is_seen(gateway: RunningGateway) -> None:
    tools, gateway.executor.tools = gateway.executor.tools, ()
    assert gateway.request("GET", "/v1/tools", key=gateway.key).body["tools"] == []
    gateway.executor.tools = tools
    assert len(gateway.request("GET", "/v1/tools", key=gateway.key).body["tools"]) == len(SHIPPED_TOOLS)


def refusals(gateway: RunningGateway, session_id: str) -> dict[str, tuple[str, str]]:
    """The tools that a session refuses whatever is asked, each with its reason and why."""
    answer = gateway.request("GET", f"/v1/tools?session_id={session_id}", key=gateway.key)
    assert answer.status == 200
    assert [each["name"] for each in answer.body["tools"]] == [each.name for each in SHIPPED_TOOLS]
    assert all("why" not in each for each in answer.body["tools"] if each["refused_now"] is False)
    return {each["name"]: (each["reason"], each["why"]) for each in answer.body["tools"] if each["refused_now"]}


@pytest.mark.requirement("TAINT-4")
def test_a_session_tells_which_tools_it_refuses_whatever_is_asked(gateway: RunningGateway) -> None:
    session_id = gateway.open_session()
    assert refusals(gateway, session_id) == {}
    gateway.call("query_incidents", {}, session_id=session_id)
    # A page may still be fetched: one that is shipped, or any after a person has looked at the address.
    why = (
        "This session, or another one of this agent, has read what is MEDIUM and UNTRUSTED. Its argument query may "
        "carry at most what is LOW and UNTRUSTED, so every call is refused."
    )
    assert refusals(gateway, session_id) == {"web_search": ("sink_label", why)}
    assert gateway.call("web_search", {"query": "giant panda"}, session_id=session_id).body["reason"] == "sink_label"


@pytest.mark.requirement("TAINT-5")
def test_what_the_person_asks_to_look_up_keeps_the_tool_open(gateway: RunningGateway) -> None:
    session_id = gateway.open_session()
    gateway.call("query_incidents", {}, session_id=session_id)
    gateway.say(session_id, "search the web for giant pandas")
    assert refusals(gateway, session_id) == {}
    assert gateway.call("web_search", {"query": "giant pandas"}, session_id=session_id).status == 200


def test_what_the_key_has_seen_elsewhere_refuses_a_new_session_too(gateway: RunningGateway) -> None:
    gateway.call("query_incidents", {}, session_id="before")
    [(reason, why)] = refusals(gateway, gateway.open_session(key=gateway.key)).values()
    assert reason == "sink_label"
    assert why.startswith("This session, or another one of this agent, has read what is MEDIUM and UNTRUSTED.")


def test_a_closed_session_refuses_to_tell(gateway: RunningGateway) -> None:
    session_id = gateway.open_session(key=gateway.key)
    gateway.request("DELETE", f"/v1/sessions/{session_id}", key=gateway.key)
    answer = gateway.request("GET", f"/v1/tools?session_id={session_id}", key=gateway.key)
    assert (answer.status, answer.body["reason"]) == (409, "conflict")


@pytest.mark.parametrize("path", ["/v1/tools", "/readyz", "/healthz", "/v1/audit"])
def test_no_answer_is_kept_by_a_cache(gateway: RunningGateway, path: str) -> None:
    answer = gateway.request("GET", path, key=gateway.auditor if path == "/v1/audit" else gateway.key)
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-type"] == "application/json"
