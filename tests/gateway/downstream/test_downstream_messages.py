"""What goes over the wire at `/mcp`: messages, versions, sessions, and how each way of being wrong is answered."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.mcp_over_http import SESSIONS, STATELESS, RawMcp

from sentinel_rag.gateway.policy import Policy
from sentinel_rag.gateway.store import Scope
from sentinel_rag_testing.fake_tool_server import Answers, FakeToolServer, Waits
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway

pytestmark = pytest.mark.requirement("GATE-5")


@pytest.fixture
def modern(gateway: RunningGateway) -> RawMcp:
    return RawMcp(gateway.url, gateway.key)


@pytest.fixture
def opened(gateway: RunningGateway) -> RawMcp:
    return RawMcp(gateway.url, gateway.key, SESSIONS).initialized()


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_session_speaks_the_version_that_the_client_wants(gateway: RunningGateway, version: str) -> None:
    client = RawMcp(gateway.url, gateway.key, version).initialized()
    assert client.version == version
    assert client.request("ping", {}).body["result"] == {}
    assert client.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).status == 202
    assert len(client.request("tools/list", {}).body["result"]["tools"]) == 5


@pytest.mark.parametrize("version", ["2024-11-05", "2031-01-01", 7, None])
def test_a_version_that_is_not_served_gets_the_newest_with_sessions(gateway: RunningGateway, version: Any) -> None:
    client = RawMcp(gateway.url, gateway.key, SESSIONS)
    answer = client.request("initialize", {"protocolVersion": version, "capabilities": {}})
    assert answer.body["result"]["protocolVersion"] == SESSIONS
    assert answer.body["result"]["capabilities"] == {"tools": {}}


def test_without_sessions_the_versions_are_discovered(modern: RawMcp) -> None:
    result = modern.request("server/discover", {}).body["result"]
    assert result["supportedVersions"] == ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
    assert (result["resultType"], result["cacheScope"], result["ttlMs"]) == ("complete", "private", 0)


def test_the_session_of_a_client_is_one_of_its_key_and_ends_with_it(gateway: RunningGateway, opened: RawMcp) -> None:
    shown = gateway.request("GET", f"/v1/sessions/{opened.session_id}", key=gateway.key)
    assert (shown.status, shown.body["closed"]) == (200, False)
    assert opened.end().status == 204
    assert gateway.request("GET", f"/v1/sessions/{opened.session_id}", key=gateway.key).body["closed"] is True
    for again in (opened.request("ping", {}), opened.end()):
        assert again.status == 404
    assert opened.initialized().session_id != opened.session_id


@pytest.mark.parametrize("era", [SESSIONS, STATELESS])
def test_the_record_of_a_call_is_that_of_the_other_way_in(
    gateway: RunningGateway, executor: FakeToolServer, era: str
) -> None:
    """One path: what the journal says of a call does not tell on which way it came."""
    executor.on("look_up", Answers({"a": 1}))
    session = gateway.open_session(key=gateway.key)
    assert gateway.call("look_up", {"marker": "x"}, session_id=session).status == 200
    client = RawMcp(gateway.url, gateway.key, era)
    named = {"sentinel-rag/session": session}
    result = (client if era == STATELESS else client.initialized(**named)).call("look_up", {"marker": "x"}, **named)
    assert result["_meta"]["sentinel-rag/session"] == session
    intents = [r for r in gateway.records() if r["kind"] == "intent" and r["session_id"] == session]
    its_own = {"audit_id", "seq", "at", "previous", "context_before"}
    first, second = ({name: value for name, value in each.items() if name not in its_own} for each in intents)
    assert first == second


def test_requests_without_a_session_share_the_standing_one_of_their_key(
    gateway: RunningGateway, modern: RawMcp
) -> None:
    used = {modern.call("look_up", {})["_meta"]["sentinel-rag/session"] for _ in range(2)}
    other = RawMcp(gateway.url, gateway.state.keys.create([Scope.EXECUTE])[0])
    assert len(used) == 1
    assert other.call("look_up", {})["_meta"]["sentinel-rag/session"] not in used
    [standing] = used
    assert gateway.request("DELETE", f"/v1/sessions/{standing}", key=gateway.key).status == 204
    assert modern.call("look_up", {})["_meta"]["sentinel-rag/session"] not in used


def test_a_session_outlives_the_process_that_opened_it_with_its_label(
    policy: Policy, executor: FakeToolServer, tmp_path: Path
) -> None:
    with running_gateway(policy, tmp_path, executor) as first:
        client = RawMcp(first.url, first.key, SESSIONS, {"elicitation": {}}).initialized()
        assert client.call("look_up", {})["isError"] is False
    with running_gateway(policy, tmp_path, executor) as second:
        again = replace(client, url=second.url)
        assert again.call("send", {"marker": "x"})["structuredContent"]["reason"] == "sink_label"
        # What the client can show is forgotten with the process, so it is told of approvals in the result alone.
        assert again.call("change", {"marker": "after"})["structuredContent"]["reason"] == "approval_required"


WRONG: dict[str, tuple[Any, int, int]] = {
    "not JSON": (b"{", 400, -32700),
    "a key twice": (b'{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"ping"}', 400, -32700),
    "a batch": (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 400, -32700),
    "another JSON-RPC": ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, 400, -32600),
    "an id that is true": ({"jsonrpc": "2.0", "id": True, "method": "ping"}, 400, -32600),
    "an id that is null": ({"jsonrpc": "2.0", "id": None, "method": "ping"}, 400, -32600),
    "more than a message": ({"jsonrpc": "2.0", "id": 1, "method": "ping", "session_id": "x"}, 400, -32600),
    "neither result nor error": ({"jsonrpc": "2.0", "id": 1}, 400, -32600),
    "params that are a list": ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}, 400, -32602),
    "meta that is a text": ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": "x"}}, 400, -32602),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_body_that_is_no_message_is_refused_and_on_record(gateway: RunningGateway, opened: RawMcp, name: str) -> None:
    message, status, code = WRONG[name]
    answer = opened.post(message)
    assert (answer.status, answer.body["error"]["code"]) == (status, code)
    data = answer.body["error"]["data"]
    record = gateway.last_record()
    assert (record["audit_id"], record["kind"], record["reason"]) == (data["audit_id"], "refusal", "malformed_body")


HEADERS: dict[str, tuple[dict[str, str], dict[str, Any], int]] = {
    "another version": ({"Mcp-Protocol-Version": SESSIONS}, {}, -32020),
    "no version": ({"Mcp-Protocol-Version": ""}, {}, -32020),
    "another method": ({"Mcp-Method": "tools/list"}, {}, -32020),
    "no method": ({"Mcp-Method": ""}, {}, -32020),
    "another tool": ({"Mcp-Name": "change"}, {}, -32020),
    "no tool": ({"Mcp-Name": ""}, {}, -32020),
    "a tool wrapped in a wrong way": ({"Mcp-Name": "=?base64?bG9va191cB==?="}, {}, -32020),
    "a version that nobody serves": (
        {"Mcp-Protocol-Version": "2030-01-01"},
        {"io.modelcontextprotocol/protocolVersion": "2030-01-01"},
        -32022,
    ),
}


@pytest.mark.parametrize("name", HEADERS)
def test_headers_that_say_something_else_than_the_body_are_refused(
    modern: RawMcp, executor: FakeToolServer, name: str
) -> None:
    headers, meta, code = HEADERS[name]
    before = len(executor.calls)
    answer = replace(modern, headers=headers).request("tools/call", {"name": "look_up", "arguments": {}, "_meta": meta})
    assert (answer.status, answer.body["error"]["code"]) == (400, code)
    assert len(executor.calls) == before
    for right in ("=?base64?bG9va191cA==?=", "  look_up \t"):
        assert replace(modern, headers={"Mcp-Name": right}).call("look_up", {})["isError"] is False


def test_what_an_era_does_not_have_is_no_method(opened: RawMcp, modern: RawMcp) -> None:
    for method in ("server/discover", "resources/list", "logging/setLevel", "completion/complete", "x"):
        answer = opened.request(method, {})
        assert (answer.status, answer.body["error"]["code"]) == (200, -32601)
    for method in ("ping", "prompts/list", "subscriptions/listen", "initialize"):
        answer = modern.request(method, {})
        assert (answer.status, answer.body["error"]["code"]) == (404, -32601)


@pytest.mark.parametrize(
    "params",
    [{}, {"name": 7}, {"name": ""}, {"name": "x" * 300}, {"name": "look_up", "arguments": []}],
    ids=["no name", "a number", "empty", "long", "arguments that are a list"],
)
def test_a_call_that_is_none_is_refused_and_on_record(
    gateway: RunningGateway, opened: RawMcp, modern: RawMcp, params: dict[str, Any]
) -> None:
    named = {"Mcp-Name": str(params.get("name", ""))} if not isinstance(params.get("name"), str) else {}
    for client, status in ((opened, 200), (replace(modern, headers=named), 400)):
        answer = client.request("tools/call", params)
        assert (answer.status, answer.body["error"]["code"]) in ((status, -32602), (400, -32020))
        assert gateway.last_record()["reason"] == "malformed_body"


def test_an_answer_in_a_form_that_is_not_accepted_is_406(modern: RawMcp) -> None:
    wanted = replace(modern, headers={"Accept": "text/html"})
    assert wanted.request("tools/list", {}).status == 406
    plain = replace(modern, headers={"Accept": "application/json"})
    assert plain.request("tools/list", {}).status == 200


def test_who_asks_for_progress_hears_that_the_call_runs_and_then_its_result(
    opened: RawMcp, executor: FakeToolServer
) -> None:
    release = threading.Event()
    executor.on("look_up", Waits(release, {"done": True}))
    message = opened.message("tools/call", {"name": "look_up", "_meta": {"progressToken": "t-1"}}, request_id="c-1")
    with opened.streamed(message) as events:
        told = [next(events), next(events)]
        release.set()
        rest = list(events)
    assert [each["method"] for each in told] == ["notifications/progress"] * 2
    assert [each["params"]["progressToken"] for each in told] == ["t-1"] * 2
    assert told[0]["params"]["progress"] < told[1]["params"]["progress"]
    assert told[0]["params"]["message"] == "The tool runs."  # the gateway's words: the server's are data
    assert (rest[-1]["id"], rest[-1]["result"]["structuredContent"]) == ("c-1", {"done": True})


def test_a_cancelled_call_that_reads_is_stopped_and_on_record(
    gateway: RunningGateway, opened: RawMcp, executor: FakeToolServer
) -> None:
    release = threading.Event()
    executor.on("look_up", Waits(release))
    message = opened.message("tools/call", {"name": "look_up", "_meta": {"progressToken": 1}}, request_id=77)
    try:
        with opened.streamed(message) as events:
            next(events)
            same = opened.post(message)
            assert (same.status, same.body["error"]["code"]) == (400, -32600)  # one id, one call
            for other in ("77", 78):  # a text is no number, and nobody else's call ends
                cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": other}}
                assert opened.post(cancel).status == 202
            next(events)
            assert opened.post({**cancel, "params": {"requestId": 77}}).status == 202
            [last] = [event for event in events if "result" in event]
    finally:
        release.set()
    assert last["result"]["structuredContent"]["reason"] == "caller_left"
    assert gateway.last_record()["reason"] == "caller_left"


def test_who_closes_the_stream_does_not_wait_any_more(
    gateway: RunningGateway, modern: RawMcp, executor: FakeToolServer
) -> None:
    release = threading.Event()
    executor.on("look_up", Waits(release))
    message = modern.message("tools/call", {"name": "look_up", "_meta": {"progressToken": 1}})
    try:
        with modern.streamed(message) as events:
            next(events)
        executor.on("look_up", Answers({}))
        while gateway.last_record().get("reason") != "caller_left":
            modern.request("tools/list", {})
    finally:
        release.set()


def test_no_document_leads_a_client_to_an_authorization_server_that_there_is_not(gateway: RunningGateway) -> None:
    for path in ("oauth-protected-resource/mcp", "oauth-protected-resource", "oauth-authorization-server"):
        assert gateway.request("GET", f"/.well-known/{path}").status == 404


@pytest.mark.parametrize("version", [SESSIONS, STATELESS])
def test_the_address_may_end_in_a_slash(gateway: RunningGateway, version: str) -> None:
    client = RawMcp(gateway.url, gateway.key, version, path="/mcp/")
    if version == SESSIONS:
        client = client.initialized()
    assert len(client.request("tools/list", {}).body["result"]["tools"]) == 5


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT"])
def test_a_stream_that_is_not_offered_is_405_and_not_a_missing_address(gateway: RunningGateway, method: str) -> None:
    answer = gateway.request(method, "/mcp", key=gateway.key, headers={"Accept": "text/event-stream"})
    assert (answer.status, answer.headers["allow"]) == (405, "DELETE, POST")


def test_two_sessions_in_one_request_are_told(gateway: RunningGateway, opened: RawMcp) -> None:
    other = RawMcp(gateway.url, gateway.key, SESSIONS).initialized().session_id
    call = {"name": "list_tables", "arguments": {}}
    before = len(gateway.executor.calls)
    for client in (opened, RawMcp(gateway.url, gateway.key, headers={"Mcp-Session-Id": str(opened.session_id)})):
        answer = client.request("tools/call", {**call, "_meta": {"sentinel-rag/session": other}})
        assert answer.body["error"]["code"] == -32602
        assert "two sessions" in answer.body["error"]["message"]
        record = gateway.last_record()
        assert (record["kind"], record["audit_id"]) == ("refusal", answer.body["error"]["data"]["audit_id"])
    assert len(gateway.executor.calls) == before
    same = opened.request("tools/call", {**call, "_meta": {"sentinel-rag/session": opened.session_id}})
    assert same.body["result"]["_meta"]["sentinel-rag/session"] == opened.session_id


def test_who_has_no_key_is_told_what_it_lacks(gateway: RunningGateway) -> None:
    nobody = gateway.request("POST", "/mcp", body=b"{}")
    assert (nobody.status, nobody.headers["www-authenticate"]) == (401, 'Bearer scope="execute"')
    wrong = gateway.request("POST", "/mcp", body=b"{}", headers={"Authorization": "Bearer sr_x_y"})
    assert wrong.headers["www-authenticate"].startswith('Bearer error="invalid_token", ')
    auditor = gateway.request("POST", "/mcp", body=b"{}", key=gateway.auditor)
    assert auditor.status == 403
    assert auditor.headers["www-authenticate"].startswith('Bearer error="insufficient_scope", ')
