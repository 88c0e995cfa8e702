"""Past incidents of the served workspace into the store: with real processes, by command, in a chat, after Ctrl-C."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from sentinel_rag.app.run_state import RunFolder
from sentinel_rag.workspace.sample.options import EstateOptions
from sentinel_rag.workspace.server import EMBEDDED_RESOURCE_ID, create_app
from sentinel_rag.workspace.workspace import Workspace
from sentinel_rag_testing.loopback import serve
from waiting import WAIT_S

pytestmark = pytest.mark.requirement("KNOW-2")
PROC = Path("/proc")


@pytest.fixture(scope="module")
def running(generated: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The product over the sample estate in a home of its own, whose knowledge these tests fill."""
    product = generated.copy(tmp_path_factory.mktemp("ingest") / "home")
    product.settings["SENTINEL_EMBEDDINGS"] = "none"
    with product.up():
        yield product


def test_playbooks_and_incidents_come_in_and_a_second_run_finds_nothing_to_do(running: Any) -> None:
    first = running.json("knowledge", "ingest")
    assert first["added"] + first["unchanged"] == 10  # a tool server that was asked before began with them
    (incidents,) = first["incidents"]
    assert (incidents["workspace"], incidents["fault"]) == ("default", "")
    held = incidents["added"] + incidents["unchanged"]
    assert held > 20
    done = running.run("knowledge", "ingest")
    assert done.returncode == 0
    assert "10 as before" in done.stdout
    told = f"Incidents of default: 0 new, 0 changed, {held} as before, 0 removed; 0 texts embedded"
    assert told in done.stdout
    status = running.json("knowledge", "status")
    assert status["collections"]["sentinel_incidents"]["documents"] == held
    assert status["newest_incident"].startswith("incident-")
    assert status["incidents_as_of"] is not None
    assert status["next_ingest"] == []
    hits = running.json("knowledge", "search", "phishing stolen session", "--collection", "sentinel_incidents")["hits"]
    assert hits[0]["citation"] == "incident-124"
    chat = running.run("chat", stdin="/refresh\n/help\n")
    assert chat.returncode == 0
    assert f"{held} as before" in chat.stdout
    assert "/refresh" in chat.stdout.partition("/help")[2]


@pytest.mark.skipif(not PROC.is_dir(), reason="this platform has no /proc to look into")
def test_the_agent_and_the_interceptor_have_no_power_over_what_is_read_in(running: Any) -> None:
    """The attacker is the agent: its own key, and whatever its process was started with."""
    state = RunFolder(running.home).read()
    assert state is not None
    zone = state.zone("executor-knowledge")
    assert zone is not None
    agent = state.zone("agent")
    assert agent is not None
    environment = (PROC / str(agent.pid) / "environ").read_text()
    assert state.knowledge_token not in environment
    assert zone.url not in environment
    agents = running.environment["SENTINEL_API_KEY"]
    for secret in (*state.keys.values(), state.agent_token, state.workspace_token, agents):
        connection = http.client.HTTPConnection(zone.url.removeprefix("http://"), timeout=WAIT_S)
        connection.request("POST", "/admin/ingest", b"{}", {"Authorization": f"Bearer {secret}", "X-API-Key": secret})
        assert connection.getresponse().status == 401
        connection.close()
    gateway = state.zone("interceptor")
    assert gateway is not None
    connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=WAIT_S)
    body = {"session_id": "e2e-session-9", "tool_name": "ingest", "args": {}}
    headers = {"Content-Type": "application/json", "X-API-Key": agents}
    connection.request("POST", "/v1/proxy-execute", json.dumps(body), headers)
    response = connection.getresponse()
    assert (response.status, json.loads(response.read())["reason"]) == (403, "unknown_tool")
    connection.close()


def test_ctrl_c_leaves_a_state_that_the_next_run_goes_on_from(running: Any) -> None:
    """The tool server stands still while it is stopped, so that Ctrl-C surely comes in the middle."""
    state = RunFolder(running.home).read()
    assert state is not None
    workspace = state.zone("workspace")
    assert workspace is not None
    os.kill(workspace.pid, signal.SIGSTOP)
    try:
        with running.start("knowledge", "ingest", "--only", "incidents", "--reread") as process:
            assert process.stderr is not None
            assert "looking for what is new" in process.stderr.readline()
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=WAIT_S)
    finally:
        os.kill(workspace.pid, signal.SIGCONT)
    assert process.returncode == 130
    assert "Stopped. What was read in stays and is found; the next ingest goes on from there." in errors
    again: subprocess.CompletedProcess[str] = running.run("knowledge", "ingest", "--only", "incidents")
    for _ in range(100):
        if "Another ingest is running" not in again.stderr:
            break
        again = running.run("knowledge", "ingest", "--only", "incidents")
    assert again.returncode == 0, again.stderr


def test_azure_workspaces_are_read_with_the_sign_in_of_the_executor(sentinel: Any, tmp_path: Path) -> None:
    """Two of one run: one by its Resource ID over the wire of Azure, one that has none and is told."""
    workspace_id, header = str(uuid4()), "an-identity-header-of-the-tests"
    workspace = Workspace.open(tmp_path / "served")
    try:
        guide = workspace.generate(EstateOptions(days=7, events=50))
        app = create_app(
            workspace, workspace_id=workspace_id, identity_header=header, admin_token="an-admin-token-of-the-tests"
        )
        with serve(app) as url:
            settings = {
                "SENTINEL_WORKSPACE_ID": f"prod={workspace_id},dev={uuid4()}",
                "SENTINEL_WORKSPACE_RESOURCE_ID": f"prod={EMBEDDED_RESOURCE_ID}",
                "SENTINEL_LOGS_ENDPOINT": url,
                "SENTINEL_ARM_ENDPOINT": url,
                "SENTINEL_EMBEDDINGS": "none",
                "IDENTITY_ENDPOINT": f"{url}/msi/token",
                "IDENTITY_HEADER": header,
            }
            azure = type(sentinel)(sentinel.home, settings)
            prod, dev = azure.json("knowledge", "ingest", "--only", "incidents", code=2)["incidents"]
    finally:
        workspace.close()
    assert (prod["workspace"], prod["added"], prod["fault"]) == ("prod", guide.incidents, "")
    assert (dev["workspace"], dev["fault"]) == (
        "dev",
        "The workspace dev has no Resource ID, by which incidents are read.",
    )
    assert dev["next_step"] == "Set SENTINEL_WORKSPACE_RESOURCE_ID."
    hits = azure.json("knowledge", "search", "sign-in", "--collection", "sentinel_incidents")["hits"]
    assert all(hit["citation"].endswith("@prod") for hit in hits)
    assert hits
