"""The door of surfaces at the knowledge tool server: who may open it, what it tells, and what a client that leaves
leaves.

The agent and the gateway are the strangers here: they hold other tokens.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from incident_estate import END, MAIN, Estate, estate, opened_incidents
from word_embedder import WordEmbedder

from sentinel_rag.app.run_state import RunState, ZoneEntry
from sentinel_rag.contracts.errors import SentinelError, UnavailableError
from sentinel_rag.knowledge.documents import Collection, IncidentRecord, incident_document
from sentinel_rag.knowledge.incident_ingestion import StoredIncident
from sentinel_rag.knowledge.ingestion import (
    IngestFiles,
    IngestLock,
    WorkspaceRecord,
    ingest,
    read_ingest_record,
    write_ingest_record,
)
from sentinel_rag.knowledge.stores import LocalStore
from sentinel_rag.surfaces.cli.knowledge import IncidentsRead, ingest_incidents, ingest_playbooks
from sentinel_rag.tools.knowledge import KnowledgeBase, OpenedStore, create_app
from sentinel_rag.tools.knowledge.ingestion import (
    IncidentIngest,
    IngestRequest,
    PlaybookIngest,
    Refreshing,
    WorkspacesToRead,
    admin_app,
)
from sentinel_rag_testing.loopback import serve
from waiting import WAIT_S

pytestmark = pytest.mark.requirement("KNOW-2")
GATEWAYS, ADMINS = "token-of-the-gateway", "token-of-the-surfaces"
NOW = END + timedelta(minutes=1)


class GatedEmbedder(WordEmbedder):
    """One that waits before each batch until it is let on; `reached` tells that it waits."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def embed_documents(self, texts: Any) -> Any:
        self.reached.set()
        assert self.go_on.wait(WAIT_S)
        return super().embed_documents(texts)


@dataclass
class Served:
    url: str
    files: IngestFiles
    ingest: IncidentIngest
    store_file: Path

    def ask(self, method: str, path: str, token: str | None, body: Any = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=WAIT_S)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        payload = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        connection.request(method, path, payload, headers)
        response = connection.getresponse()
        text = response.read()
        connection.close()
        return response.status, text

    @property
    def state(self) -> RunState:
        return RunState(0, False, "lab", (ZoneEntry("executor-knowledge", self.url, 0),), knowledge_token=ADMINS)

    def run(self, **wish: Any) -> tuple[Any, list[IncidentsRead]]:
        told: list[IncidentsRead] = []
        outcomes = ingest_incidents(self.state, {"who": "a test", **wish}, told.append)
        return outcomes, told

    def held(self) -> int:
        with LocalStore(self.store_file) as store:
            return store.state().documents[Collection.INCIDENTS]


Serve = Callable[..., Served]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    with estate(tmp_path_factory.mktemp("lab") / "workspace") as running:
        yield running


@pytest.fixture
def served(lab: Estate, tmp_path: Path) -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(
            embedder: WordEmbedder | None = None, *, unreadable: Mapping[str, str] | None = None, readable: bool = True
        ) -> Served:
            store_file = tmp_path / "knowledge.db"
            files = IngestFiles(tmp_path / "ingest.lock", tmp_path / "incidents.json", tmp_path / "playbooks.txt")

            def opening() -> OpenedStore:
                store = LocalStore(store_file)
                return OpenedStore(store, embedder, close=store.close)

            @asynccontextmanager
            async def workspaces() -> Any:
                async with opened_incidents(lab) as incidents:
                    yield WorkspacesToRead([incidents] if readable else [], unreadable or {})

            base = KnowledgeBase(opening)
            ingest = IncidentIngest(base, workspaces, files, clock=lambda: NOW)
            base.incidents_as_of = ingest.as_of
            app = create_app(base, token=GATEWAYS, admin=admin_app(ingest, PlaybookIngest(base, files), token=ADMINS))
            return Served(stack.enter_context(serve(app)), files, ingest, store_file)

        yield start


