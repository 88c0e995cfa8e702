"""Attacker controls: a tool server's program, that is all it writes, when it dies, and what it starts.

Wanted: a gateway that hangs or grows, a call that runs twice, an answer given to another call, the state of one user
shown to another, a process that outlives the gateway, a credential in a result or a log. Each misdeed ends in a typed
error inside the deadline, the journal has its outcome, and the next call gets a fresh process.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.gateway.request_body import CanonicalArguments
from sentinel_rag.gateway.upstream import (
    Launch,
    McpStdioUpstream,
    Returned,
    Unanswered,
    UpstreamCall,
    UpstreamReply,
    mcp_stdio,
)
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import running_gateway
from waiting import WAIT_S

SCRIPT = Path(__file__).with_name("hostile_stdio_server.py")


class Server:
    """The hostile server behind our client, and what it was sent."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.diary = folder / "diary.jsonl"
        environment = options.pop("environment", {})
        command = (sys.executable, "-I", "-S", str(SCRIPT), str(self.diary))
        self.upstream = McpStdioUpstream(Launch(command, environment, folder / "work"), name="hostile", **options)

    async def call(
        self, tool: str, *, principal: str = "key", session: str = "one", timeout_s: float = 30, **arguments: Any
    ) -> UpstreamReply:
        canonical = CanonicalArguments.of(arguments)
        return await self.upstream.call(
            UpstreamCall(tool=tool, arguments=canonical, principal=principal, session_id=session, timeout_s=timeout_s)
        )

    async def value(self, tool: str, **options: Any) -> Any:
        reply = await self.call(tool, **options)
        assert isinstance(reply, Returned), reply
        return reply.value

    async def process(self, **options: Any) -> int:
        return (await self.value("fine", **options))["process"]

    def sent(self, method: str) -> list[dict[str, Any]]:
        lines = self.diary.read_text().splitlines() if self.diary.exists() else []
        return [message for message in map(json.loads, lines) if message["method"] == method]


@asynccontextmanager
async def hostile(folder: Path, **options: Any) -> AsyncIterator[Server]:
    server = Server(folder, **options)
    try:
        yield server
    finally:
        await server.upstream.aclose()


MISDEEDS = {
    "die": (Reason.UPSTREAM_FAILED, "ended during the call"),
    "half": (Reason.UPSTREAM_FAILED, "ended during the call"),
    "not_json": (Reason.UPSTREAM_FAILED, "not JSON"),
    "flood": (Reason.UPSTREAM_FAILED, "other than MCP"),
    "no_end": (Reason.TOO_LARGE, "larger than"),
    "large": (Reason.TOO_LARGE, "larger than"),
    "hang": (Reason.UPSTREAM_TIMEOUT, "did not answer within"),
}


@pytest.mark.anyio
@pytest.mark.requirement("GATE-4")
@pytest.mark.parametrize("misdeed", MISDEEDS)
async def test_each_misdeed_is_a_typed_error_and_the_next_call_gets_a_fresh_process(
    tmp_path: Path, misdeed: str
) -> None:
    reason, words = MISDEEDS[misdeed]
    async with hostile(tmp_path, max_result_bytes=1_000_000) as server:
        first = await server.process()
        deadline = 1 if misdeed == "hang" else WAIT_S
        reply = await server.call(misdeed, timeout_s=deadline, size=1_000_000)
        assert isinstance(reply, Unanswered)
        assert (reply.reason, reply.may_have_run) == (reason, True)
        assert words in reply.error.message
        assert await server.process() != first
        assert len([call for call in server.sent("tools/call") if call["params"]["name"] == misdeed]) == 1


@pytest.mark.anyio
async def test_a_program_that_cannot_be_started_or_ends_at_once_was_never_sent_the_call(tmp_path: Path) -> None:
    for command in ([str(tmp_path / "none-such")], [str(SCRIPT)], [sys.executable, "-c", "raise SystemExit(3)"]):
        upstream = McpStdioUpstream(Launch(tuple(command), {}, tmp_path))
        reply = await upstream.call(
            UpstreamCall(
                tool="fine", arguments=CanonicalArguments.of({}), principal="key", session_id="one", timeout_s=WAIT_S
            )
        )
        assert isinstance(reply, Unanswered)
        assert (reply.reason, reply.may_have_run) == (Reason.UPSTREAM_FAILED, False)
        with pytest.raises(UnavailableError):
            await upstream.list_tools(timeout_s=WAIT_S)
        await upstream.aclose()


