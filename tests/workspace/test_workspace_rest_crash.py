"""kill -9 in the middle of writes through REST: what was acknowledged is there afterwards."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from arm_client import ADMIN_TOKEN, IDENTITY_HEADER, WORKSPACE_ID, ArmClient
from tests.support import fork_server

from sentinel_rag.workspace.sample.options import EstateOptions
from sentinel_rag.workspace.workspace import Workspace
from waiting import WAIT_S

SERVER = f"""
import socket, sys
from pathlib import Path
import uvicorn
from sentinel_rag.workspace.server import create_app
from sentinel_rag.workspace.workspace import Workspace
app = create_app(Workspace.open(Path(sys.argv[1])), workspace_id={WORKSPACE_ID!r},
                 identity_header={IDENTITY_HEADER!r}, admin_token={ADMIN_TOKEN!r})
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off")).run([listener])
"""


@pytest.mark.requirement("DATA-4")
def test_no_acknowledged_write_is_lost(tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    workspace = Workspace.open(folder)
    workspace.generate(EstateOptions(days=8, events=10, end=datetime(2025, 3, 12, 15, tzinfo=UTC)))
    workspace.close()
    acknowledged: dict[str, str] = {}
    for kill_after in (1, 4, 9):
        with fork_server.Process(
            [sys.executable, "-c", SERVER, str(folder)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            client = ArmClient(f"http://127.0.0.1:{int(process.stdout.readline())}")
            name = client.arm("GET", "incidents", top=1).body["value"][0]["name"]
            enough = threading.Semaphore(0)

            def write(client: ArmClient = client, name: str = name, enough: threading.Semaphore = enough) -> None:
                while True:
                    comment, message = str(uuid4()), f"message {uuid4()}"
                    try:
                        reply = client.arm(
                            "PUT", f"incidents/{name}/comments/{comment}", {"properties": {"message": message}}
                        )
                    except Exception:  # the server is gone
                        return
                    if reply.status == 201:
                        acknowledged[comment] = message
                    enough.release()

            writers = [threading.Thread(target=write) for _ in range(3)]
            for writer in writers:
                writer.start()
            for _ in range(kill_after):
                assert enough.acquire(timeout=WAIT_S)
            process.kill()
            for writer in writers:
                writer.join()
    workspace = Workspace.open(folder)
    try:
        stored = workspace.incidents.comments(name)
        assert stored is not None
        kept = {comment.name: comment.entry["message"] for comment in stored}
        assert acknowledged.items() <= kept.items()
        assert len(acknowledged) >= 14
        rows = workspace.query(f'SecurityIncident | where IncidentName == "{name}" | count').rows[0][0]
        assert isinstance(rows, int)
        assert rows >= len(stored)
    finally:
        workspace.close()