def test_a_surface_has_incidents_read_in_and_is_told_how_far_it_is(served: Serve) -> None:
    running = served(WordEmbedder())
    assert json.loads(running.ask("GET", "/admin/knowledge", ADMINS)[1]) == {"incidents_as_of": None}
    (outcome,), told = running.run()
    assert (outcome.workspace, outcome.changed, outcome.removed, outcome.fault) == ("lab", 0, 0, "")
    assert outcome.added == running.held() > 20
    assert told[0].total is None
    assert told[-1] == IncidentsRead("lab", outcome.added, outcome.added, told[-1].seconds, 0.0)
    as_of = json.loads(running.ask("GET", "/admin/knowledge", ADMINS)[1])["incidents_as_of"]
    assert datetime.fromisoformat(as_of) == NOW
    (outcome,), _ = running.run(days=1)
    assert (outcome.added, outcome.unchanged) == (0, running.held())


@pytest.mark.parametrize("token", [None, GATEWAYS, "", "wrong"])
def test_who_may_search_may_not_ingest_and_the_other_way_round(served: Serve, token: str | None) -> None:
    """The attacker is a hijacked agent or gateway, with the gateway's token or none."""
    running = served()
    for path in ("/admin/ingest", "/admin/playbooks", "/admin/anything"):
        assert running.ask("POST", path, token)[0] == 401
    assert running.ask("GET", "/admin/knowledge", token)[0] == 401
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    assert running.ask("POST", "/mcp", ADMINS, call)[0] == 401
    assert running.held() == 0


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"days": 0}, 422),
        ({"days": "90"}, 422),
        ({"who": "x\ny"}, 422),
        ({"playbooks": "/etc"}, 422),
        (b"no json", 422),
        (b" " * 9_000, 413),
    ],
)
def test_a_wish_that_cannot_be_is_refused(served: Serve, body: Any, status: int) -> None:
    running = served()
    assert running.ask("POST", "/admin/ingest", ADMINS, body)[0] == status
    assert running.held() == 0


def test_a_folder_of_playbooks_is_read_in_by_whoever_owns_the_store(served: Serve, tmp_path: Path) -> None:
    running = served(WordEmbedder())
    folder = tmp_path / "books"
    folder.mkdir()
    (folder / "a.md").write_text("# A\n\napple\n")
    (folder / "b.md").write_bytes(b"\0")
    told: list[Mapping[str, Any]] = []
    outcome = ingest_playbooks(running.state, {"who": "a test", "folder": str(folder)}, told.append)
    assert (outcome.added, outcome.embedded, outcome.faults, outcome.by_words_only) == (1, 1, 1, False)
    assert outcome.told == [{"source": "b.md", "outcome": "broken", "said": "It is no text: it holds zero bytes."}]
    assert told[-1]["read"] == 1
    for place in (str(folder / "no"), "books"):
        with pytest.raises(SentinelError, match="There is no folder"):
            ingest_playbooks(running.state, {"who": "a test", "folder": place}, told.append)
    assert running.ask("POST", "/admin/playbooks", ADMINS, {"folder": ""})[0] == 422


def test_one_ingest_at_a_time_and_the_other_is_told_who_runs_it(served: Serve) -> None:
    running = served()
    with IngestLock(running.files.lock).hold("sentinel knowledge ingest"), pytest.raises(SentinelError) as raised:
        running.run()
    assert str(raised.value).startswith("Another ingest is running: sentinel knowledge ingest, process ")
    assert "press Ctrl-C where it was asked for: the next one goes on" in raised.value.next_step
    assert raised.value.code == "ingest_runs"
    assert running.run()[0][0].added == running.held()


def test_a_client_that_leaves_ends_the_run_and_the_next_one_goes_on(served: Serve) -> None:
    model = GatedEmbedder()
    running = served(model)
    connection = http.client.HTTPConnection(running.url.removeprefix("http://"), timeout=WAIT_S)
    connection.request("POST", "/admin/ingest", b"{}", {"Authorization": f"Bearer {ADMINS}"})
    response = connection.getresponse()
    assert model.reached.wait(WAIT_S)
    with pytest.raises(SentinelError, match=r"^Another ingest is running: a surface, since") as raised:
        running.run()
    assert "press Ctrl-C where it was asked for" in raised.value.next_step  # and no process, which would be the zones'
    response.close()
    connection.close()
    model.go_on.set()
    until_free(IngestLock(running.files.lock))
    assert read_ingest_record(running.files.record) == ()
    (outcome,), _ = running.run()
    assert outcome.fault == ""
    assert outcome.added + outcome.unchanged == running.held() > 20
    assert len(model.embedded) == len(set(model.embedded))


