"""The zones are processes with borders: what each holds, and what happens when one is killed."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.app.run_state import RunFolder
from waiting import WAIT_S

PROC = Path("/proc")
needs_proc = pytest.mark.skipif(not PROC.is_dir(), reason="this platform has no /proc to look into")


SEARCH_KEY = "search-key-canary-0123456789"
SECRETS = {"SENTINEL_SEARCH_PROVIDER": "brave", "SENTINEL_SEARCH_API_KEY": SEARCH_KEY, "AZURE_CLIENT_SECRET": "canary"}


@pytest.fixture(scope="module")
def sample(generated: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The product over the sample estate with processes that are no forks, for what they hold and let others see."""
    own = replace(generated.copy(tmp_path_factory.mktemp("running") / "home"), settings=SECRETS, anew=True)
    with own.up():
        yield own


def post(url: str, path: str, body: object, headers: dict[str, str]) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=WAIT_S)
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json", **headers})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def execute(parts: dict[str, Any], key: str, tool: str, **arguments: Any) -> tuple[int, Any]:
    body = {"session_id": "e2e-session-1", "tool_name": tool, "args": arguments}
    return post(parts["interceptor"]["url"], "/v1/proxy-execute", body, {"X-API-Key": key})


@pytest.mark.requirement("SURF-2")
def test_status_names_every_part_with_url_and_state(sample: Any) -> None:
    status = sample.json("status")
    parts = [status["interceptor"], status["agent"], status["workspace"], *status["executors"].values()]
    assert [part["state"] for part in parts] == ["running"] * 7
    assert len({part["url"] for part in parts}) == 7
    assert len({part["pid"] for part in parts}) == 7


@needs_proc
def test_the_agents_process_has_no_way_to_the_data(sample: Any) -> None:
    status = sample.json("status")
    process = PROC / str(status["agent"]["pid"])
    environment = dict(entry.split("=", 1) for entry in (process / "environ").read_text().split("\0") if "=" in entry)
    assert set(environment) <= {"SENTINEL_URL", "SENTINEL_API_KEY", "LANG", "LC_ALL", "LC_CTYPE", "TZDIR"}
    assert environment["SENTINEL_URL"] == status["interceptor"]["url"]
    arguments = (process / "cmdline").read_text()
    known = " ".join((*environment.values(), arguments))
    assert status["workspace"]["url"] not in known
    assert not [executor for executor in status["executors"].values() if executor["url"] in known]
    assert "workspaces" not in known
    opened = [os.readlink(handle) for handle in (process / "fd").iterdir() if handle.exists()]
    home = str(sample.home)
    assert not [name for name in opened if name.startswith(home) and not name.endswith("/logs/agent.log")]
    loaded = (process / "maps").read_text()
    assert "duckdb" not in loaded


@needs_proc
@pytest.mark.requirement("APPR-1")
def test_the_agents_process_has_no_key_that_could_decide(sample: Any) -> None:
    zones = json.loads((sample.home / "run" / "zones.json").read_text())
    agent = next(zone for zone in zones["zones"] if zone["name"] == "agent")
    held = (PROC / str(agent["pid"]) / "environ").read_bytes()
    assert zones["keys"]["agent"].encode() in held
    assert zones["keys"]["approver"].encode() not in held


def test_the_agents_key_opens_nothing_but_the_interceptor(sample: Any) -> None:
    status = sample.json("status")
    key = sample.environment["SENTINEL_API_KEY"]
    bearer = {"Authorization": f"Bearer {key}", "X-API-Key": key}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    assert set(status["executors"]) == {"sentinel", "files", "web", "knowledge"}
    for executor in status["executors"].values():
        assert post(executor["url"], "/mcp", call, bearer)[0] in (401, 403)
    query = {"query": "SecurityAlert | count"}
    path = "/v1/workspaces/00000000-0000-0000-0000-000000000000/query"
    assert post(status["workspace"]["url"], path, query, bearer)[0] in (401, 403)
    assert post(status["workspace"]["url"], "/admin/query", {"kql": "SecurityAlert | count"}, bearer)[0] in (401, 403)
    assert post(status["agent"]["url"], "/chat", {"message": "hello"}, bearer)[0] == 401


