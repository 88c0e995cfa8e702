"""A sample estate on the wire of Sentinel and its ingestion as the tool server runs it: in a thread."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import anyio.to_thread

from sentinel_rag.knowledge.embedding import Embedder
from sentinel_rag.knowledge.incident_ingestion import WorkspaceReport, ingest_incidents
from sentinel_rag.knowledge.stores import KnowledgeStore
from sentinel_rag.sentinel.credentials import IdentityEndpointCredential
from sentinel_rag.sentinel.logs.log_analytics import LogAnalytics
from sentinel_rag.sentinel.rest import ArmConnection, SentinelRest
from sentinel_rag.sentinel.rest.connection import RateBuckets
from sentinel_rag.tools.knowledge.incident_source import FromThread, SentinelIncidents
from sentinel_rag.workspace.sample.options import EstateOptions
from sentinel_rag.workspace.server import EMBEDDED_RESOURCE_ID, create_app
from sentinel_rag.workspace.workspace import Workspace
from sentinel_rag_testing.loopback import serve
from waiting import WAIT_S

END = datetime(2025, 3, 12, 15, tzinfo=UTC)
SINCE = END - timedelta(days=90)
MAIN = 124
"""The incident of the attack: 8 alerts, 2 comments."""
_HEADER = "identity-header-of-the-tests"
_TOKEN = "admin-token-of-the-tests"


class Estate:
    """A served workspace: its operator's door, and ingestions of it."""

    def __init__(self, url: str, workspace: Workspace, workspace_id: str) -> None:
        self.url = url
        self.workspace_id = workspace_id
        self._workspace = workspace

    def delete(self, *numbers: int) -> None:
        """As somebody deletes incidents in the portal."""
        with self._workspace._store.writing() as cursor:
            cursor.execute("DELETE FROM SecurityIncident WHERE list_contains(?, IncidentNumber)", [list(numbers)])

    def faults(self, *faults: dict[str, Any]) -> None:
        self.admin("PUT", "faults", {"faults": list(faults)})

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            f"{self.url}/admin/{path}",
            None if body is None else json.dumps(body).encode(),
            {"authorization": f"Bearer {_TOKEN}"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=WAIT_S) as response:
            return json.loads(response.read())

    def requests(self) -> dict[str, int]:
        """How many requests there were since faults were set, by wire and method."""
        counted: dict[str, int] = self.admin("GET", "faults")["requests"]
        return counted

    def column(self, name: str) -> list[Any]:
        """The column of the newest version of each incident, by number."""
        kql = (
            "SecurityIncident | summarize arg_max(TimeGenerated, *) by IncidentNumber "
            f"| order by IncidentNumber asc | project {name}"
        )
        return [row[0] for row in self.admin("POST", "query", {"kql": kql})["rows"]]

    def ingest(self, store: KnowledgeStore, embedder: Embedder | None = None, **options: Any) -> WorkspaceReport:
        (report,) = ingest_estates(store, embedder, {"lab": self}, **options)
        return report

    def change(self, work: Any) -> Any:
        """Whatever `work` does with the client of the REST API."""

        async def changed() -> Any:
            async with _connected(self) as (rest, _):
                return await work(rest)

        return anyio.run(changed)


def ingest_estates(
    store: KnowledgeStore,
    embedder: Embedder | None,
    estates: dict[str, Estate],
    *,
    since: datetime = SINCE,
    buckets: RateBuckets | None = None,
    log_is_away: bool = False,
    log_of: Estate | None = None,
    **options: Any,
) -> tuple[WorkspaceReport, ...]:
    """One run over these workspaces. `log_is_away`: Log Analytics is closed to the identity. `log_of`: the log is that
    of another estate, which has not heard of what changed in this one."""

    async def run() -> tuple[WorkspaceReport, ...]:
        async with _many(estates, buckets, log_is_away, log_of) as sources:
            return await anyio.to_thread.run_sync(
                partial(
                    ingest_incidents, store, embedder, [FromThread(each) for each in sources], since=since, **options
                )
            )

    return anyio.run(run)


class _connected:
    """REST and log of what is served; retries wait next to nothing."""

    def __init__(
        self,
        served: Estate,
        name: str = "lab",
        buckets: RateBuckets | None = None,
        log_is_away: bool = False,
        log_of: Estate | None = None,
    ) -> None:
        url = served.url
        credential = IdentityEndpointCredential(f"{url}/msi/token", _HEADER)
        self._arm = ArmConnection(credential, endpoint=url, first_retry_delay_s=0.001)
        log = log_of or served
        log_url = log.url
        log_credential = IdentityEndpointCredential(f"{log_url}/msi/token", _HEADER)
        self._log = LogAnalytics(log_credential, endpoint=log_url, first_retry_delay_s=0.001)
        self._rest = SentinelRest(name, EMBEDDED_RESOURCE_ID, self._arm, buckets=buckets)
        workspace_id = "00000000-0000-0000-0000-000000000001" if log_is_away else log.workspace_id
        self._logs = self._log.workspace(name, workspace_id)

    async def __aenter__(self) -> tuple[SentinelRest, Any]:
        return self._rest, self._logs

    async def __aexit__(self, *_: object) -> None:
        with anyio.CancelScope(shield=True):
            await self._arm.close()
            await self._log.close()


@asynccontextmanager
async def opened_incidents(served: Estate) -> AsyncIterator[SentinelIncidents]:
    """The incidents of `served` as the workspace `lab`."""
    async with _connected(served) as (rest, logs):
        yield SentinelIncidents(rest, logs)


class _many:
    def __init__(
        self, estates: dict[str, Estate], buckets: RateBuckets | None, log_is_away: bool, log_of: Estate | None
    ) -> None:
        self._opened = [_connected(each, name, buckets, log_is_away, log_of) for name, each in estates.items()]

    async def __aenter__(self) -> list[SentinelIncidents]:
        return [SentinelIncidents(*(await each.__aenter__())) for each in self._opened]

    async def __aexit__(self, *_: object) -> None:
        for each in self._opened:
            await each.__aexit__()


@cache
def _generated() -> Path:
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    workspace = Workspace.open(folder)
    workspace.generate(EstateOptions(days=8, events=50, end=END))
    workspace.close()
    return folder


@contextmanager
def estate(folder: Path, rows: Mapping[str, Sequence[Mapping[str, Any]]] | None = None) -> Iterator[Estate]:
    """A fresh estate of 28 incidents, or of these rows by table, served under an id of its own."""
    workspace_id = str(uuid4())
    if rows is None:
        shutil.copytree(_generated(), folder)
    workspace = Workspace.open(folder)
    for table, each in (rows or {}).items():
        file = folder / f"{table}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in each), encoding="utf-8")
        workspace.import_path(file, table=table)
    app = create_app(workspace, workspace_id=workspace_id, identity_header=_HEADER, admin_token=_TOKEN)
    try:
        with serve(app) as url:
            yield Estate(url, workspace, workspace_id)
    finally:
        workspace.close()