@pytest.mark.anyio
async def test_banners_and_forgotten_prints_do_not_hurt_and_a_last_word_is_heard(tmp_path: Path) -> None:
    async with hostile(tmp_path) as server:
        assert await server.value("chatter") == {"after": "chatter"}
        assert await server.value("answer_and_die") == {"last": "word"}
        unreadable = await server.call("unreadable", session="two")
        assert isinstance(unreadable, Unanswered)
        assert "-32700" in unreadable.error.message


@pytest.mark.anyio
async def test_an_answer_reaches_its_own_call_only(tmp_path: Path) -> None:
    async with hostile(tmp_path) as server:
        assert await server.value("others") == {"whose": "mine"}
        answers: dict[str, Any] = {}

        async def hold(text: str) -> None:
            answers[text] = await server.value("hold", text=text)

        async with anyio.create_task_group() as group:
            for text in ("a", "b", "c"):
                group.start_soon(hold, text)
            while len(server.sent("tools/call")) < 4:
                await anyio.sleep(0.005)
            await server.value("release")
        assert answers == {text: {"said": text} for text in ("a", "b", "c")}


@pytest.mark.anyio
async def test_giving_up_one_call_tells_the_server_and_harms_no_other(tmp_path: Path) -> None:
    async with hostile(tmp_path) as server:
        first = await server.process()
        async with anyio.create_task_group() as group:
            kept: list[Any] = []

            async def keep() -> None:
                kept.append(await server.value("hold", text="kept"))

            group.start_soon(keep)
            while len(server.sent("tools/call")) < 2:
                await anyio.sleep(0.005)
            late = await server.call("ignore", timeout_s=0.5)
            assert isinstance(late, Unanswered)
            assert late.reason is Reason.UPSTREAM_TIMEOUT
            # It answers a ping, so it does not hang: the same process, and all that it remembers, serves on.
            assert await server.process() == first
            await server.value("release")
        assert kept == [{"said": "kept"}]
        ignored = next(call for call in server.sent("tools/call") if call["params"]["name"] == "ignore")
        assert [note["params"]["requestId"] for note in server.sent("notifications/cancelled")] == [ignored["id"]]


@pytest.mark.anyio
async def test_a_caller_that_leaves_is_reported_and_harms_no_other(tmp_path: Path) -> None:
    async with hostile(tmp_path) as server:
        first = await server.process()
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: server.call("hold", text="left"))
            while len(server.sent("tools/call")) < 2:
                await anyio.sleep(0.005)
            group.cancel_scope.cancel()
        assert await server.process() == first
        assert len(server.sent("notifications/cancelled")) == 1


@pytest.mark.anyio
async def test_no_process_serves_two_principals_or_two_sessions(tmp_path: Path) -> None:
    async with hostile(tmp_path) as server:
        owners = [("anna", "one"), ("anna", "two"), ("ben", "one"), ("ben", "two")]
        seen = [await server.process(principal=principal, session=session) for principal, session in owners]
        assert len(set(seen)) == 4
        again = [await server.process(principal=principal, session=session) for principal, session in owners]
        assert again == seen
        await server.upstream.end_session(principal="anna", session_id="one")
        assert await server.process(principal="anna", session="one") not in seen
        assert await server.process(principal="ben", session="one") == seen[2]


@pytest.mark.anyio
async def test_a_server_declared_to_be_without_state_is_one_process(tmp_path: Path) -> None:
    async with hostile(tmp_path, shared=True) as server:
        seen = {await server.process(principal=who, session=which) for who in ("anna", "ben") for which in "ab"}
        assert len(seen) == 1
        await server.upstream.end_session(principal="anna", session_id="a")
        assert {await server.process()} == seen