@needs_proc
def test_the_executors_of_files_and_web_hold_nothing_of_the_others(sample: Any) -> None:
    for name, executor in sample.json("status")["executors"].items():
        process = PROC / str(executor["pid"])
        names = {entry.split("=", 1)[0] for entry in (process / "environ").read_text().split("\0") if entry}
        assert names <= {"LANG", "LC_ALL", "LC_CTYPE", "TZDIR"}, name
        assert SEARCH_KEY not in (process / "cmdline").read_text()
        if name != "sentinel":
            loaded = (process / "maps").read_text()
            assert "duckdb" not in loaded
            assert "pydantic" not in loaded  # the protocol's library waits for the first request


@pytest.mark.requirement("GATE-1")
def test_the_interceptor_allows_denies_and_asks_who_is_there(sample: Any) -> None:
    status = sample.json("status")
    key = sample.environment["SENTINEL_API_KEY"]
    code, body = execute(status, key, "query_incidents", limit=3)
    assert (code, body["status"]) == (200, "success")
    assert body["result"]["coverage"]["rows_returned"] == 3
    code, body = execute(status, key, "run_kql_query", template="raw_signins")
    assert code == 403
    assert body["detail"] == "Access denied by security policy. Taint level: HIGH"
    assert body["reason"] == "approval_required"
    denied = body["audit_id"]
    code, body = execute(status, key, "update_incident", incident="124", severity="Low")
    assert (code, body["reason"]) == (403, "approval_required")
    code, body = execute(status, key, "delete_incident", incident="1")
    assert (code, body["reason"]) == (403, "unknown_tool")
    code, body = execute(status, "sr_wrong_key_wrong_key_wrong_key_wrong", "query_incidents")
    assert (code, body["reason"]) == (401, "unauthenticated")
    records = sample.run("audit", "show", denied, "--json").stdout
    assert "raw_signins" in records
    assert "kql_raw_signins_needs_approval" in records


@pytest.fixture(scope="module")
def tables(generated: Any) -> Any:
    """What the sample estate holds."""
    return generated.json("workspace", "tables")


@pytest.mark.slow
@pytest.mark.parametrize(
    "victims", [("agent", "interceptor"), ("workspace", "executor-sentinel", "supervisor")], ids="-".join
)
def test_a_killed_zone_ends_all_and_loses_nothing(
    generated: Any, tables: Any, tmp_path: Path, victims: tuple[str, ...]
) -> None:
    """One after the other in one home: each start, and the question in it, comes after the kills before it."""
    generated = generated.copy(tmp_path / "home")
    for victim in victims:
        kill_while_it_answers(generated, victim)
        if victim == "interceptor":
            leave_a_reason(generated, tmp_path / "policy.yaml")
        with generated.start("up", "--json") as process:
            status = json.loads(process.stdout.readline())
            assert generated.run("ask", "how many incidents are there?").returncode == 0, f"before {victim} is killed"
            assert generated.json("workspace", "tables") == tables, f"before {victim} is killed"
            assert generated.json("audit", "verify")["intact"] is True, f"before {victim} is killed"
            if victim == "supervisor":
                process.kill()
                process.communicate()
            else:
                part = status["executors"]["sentinel"] if victim == "executor-sentinel" else status[victim]
                os.kill(part["pid"], signal.SIGKILL)
                output, errors = process.communicate(timeout=WAIT_S)
                assert process.returncode == 1, victim
                # Nor is the reason of an earlier run told again.
                assert "ended unexpectedly" in json.loads(output)["error"]["message"], victim
                assert errors == "", victim
        pids = [status[name]["pid"] for name in ("agent", "interceptor", "workspace")]
        pids.append(status["executors"]["sentinel"]["pid"])
        if victim == "supervisor":
            wait_until(lambda pids=pids: not [pid for pid in pids if is_alive(pid)])
            assert generated.json("status")["running"] is False
        assert not [pid for pid in pids if is_alive(pid)], victim
        assert generated.json("audit", "verify")["intact"] is True, victim
        assert generated.json("workspace", "tables") == tables, victim
    assert generated.run("ask", "how many incidents are there?").returncode == 0


