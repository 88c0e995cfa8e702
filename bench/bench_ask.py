"""What the zones cost: a warm question end to end (agent, gateway, tool server, workspace) against the direct call.

The direct call is the same client asking the same workspace server for the same rows, in this process: no agent, no
gateway, no tool server. Also measured: the whole `sentinel ask` command while zones run, and with private zones.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from uuid import uuid4

from bench.harness import paired, timings, write
from sentinel_rag.app.processes import running_zones
from sentinel_rag.contracts.query_results import QueryResult
from sentinel_rag.sentinel.credentials import IdentityEndpointCredential
from sentinel_rag.sentinel.logs.log_analytics import LogAnalytics
from sentinel_rag.sentinel.service import SentinelService
from sentinel_rag.settings import load_settings
from sentinel_rag.surfaces.cli._zones import AgentClient, user_session
from sentinel_rag.workspace.sample.options import EstateOptions
from sentinel_rag.workspace.workspace import Workspace

QUESTION = "how many high severity alerts are there?"
SENTINEL = Path(sys.executable).parent / "sentinel"
SERVER = """
import socket, sys, uvicorn
from pathlib import Path
from sentinel_rag.workspace.server import create_app
from sentinel_rag.workspace.workspace import Workspace
folder, workspace_id, header, descriptor = sys.argv[1:]
app = create_app(Workspace.open(Path(folder)), workspace_id=workspace_id, identity_header=header, admin_token=header)
config = uvicorn.Config(app, log_level="error", access_log=False)
uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(descriptor))])
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        workspace = Workspace.open(folder / "served")
        workspace.generate(EstateOptions())
        workspace.close()
        workspace_id, header = str(uuid4()), secrets.token_hex(16)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            server = subprocess.Popen(
                [sys.executable, "-c", SERVER, str(folder / "served"), workspace_id, header, str(listener.fileno())],
                pass_fds=[listener.fileno()],
            )
        try:
            measure(folder, url, workspace_id, header)
        finally:
            server.terminate()
            server.wait()


def measure(folder: Path, url: str, workspace_id: str, header: str) -> None:
    environment = {
        **os.environ,
        "SENTINEL_HOME": str(folder / "home"),
        "SENTINEL_WORKSPACE_ID": workspace_id,
        "SENTINEL_LOGS_ENDPOINT": url,
        "IDENTITY_ENDPOINT": f"{url}/msi/token",
        "IDENTITY_HEADER": header,
    }
    os.environ.update(environment)
    settings = load_settings()
    loop = asyncio.new_event_loop()
    credential = IdentityEndpointCredential(f"{url}/msi/token", header)

    async def connect() -> SentinelService:
        return SentinelService({"bench": LogAnalytics(credential, endpoint=url).workspace("bench", workspace_id)})

    service = loop.run_until_complete(connect())

    def direct() -> None:
        result = loop.run_until_complete(service.call("query_alerts", {"severity": "High"}))
        assert isinstance(result, QueryResult)

    def command() -> None:
        subprocess.run([SENTINEL, "ask", QUESTION], env=environment, check=True, stdout=subprocess.DEVNULL)

    with running_zones(settings, workspace="azure", private=False) as zones:
        client = AgentClient(zones.state, user_session(zones.state, settings))

        def ask() -> None:
            answer = client.ask(QUESTION, lambda _: None)
            assert answer.outcome == "answered", answer.text

        warm = paired(ask, direct, runs=60, warmup=5)
        whole = timings([timed(command) for _ in range(10)])
    private = timings([timed(command) for _ in range(5)])
    loop.run_until_complete(service.close())
    loop.close()
    write(
        "ask",
        {"warm_question_against_direct_call": warm, "command_warm": whole, "command_with_private_zones": private},
        claim="a warm question end to end against the direct client call",
    )


def timed(work: object) -> float:
    import time

    assert callable(work)
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


main()
