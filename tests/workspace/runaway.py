"""A served workspace for the tests of runaway queries, with queries that never end by themselves."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import quote, urlsplit

from sentinel_rag.workspace.server import create_app
from sentinel_rag.workspace.store import MemoryLimits
from sentinel_rag.workspace.workspace import Workspace
from sentinel_rag_testing.loopback import serve
from waiting import WAIT_S

WORKSPACE_ID = "6f3a1c52-0d7e-4b1a-9c55-5e3f0a51a7e0"
IDENTITY_HEADER = "identity-secret"
ADMIN_TOKEN = "admin-secret"

_SIDE = "(range x from 1 to 4000000 step 1 | extend k = 1)"
RUNAWAYS = {
    "cross_join": f"{_SIDE} | join kind=inner {_SIDE} on k | count",
    "endless_range": "range x from 1 to 1000000000000 step 1 | summarize count() by x % 7",
    "expansion": "range x from 1 to 1000000000000 step 1 | mv-expand y = dynamic([1, 2, 3, 4, 5, 6, 7, 8]) | count",
    "regex": (
        "range x from 1 to 1000000000000 step 1 | extend t = strcat('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', x, '!') "
        "| where t matches regex '^(a|a?)+$' | count"
    ),
    "sort": "range x from 1 to 1000000000000 step 1 | where hash_sha256(tostring(x)) == 'x' | sort by x desc",
    "filter_that_finds_nothing": "range x from 1 to 1000000000000 step 1 | where x < 0",
}
"""Queries that would run for hours, by what they do."""


@dataclass(frozen=True)
class Reply:
    status: int
    body: Any


@dataclass(frozen=True)
class RunawayServer:
    """A server over a Syslog of ten rows."""

    url: str

    @property
    def _address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return str(parts.hostname), int(parts.port or 0)

    def send(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        connection = self.begin(method, path, body, headers)
        try:
            response = connection.getresponse()
            raw = response.read()
            return Reply(response.status, json.loads(raw) if raw else None)
        finally:
            connection.close()

    def begin(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> http.client.HTTPConnection:
        """Send a request and do not wait for its answer."""
        connection = http.client.HTTPConnection(*self._address, timeout=WAIT_S)
        raw = None if body is None else json.dumps(body)
        connection.request(method, path, raw, {"content-type": "application/json", **(headers or {})})
        return connection

    def begin_query(self, kql: str, *, wait: int = 600) -> http.client.HTTPConnection:
        return self.begin("POST", f"/v1/workspaces/{WORKSPACE_ID}/query", {"query": kql}, self._headers(wait))

    def query(self, kql: str, *, wait: int = 600) -> Reply:
        return self.send("POST", f"/v1/workspaces/{WORKSPACE_ID}/query", {"query": kql}, self._headers(wait))

    def counts(self) -> dict[str, int]:
        reply = self.send("GET", "/admin/queries", headers={"authorization": f"Bearer {ADMIN_TOKEN}"})
        assert reply.status == 200
        counts: dict[str, int] = reply.body
        return counts

    def until(self, holds: Callable[[dict[str, int]], bool]) -> dict[str, int]:
        """The counts once `holds` is true of them; fails if they never are."""
        end = monotonic() + WAIT_S
        while monotonic() < end:
            counts = self.counts()
            if holds(counts):
                return counts
        raise AssertionError(f"the server still says {counts}")

    def _headers(self, wait: int) -> dict[str, str]:
        return {"authorization": f"Bearer {self._token()}", "prefer": f"wait={wait}"}

    def _token(self) -> str:
        resource = quote("https://api.loganalytics.io", safe="")
        path = f"/msi/token?api-version=2019-08-01&resource={resource}"
        token: str = self.send("GET", path, headers={"x-identity-header": IDENTITY_HEADER}).body["access_token"]
        return token


@contextmanager
def runaway_server(folder: Path, *, memory: MemoryLimits | None = None) -> Iterator[RunawayServer]:
    """Serve a new workspace in `folder` for the length of the block."""
    rows = [{"TimeGenerated": f"2024-07-02T{hour:02d}:00:00Z", "ProcessID": hour} for hour in range(10)]
    (folder / "x.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    workspace = Workspace.open(folder / "workspace", limits=memory)
    try:
        workspace.import_path(folder / "x.jsonl", table="Syslog")
        app = create_app(workspace, workspace_id=WORKSPACE_ID, identity_header=IDENTITY_HEADER, admin_token=ADMIN_TOKEN)
        with serve(app) as url:
            yield RunawayServer(url)
    finally:
        workspace.close()