def kill_while_it_answers(product: Any, victim: str) -> None:
    """A question with zones of its own, of which one is killed."""
    folder = RunFolder(product.home)
    with product.start("ask", "what is incident 124 about?") as process:
        wait_until(lambda: folder.read() is not None or process.poll() is not None)
        state = folder.read()
        assert state is not None, "the zones did not start"
        zone = state.zone(victim)
        os.kill(state.supervisor_pid if zone is None else zone.pid, signal.SIGKILL)
        _, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode in (0, 1, 5, -signal.SIGKILL)
    assert "Traceback" not in errors


def leave_a_reason(product: Any, policy: Path) -> None:
    """A run that does not start, and says why."""
    policy.write_text("tools:\n  - nam: x\n")
    broken = type(product)(product.home, {"SENTINEL_CONFIG": str(policy)})
    assert "policy.yaml" in broken.run("ask", "how many incidents?").stderr


def wait_until(condition: Any) -> None:
    """Poll an outside process's end; the test's own time-out bounds it."""
    import time

    while not condition():
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    try:
        state = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_a_port_in_use_is_one_sentence(sample: Any, tmp_path: Path) -> None:
    port = re.findall(r":(\d+)$", sample.json("status")["agent"]["url"])[0]
    other = type(sample)(tmp_path / "home", {})
    done = other.run("up", "--port", port)
    assert done.returncode == 1
    assert f"Port {port}" in done.stderr
    assert "Next:" in done.stderr
    assert "Traceback" not in done.stderr


def test_questions_asked_at_once_wait_for_each_other(generated: Any, tmp_path: Path) -> None:
    generated = generated.copy(tmp_path / "home")
    with ExitStack() as stack:
        asked = [stack.enter_context(generated.start("ask", "how many incidents are there?")) for _ in range(2)]
        answers = [process.communicate(timeout=WAIT_S)[0] for process in asked]
    assert [process.returncode for process in asked] == [0, 0]
    assert len({answer.splitlines()[0] for answer in answers}) == 1


@pytest.mark.parametrize("part", ["interceptor", "agent", "workspace", "executor"])
def test_a_body_that_claims_two_gigabytes_is_refused_at_once(sample: Any, part: str) -> None:
    status = sample.json("status")
    url = status["executors"]["sentinel"]["url"] if part == "executor" else status[part]["url"]
    state = RunFolder(sample.home).read()
    assert state is not None
    path, headers = {
        "interceptor": ("/v1/proxy-execute", {"X-API-Key": sample.environment["SENTINEL_API_KEY"]}),
        "agent": ("/chat", {"Authorization": f"Bearer {state.agent_token}"}),
        "workspace": ("/admin/import", {"Authorization": f"Bearer {state.workspace_token}"}),
        "executor": ("/mcp", {}),
    }[part]
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=WAIT_S)
    try:
        connection.putrequest("POST", path)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            connection.putheader(name, value)
        connection.putheader("Content-Length", str(2**31))
        connection.endheaders(b'{"message": "x"}')
        for _ in range(64):  # what fits into 4 MiB is over every limit
            connection.send(b" " * 65536)
        assert connection.getresponse().status in (401, 413)
    except (BrokenPipeError, ConnectionResetError):
        pass  # refused before all of it was sent
    finally:
        connection.close()
    assert sample.json("status")["running"]
