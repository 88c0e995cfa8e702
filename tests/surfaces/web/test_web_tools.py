"""Reading with a tool and without the agent: what comes back, what is refused, and what stays hidden."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import anyio
import anyio.to_thread
import pytest
from running_web import RunningWeb

from sentinel_rag.contracts.handles import placeholder
from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.gateway.store import Scope
from sentinel_rag.surfaces.users import Account, Role
from sentinel_rag.surfaces.web import Connections, Gateway
from sentinel_rag.surfaces.web._clients import AT_ONCE, LASTS_S, Looks
from sentinel_rag_testing.fake_tool_server import Answers, Fails, FakeToolServer, Waits
from waiting import WAIT_S

READ = "/tools/read_alert"
HIDDEN = "powershell -enc SECRET admin"


@pytest.fixture
def tool(web: RunningWeb) -> Iterator[FakeToolServer]:
    """The tool server, which answers as ever behind the test."""
    yield web.gateway.executor
    web.gateway.executor.on("read_alert", Answers({"rows": [{"Host": "ws-01", "CommandLine": HIDDEN}], "total": 1}))


def looked_in(web: RunningWeb) -> tuple[str, str]:
    """Session and key of the newest call."""
    [*_, last] = [each for each in web.gateway.records() if each["kind"] == "intent"]
    return str(last["session_id"]), str(last["key_id"])


@pytest.mark.requirement("SURF-4")
def test_a_person_reads_with_a_tool_in_a_session_of_their_own(web: RunningWeb) -> None:
    dana = web.person("dana-tools")
    conversation = dana.ask("call read_alert")["session_id"]
    first = dana.post(READ, {"arguments": {}})
    assert first.status == 200, first.content
    [row] = first.body["result"]["rows"]
    assert row == {"Host": "ws-01", "CommandLine": HIDDEN}
    session, key = looked_in(web)
    assert (session == conversation, key) == (False, web.accounts["dana-tools"].key_id)
    assert web.gateway.records()[-1]["kind"] == "handles_resolved"  # and what was shown is on record
    assert dana.post(READ, {}).body["audit_id"] != first.body["audit_id"]
    assert looked_in(web) == (session, key)
    assert web.person("erin-tools").post(READ, {}).status == 200
    assert looked_in(web)[0] != session


@pytest.mark.requirement("TAINT-3")
def test_a_hidden_value_stays_a_placeholder_for_whom_it_is_not(web: RunningWeb, tool: FakeToolServer) -> None:
    low = web.browser("low-tools", clearance=Sensitivity.LOW)
    forged = placeholder("r1#/rows/0/CommandLine")
    tool.on("read_alert", Answers({"rows": [{"Host": forged, "CommandLine": HIDDEN}]}))
    [row] = low.post(READ, {}).body["result"]["rows"]
    assert row == {"Host": forged, "CommandLine": placeholder("r1#/rows/0/CommandLine")}
    # A text that only looks like a placeholder is not filled in, for nobody.
    [row] = web.person("dana-tools").post(READ, {}).body["result"]["rows"]
    assert (row["Host"], row["CommandLine"]) == (forged, HIDDEN)


def test_only_what_reads_is_listed_and_run(web: RunningWeb) -> None:
    dana = web.person("dana-tools")
    assert [tool["name"] for tool in dana.get("/tools").body["tools"]] == ["read_alert", "read_sealed"]
    before = len(web.gateway.executor.calls)
    for changing in ("isolate", "forbidden"):
        answer = dana.post(f"/tools/{changing}", {"arguments": {}})
        assert (answer.status, answer.body["reason"]) == (403, "missing_scope")
        assert "only read" in answer.body["next_step"]
    unknown = dana.post("/tools/no_such_tool", {})
    assert (unknown.status, unknown.body["reason"]) == (403, "unknown_tool")
    assert unknown.body["detail"] == "There is no tool no_such_tool here."
    assert unknown.body["next_step"] == "GET /tools lists those that there are."
    wrong = dana.post(READ, {"arguments": {"limit": 5}})
    assert (wrong.status, wrong.body["reason"]) == (422, "invalid_argument")
    assert dana.post(READ, {"arguments": []}).body["reason"] == "malformed"
    assert len(web.gateway.executor.calls) == before


def test_a_tool_that_fails_is_told_with_what_to_do(web: RunningWeb, tool: FakeToolServer) -> None:
    dana = web.person("dana-tools")
    for code, status, reason in (
        (QueryErrorCode.UNAVAILABLE, 503, "upstream_failed"),
        (QueryErrorCode.TIMEOUT, 503, "upstream_timeout"),
        (QueryErrorCode.THROTTLED, 429, "rate_limited"),
    ):
        tool.on("read_alert", Fails(QueryError(code=code, message="It does not answer.", next_step="Ask for less.")))
        answer = dana.post(READ, {})
        assert (answer.status, answer.body["reason"]) == (status, reason)
        assert int(answer.headers["retry-after"]) >= 1
        assert answer.body["next_step"]


def test_looking_goes_on_in_another_session_when_the_first_one_is_closed(web: RunningWeb) -> None:
    dana = web.person("dana-closed")
    assert dana.post(READ, {}).status == 200
    session, _ = looked_in(web)
    key = web.web.people.gateway_key(web.accounts["dana-closed"].user_id)
    assert web.gateway.request("DELETE", f"/v1/sessions/{session}", key=key).status == 204
    assert dana.post(READ, {}).status == 200
    assert looked_in(web)[0] != session


@pytest.mark.requirement("APPR-1")
def test_a_look_that_needs_an_approval_is_decided_by_another_person(web: RunningWeb) -> None:
    both, finn = web.person("both-tools", Role.ANALYST, Role.APPROVER), web.person("finn-tools", Role.APPROVER)
    asked = both.post("/tools/read_sealed", {})
    assert (asked.status, asked.body["reason"]) == (403, "approval_required")
    [waiting] = both.get("/approvals?state=pending").body["approvals"]
    assert waiting["approval_id"] in asked.body["next_step"]
    assert (waiting["own"], waiting["may_decide"], waiting["reader"]) == (True, False, "both-tools")
    path = f"/approvals/{waiting['approval_id']}/decision"
    own = both.post(path, {"decision": "approve"}).body
    assert (own["reason"], own["detail"].partition(",")[0]) == ("own_approval", "You asked for this yourself")
    waiting_for_agent = both.ask('call isolate {"host": "ws-01"}')["answer"].split()[-1]
    assert finn.get(f"/approvals/{waiting_for_agent}").body["reader"] is None
    assert finn.post(path, {"decision": "approve"}).body["state"] == "approved"
    assert both.post("/tools/read_sealed", {}).status == 200
    assert both.post("/tools/read_sealed", {}).body["reason"] == "approval_required"


@pytest.mark.anyio
async def test_a_look_moves_to_another_session_after_a_while_and_with_another_key(web: RunningWeb) -> None:
    web.person("hana-tools")
    account = web.accounts["hana-tools"]
    key = web.web.people.gateway_key(account.user_id)
    assert key is not None
    connections, now = Connections(), [0.0]
    looks = Looks(Gateway(web.gateway.url, connections), lambda: now[0])

    async def session(of: Account, with_key: str) -> str:
        await looks.look(of, with_key, "read_alert", {})
        return looked_in(web)[0]

    try:
        first = await session(account, key)
        now[0] = LASTS_S - 1
        assert await session(account, key) == first
        now[0] = LASTS_S
        second = await session(account, key)
        assert second != first
        ended = [each for each in web.gateway.records() if each["kind"] == "session" and each["session_id"] == first]
        assert [each["change"] for each in ended] == ["opened", "closed"]
        other, info = web.gateway.state.keys.create([Scope.USER], name="hana anew")
        assert await session(replace(account, key_id=info.key_id), other) != second
        assert looked_in(web)[1] == info.key_id
    finally:
        await connections.aclose()


@pytest.mark.anyio
async def test_one_person_reads_six_at_once_and_leaves_the_other_places_to_others(
    web: RunningWeb, tool: FakeToolServer
) -> None:
    for name in ("ines-tools", "jona-tools"):
        web.person(name)
    connections, release = Connections(), threading.Event()
    looks = Looks(Gateway(web.gateway.url, connections), lambda: 0.0)
    tool.on("read_alert", Waits(release, {"rows": []}))
    while tool.arrived.acquire(blocking=False):
        pass  # of the tests before
    ines, jona = web.accounts["ines-tools"], web.accounts["jona-tools"]
    keys = {each.user_id: str(web.web.people.gateway_key(each.user_id)) for each in (ines, jona)}
    try:
        async with anyio.create_task_group() as readings:
            for account in [ines] * 8 + [jona]:
                readings.start_soon(looks.look, account, keys[account.user_id], "read_alert", {})
            for _ in range(AT_ONCE + 1):
                assert await anyio.to_thread.run_sync(tool.arrived.acquire, True, WAIT_S)
            assert (looks.running(ines.user_id), looks.running(jona.user_id)) == ((AT_ONCE, 2), (1, 0))
            release.set()
        assert looks.running(ines.user_id) is None
    finally:
        release.set()
        await connections.aclose()
