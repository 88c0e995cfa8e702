"""The embedded workspace's server as a process of its own, and what it has used: processor seconds and peak memory.

A benchmark of volume asks it through the client that the product uses, so that the figures are those of an analyst's
tool and not of a function call.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

IDENTITY_HEADER = "bench-identity-header"
ADMIN_TOKEN = "bench-admin-token"
WORKSPACE_ID = "5b1f1ae4-5a3c-4c7e-9d2a-3b8b6f1f0d11"

_SERVER = """
import json, resource, sys
from pathlib import Path
from time import perf_counter
from sentinel_rag.app.serving import settle_memory
from sentinel_rag_testing.loopback import serve
from sentinel_rag.workspace.server import create_app
from sentinel_rag.workspace.workspace import Workspace
started = perf_counter()
workspace = Workspace.open(Path(sys.argv[1]))
opened = perf_counter() - started
app = create_app(workspace, workspace_id=sys.argv[2], identity_header=sys.argv[3], admin_token=sys.argv[4])
settle_memory()  # as every zone of the product does
with serve(app) as url:
    print(json.dumps([url, opened]), flush=True)
    for line in sys.stdin:
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss]), flush=True)
workspace.close()
"""


@dataclass(frozen=True, slots=True)
class Usage:
    """Processor seconds since the start, and the most memory that was resident at once, in MiB."""

    cpu_s: float
    peak_mib: int


@dataclass(frozen=True, slots=True)
class WorkspaceProcess:
    """A running server. `open_s` is the time that the workspace took to open."""

    url: str
    open_s: float
    process: subprocess.Popen[str]

    def usage(self) -> Usage:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        cpu, peak = json.loads(self.process.stdout.readline())
        return Usage(cpu, peak // 1024)


@contextmanager
def workspace_process(folder: Path) -> Iterator[WorkspaceProcess]:
    """Serve the workspace in `folder` for the length of the block."""
    arguments = [str(folder), WORKSPACE_ID, IDENTITY_HEADER, ADMIN_TOKEN]
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            url, opened = json.loads(process.stdout.readline())
            yield WorkspaceProcess(url, round(opened, 3), process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(30)