@pytest.mark.anyio
async def test_sessions_cannot_start_processes_without_end(tmp_path: Path) -> None:
    async with hostile(tmp_path, max_children=2) as server:
        async with anyio.create_task_group() as group:
            for session in ("busy one", "busy two"):
                group.start_soon(lambda name: server.call("hold", session=name, text=""), session)
            while len(server.sent("tools/call")) < 2:
                await anyio.sleep(0.005)
            refused = await server.call("fine", session="three")
            assert isinstance(refused, Unanswered)
            assert (refused.reason, refused.may_have_run) == (Reason.OVERLOADED, False)
            for session in ("busy one", "busy two"):
                await server.value("release", session=session)
        assert await server.process(session="three") == await server.process(session="three")


@pytest.mark.anyio
async def test_an_idle_process_ends_by_itself(tmp_path: Path) -> None:
    async with hostile(tmp_path, idle_s=0.01) as server:
        first = await server.process()
        while _lives(first):
            await anyio.sleep(0.01)
        assert await server.process() != first


@pytest.mark.anyio
async def test_a_process_that_will_not_end_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    async with hostile(tmp_path) as server:
        stubborn = (await server.value("stay"))["processes"]
        assert all(map(_lives, stubborn))
    while any(map(_lives, stubborn)):  # the grandchild's end is its new parent's to notice
        await anyio.sleep(0.01)


async def _begun(server: Server, go: Path) -> set[int]:
    """The process that waits for `go`, once it does. Whoever waited for it has left."""
    while not (begun := {int(path.suffix[1:]) for path in go.parent.glob(f"{go.name}.*")}):
        assert isinstance(await server.call("fine", timeout_s=0.2), Unanswered)
    return begun


@pytest.mark.anyio
async def test_a_program_that_starts_slowly_is_started_once_for_all_who_cannot_wait(tmp_path: Path) -> None:
    """One that was begun anew for each caller would never serve on a machine that is busy enough."""
    go = tmp_path / "go"
    async with hostile(tmp_path, environment={"WAIT_FOR": str(go)}, shared=True) as server:
        begun = await _begun(server, go)
        with pytest.raises(UnavailableError, match="did not answer in time"):
            await server.upstream.list_tools(timeout_s=0.05)
        refused = await server.call("fine", timeout_s=0.05)
        assert isinstance(refused, Unanswered)
        assert (refused.reason, refused.may_have_run) == (Reason.UPSTREAM_TIMEOUT, False)
        go.touch()
        assert [tool.name for tool in await server.upstream.list_tools(timeout_s=WAIT_S)] == ["fine", "change", "die"]
        assert await server.process(timeout_s=WAIT_S) in begun
        assert [len(server.sent(method)) for method in ("server/discover", "initialize", "tools/call")] == [1, 1, 1]


@pytest.mark.anyio
async def test_a_server_that_is_silent_to_what_it_does_not_know_serves_those_who_wait_less_than_the_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_stdio, "PROBE_S", 0.5)
    async with hostile(tmp_path, environment={"DEAF": "yes"}) as server:
        with anyio.fail_after(WAIT_S):
            while True:
                try:
                    tools = await server.upstream.list_tools(timeout_s=0.3)
                except UnavailableError:
                    continue
                break
    assert [tool.name for tool in tools] == ["fine", "change", "die"]


ENDS = ["the session ends", "another needs its place", "it takes too long", "the gateway stops"]