def until_free(lock: IngestLock) -> None:
    """Wait for the run that ends; a minute is a test that fails."""
    ended = threading.Event()
    for _ in range(600):
        try:
            with lock.hold("the test"):
                return
        except UnavailableError:
            ended.wait(0.1)
    pytest.fail("the run went on after its client had left")


def test_a_workspace_without_a_resource_id_is_told_and_takes_nothing_away(served: Serve) -> None:
    running = served(unreadable={"emea": "The workspace emea has no Resource ID."})
    outcomes, _ = running.run()
    assert [(each.workspace, each.fault) for each in outcomes] == [
        ("lab", ""),
        ("emea", "The workspace emea has no Resource ID."),
    ]
    assert outcomes[1].next_step == "Set SENTINEL_WORKSPACE_RESOURCE_ID."
    record = {each.workspace: each for each in read_ingest_record(running.files.record)}
    assert (record["lab"].as_of, record["emea"].as_of) == (NOW, None)
    assert json.loads(running.ask("GET", "/admin/knowledge", ADMINS)[1]) == {"incidents_as_of": None}
    with LocalStore(running.store_file) as store:
        assert f"incident-{MAIN}@lab" in store.versions(Collection.INCIDENTS)


def test_a_workspace_that_is_served_no_more_goes(served: Serve) -> None:
    running = served(unreadable={"emea": "It has no Resource ID."})
    names = ("old", "emea", "of another home")
    write_ingest_record(running.files.record, [WorkspaceRecord(name, NOW, NOW, 1, 0, 90) for name in names[:2]])
    with LocalStore(running.store_file) as store:
        for name in names:
            version = StoredIncident(name, "guid", "etag")
            document = incident_document(IncidentRecord(number=1, title="x", workspace=name, etag=version.text))
            ingest(store, None, Collection.INCIDENTS, [document], complete=False)
        running.run()
        held = {name.partition("@")[2] for name in store.versions(Collection.INCIDENTS)}
    assert held == {"lab", "emea", "of another home"}
    assert [each.workspace for each in read_ingest_record(running.files.record)] == ["lab", "emea"]


def test_where_no_workspace_can_be_read_that_is_the_answer(served: Serve) -> None:
    running = served(readable=False, unreadable={"emea": "It has no Resource ID."})
    with pytest.raises(SentinelError, match=r"No workspace's incidents can be read\. It has no Resource ID"):
        running.run()


def test_words_first_and_a_later_run_makes_the_vectors(served: Serve) -> None:
    model = WordEmbedder()
    running = served(model)
    running.run(by_words=True)
    assert model.embedded == []
    (outcome,), told = running.run()
    assert [each.total for each in told if not each.workspace][-1] >= len(model.embedded) > 0
    assert (outcome.added, outcome.embedded) == (0, len(model.embedded))
    assert running.run()[0][0].embedded == 0
    running.run(by_words=True)  # a store with vectors keeps them
    with LocalStore(running.store_file) as store:
        assert store.state().space == model.space


def test_a_store_that_was_lost_is_not_told_to_be_up_to_date(served: Serve) -> None:
    first = served()
    first.run()
    with LocalStore(first.store_file) as store:
        store.remove(Collection.INCIDENTS, list(store.versions(Collection.INCIDENTS)))
    assert json.loads(first.ask("GET", "/admin/knowledge", ADMINS)[1]) == {"incidents_as_of": None}


@pytest.mark.anyio
async def test_the_refresh_by_the_clock_keeps_current_what_somebody_read_in(served: Serve) -> None:
    running = served()

    async def no_app(*_: Any) -> None:
        raise AssertionError("nothing is asked of it")

    refreshing = Refreshing(no_app, running.ingest, every_s=60)
    await refreshing.once()
    assert running.held() == 0  # nobody has ever read incidents in
    await running.ingest.run(IngestRequest("a test", days=2))
    before = running.held()
    with LocalStore(running.store_file) as store:
        store.remove(Collection.INCIDENTS, ["incident-128"])
    with IngestLock(running.files.lock).hold("a person"):
        await refreshing.once()  # told in the log, and no end of the server
    assert running.held() == before - 1
    await refreshing.once()
    assert running.held() == before
    (outcome,), _ = await anyio.to_thread.run_sync(running.run)
    assert outcome.days == 2  # as far back as the person wanted, whoever asks next
    assert [each.days for each in read_ingest_record(running.files.record)] == [2]
