"""A sample estate behind both wires, with the operator's door: for tests that change incidents and make faults."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from sentinel_servers import Served, workspace_app

from sentinel_rag.workspace.sample.options import EstateOptions
from sentinel_rag.workspace.workspace import Workspace
from sentinel_rag_testing.loopback import serve
from waiting import WAIT_S

END = datetime(2025, 3, 12, 15, tzinfo=UTC)
MAIN = 124
"""The incident of the attack: High, Active, owned, 8 alerts, 2 comments."""


class Estate(Served):
    """`ask` and `refusal` call tools; `faults` and `kql` are the operator's."""

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            f"{self.url}/admin/{path}",
            None if body is None else json.dumps(body).encode(),
            {"authorization": "Bearer admin-token-of-the-tests"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=WAIT_S) as response:
            return json.loads(response.read())

    def faults(self, *faults: dict[str, Any]) -> None:
        self.admin("PUT", "faults", {"faults": list(faults)})

    def requests(self) -> dict[str, int]:
        """How many requests there were since `faults`, by wire and method."""
        counted: dict[str, int] = self.admin("GET", "faults")["requests"]
        return counted

    def kql(self, query: str) -> list[list[Any]]:
        rows: list[list[Any]] = self.admin("POST", "query", {"kql": query})["rows"]
        return rows

    def versions(self, number: int = MAIN) -> int:
        ((count,),) = self.kql(f"SecurityIncident | where IncidentNumber == {number} | count")
        return int(count)

    def newest(self, *columns: str, number: int = MAIN) -> list[Any]:
        (row,) = self.kql(
            f"SecurityIncident | where IncidentNumber == {number} | top 1 by TimeGenerated "
            f"| project {', '.join(columns)}"
        )
        return row


@cache
def _generated() -> Path:
    """One estate for all tests of a process, to be copied."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    workspace = Workspace.open(folder)
    workspace.generate(EstateOptions(days=8, events=50, end=END))
    workspace.close()
    return folder


@contextmanager
def estate(folder: Path) -> Iterator[Estate]:
    """A fresh estate of 28 incidents, served."""
    shutil.copytree(_generated(), folder / "workspace")
    workspace = Workspace.open(folder / "workspace")
    try:
        with serve(workspace_app(workspace)) as url:
            yield Estate(url)
    finally:
        workspace.close()