@pytest.mark.anyio
@pytest.mark.parametrize("end", ENDS)
async def test_a_start_that_nobody_waits_for_takes_no_place(
    tmp_path: Path, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = tmp_path / "go"
    async with hostile(tmp_path, environment={"WAIT_FOR": str(go)}, max_children=1) as server:
        begun = await _begun(server, go)
        assert all(map(_lives, begun))
        if end == "the session ends":
            await server.upstream.end_session(principal="key", session_id="one")
        elif end == "another needs its place":
            go.touch()
            assert await server.process(session="two", timeout_s=WAIT_S) not in begun
        elif end == "it takes too long":
            monkeypatch.setattr(mcp_stdio, "START_S", 0.0)
            assert isinstance(await server.call("fine", timeout_s=0.05), Unanswered)
        else:
            await server.upstream.aclose()
        with anyio.fail_after(WAIT_S):
            while any(map(_lives, begun)):
                await anyio.sleep(0.01)


GATEWAY = """
import asyncio, json, sys
from pathlib import Path
from sentinel_rag.gateway.request_body import CanonicalArguments
from sentinel_rag.gateway.upstream import Launch, McpStdioUpstream, UpstreamCall

async def main():
    upstream = McpStdioUpstream(Launch(tuple(sys.argv[2:]), {}, Path(sys.argv[1])))
    nothing = CanonicalArguments.of({})
    asked = UpstreamCall(tool="stay", arguments=nothing, principal="key", session_id="one", timeout_s=30)
    reply = await upstream.call(asked)
    print(json.dumps(reply.value["processes"]), flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_kill_9_of_the_gateway_ends_its_tool_servers(tmp_path: Path) -> None:
    server = [sys.executable, "-I", "-S", str(SCRIPT), str(tmp_path / "diary")]
    gateway = subprocess.Popen([sys.executable, "-c", GATEWAY, str(tmp_path), *server], stdout=subprocess.PIPE)
    assert gateway.stdout is not None
    with gateway, gateway.stdout:
        left = json.loads(gateway.stdout.readline())
        assert all(map(_lives, left))
        gateway.send_signal(signal.SIGKILL)
    while any(map(_lives, left)):
        time.sleep(0.005)


@pytest.mark.anyio
async def test_a_process_sees_what_it_was_given_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENTINEL_API_KEY", "not-for-tool-servers")
    async with hostile(tmp_path, environment={"PATH": "/usr/bin", "GIVEN": "yes"}) as server:
        seen = await server.value("where")
        seen["environment"].pop("LC_CTYPE", None)  # CPython sets it for itself
        assert seen["environment"] == {"PATH": "/usr/bin", "GIVEN": "yes"}
        assert seen["folder"] == str(tmp_path / "work")
        assert seen["group"] != os.getpgid(0)


@pytest.mark.anyio
async def test_a_credential_comes_back_in_no_result_and_no_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = 'canary-"quoted"-1234'
    caplog.set_level(logging.INFO)
    async with hostile(tmp_path, environment={"TOKEN": secret}, secrets=[secret]) as server:
        assert await server.value("tell") == "[credential]"
        where = await server.value("where")
        assert where["environment"]["TOKEN"] == "[credential]"
        while "the token is [credential]" not in caplog.text:
            await asyncio.sleep(0.005)
    assert "canary" not in caplog.text
    assert secret not in repr(server.upstream.__dict__)


@pytest.mark.anyio
async def test_a_server_cannot_fill_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with hostile(tmp_path) as server:
        await server.value("shout")
        while "prints too much" not in caplog.text:
            await asyncio.sleep(0.005)
    assert len(caplog.text) < 300_000


POLICY = """
tools:
  - {name: fine, server: stranger, effect: read, parameters: [{name: text, type: string}],
     taint_rules: [{rule_id: fine, condition: "true", taint_level: LOW}]}
  - {name: die, server: stranger, effect: write,
     taint_rules: [{rule_id: die, condition: "true", taint_level: LOW}]}
"""


def test_a_death_in_a_call_is_502_on_record_and_not_called_repeatable(executor: FakeToolServer, tmp_path: Path) -> None:
    server = Server(tmp_path)
    policy = parse_policy(POLICY)
    with running_gateway(policy, tmp_path / "state", executor, upstreams={"stranger": server.upstream}) as gateway:
        answer = gateway.call("die", {})
        assert (answer.status, answer.body["reason"]) == (502, "upstream_failed")
        assert (answer.body["error"]["code"], answer.body["error"]["retry_possible"]) == ("internal", False)
        intent, outcome = gateway.records()[-2:]
        assert (intent["kind"], outcome["kind"], outcome["status"]) == ("intent", "outcome", "error")
        assert intent["audit_id"] == outcome["audit_id"] == answer.body["audit_id"]
        assert gateway.call("fine", {"text": "00713"}).body["result"]["said"] == "00713"
        process = gateway.call("fine", {}).body["result"]["process"]
        assert gateway.request("DELETE", "/v1/sessions/session-1", key=gateway.key).status == 204
        while _lives(process):
            time.sleep(0.005)
    assert len([call for call in server.sent("tools/call") if call["params"]["name"] == "die"]) == 1


def _lives(process: int) -> bool:
    """False for a process that is gone, or waits only for its parent to take notice."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
