"""One store and several homes: whoever reads in, nothing that another home read in changes or goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from incident_estate import Estate, estate, ingest_estates
from store_contract import by_words
from tests.support.azure_search import AzureSearchDouble, running_azure_search
from tests.support.postgres_server import PostgresServer

from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.incident_ingestion import WorkspaceReport
from sentinel_rag.knowledge.ingestion import SHIPPED, PlaybookOwner, home_owner, ingest_folder
from sentinel_rag.knowledge.moving import move
from sentinel_rag.knowledge.stores import KnowledgeStore, LocalStore
from sentinel_rag.knowledge.stores.pgvector import PgVectorStore
from sentinel_rag.tools.knowledge import KnowledgeBase, OpenedStore
from sentinel_rag.tools.knowledge.knowledge_tools import KnowledgeTools
from sentinel_rag_azure_search.connection import SearchConnection
from sentinel_rag_azure_search.store import AzureSearchStore
from sentinel_rag_azure_search.wire import SearchEndpoint

pytestmark = pytest.mark.requirement("KNOW-4")
_NUMBERS = count()
NUMBERS = (1, 2, 3)
OpenStore = Callable[[], AbstractContextManager[KnowledgeStore]]


class Key:
    """The key of the double."""

    async def headers(self) -> Mapping[str, str]:
        return {"api-key": "double-key"}


def incident(number: int, estate_name: str, day: int) -> dict[str, Any]:
    """Each estate counts from 1, and no two have an incident in common."""
    time = f"2025-03-{day:02}T10:00:00Z"
    return {
        "TimeGenerated": time,
        "CreatedTime": time,
        "LastModifiedTime": time,
        "IncidentNumber": number,
        "IncidentName": f"00000000-0000-4000-8000-{sum(estate_name.encode()):08}{number:04}",
        "Title": f"Case of {estate_name}",
        "Severity": "High",
        "Status": "New",
    }


def rows(name: str) -> dict[str, list[dict[str, Any]]]:
    return {"SecurityIncident": [incident(number, name, number) for number in NUMBERS]}


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    with estate(tmp_path_factory.mktemp("ours") / "workspace", rows("woodgrove")) as served:
        yield served


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    with estate(tmp_path_factory.mktemp("theirs") / "workspace", rows("fabrikam")) as served:
        yield served


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    with estate(tmp_path_factory.mktemp("empty") / "workspace", {}) as served:
        yield served


@pytest.fixture(scope="module")
def service() -> Iterator[tuple[str, AzureSearchDouble]]:
    with running_azure_search() as running:
        yield running


@pytest.fixture(params=["pgvector", "azure-search"])
def opened(request: pytest.FixtureRequest) -> OpenStore:
    """Opens the one store, for one home after the other."""
    if request.param == "pgvector":
        server: PostgresServer = request.getfixturevalue("postgres")
        schema = request.getfixturevalue("emptied")()
        return lambda: PgVectorStore(server.url, schema)
    url, double = request.getfixturevalue("service")
    double.reset()
    endpoint = SearchEndpoint(url, f"shared-{next(_NUMBERS)}")
    return lambda: AzureSearchStore(SearchConnection(endpoint, Key(), attempts=3, first_wait_s=0.001))


def figures(report: WorkspaceReport) -> tuple[int, int, int, int]:
    done = report.ingested
    return done.added, done.changed, done.unchanged, done.removed


def read_in(opened: OpenStore, estates: dict[str, Estate], **options: Any) -> list[WorkspaceReport]:
    """A home that serves these workspaces ingests, and has done so before."""
    with opened() as store:
        options = {"shared": True, "formerly_served": list(estates), **options}
        return list(ingest_estates(store, None, estates, **options))


def titles(opened: OpenStore) -> dict[str, str]:
    with opened() as store:
        ids = sorted(store.versions(Collection.INCIDENTS))
        return {each.document.id: each.document.title for each in store.entries(Collection.INCIDENTS, ids)}


def cases(workspace: str, estate_name: str) -> dict[str, str]:
    return {f"incident-{number}@{workspace}": f"Case of {estate_name}" for number in NUMBERS}


def test_workspaces_of_one_name_neither_replace_nor_empty_each_other(
    opened: OpenStore, ours: Estate, theirs: Estate, empty: Estate
) -> None:
    """Everybody's workspace is called `default` unless somebody named it."""
    (first,) = read_in(opened, {"default": ours})
    assert (figures(first), first.fault) == ((3, 0, 0, 0), "")
    for other in (theirs, empty, theirs):
        (refused,) = read_in(opened, {"default": other})
        assert figures(refused) == (0, 0, 0, 0)
        assert "another workspace that is named default" in refused.fault
        assert "SENTINEL_WORKSPACE=NAME" in refused.next_step
        assert titles(opened) == cases("default", "woodgrove")
    (renamed,) = read_in(opened, {"fabrikam": theirs})
    assert (figures(renamed), renamed.fault) == ((3, 0, 0, 0), "")
    (again,) = read_in(opened, {"default": ours})  # from another home: it is the same workspace there
    assert (figures(again), again.fault) == ((0, 0, 3, 0), "")
    assert titles(opened) == cases("default", "woodgrove") | cases("fabrikam", "fabrikam")


def test_a_refused_workspace_stops_no_other_of_the_same_home(opened: OpenStore, ours: Estate, theirs: Estate) -> None:
    read_in(opened, {"default": theirs})
    refused, read = read_in(opened, {"default": ours, "soc": theirs})
    assert "another workspace that is named default" in refused.fault
    assert "knows the workspace soc as default" in read.fault
    assert "default" in read.next_step
    assert titles(opened) == cases("default", "fabrikam")


def test_what_one_home_serves_no_more_stays_for_the_others(opened: OpenStore, ours: Estate, theirs: Estate) -> None:
    assert [figures(each) for each in read_in(opened, {"prod": ours, "emea": theirs})] == [(3, 0, 0, 0)] * 2
    assert [figures(each) for each in read_in(opened, {"emea": theirs})] == [(0, 0, 3, 0)]
    (prod,) = read_in(opened, {"prod": ours}, formerly_served=["prod", "emea"])
    assert (figures(prod), prod.served) == ((0, 0, 3, 0), True)
    assert titles(opened) == cases("prod", "woodgrove") | cases("emea", "fabrikam")


def test_what_an_earlier_version_stored_goes_to_the_workspace_that_has_it(
    opened: OpenStore, theirs: Estate, empty: Estate, tmp_path: Path
) -> None:
    """It stored the name alone. The first one that lists the same incidents, by their GUIDs, is whose they are."""
    with estate(tmp_path / "workspace", rows("woodgrove")) as ours:
        earlier = {"shared": False, "formerly_served": ()}
        read_in(opened, {"default": ours, "nothing": empty}, **earlier)
        assert titles(opened) == cases("default", "woodgrove")
        for stranger in (theirs, empty):
            (report,) = read_in(opened, {"default": stranger})
            assert figures(report) == (0, 0, 0, 0)
            assert titles(opened) == cases("default", "woodgrove")
        ours.delete(2)
        (adopted,) = read_in(opened, {"default": ours})
        assert (figures(adopted), adopted.fault) == ((0, 2, 0, 1), "")
        (again,) = read_in(opened, {"default": ours})
        assert figures(again) == (0, 0, 2, 0)
        assert sorted(titles(opened)) == ["incident-1@default", "incident-3@default"]
        (refused,) = read_in(opened, {"default": empty})
        assert "another workspace" in refused.fault


def test_what_came_from_a_store_of_one_home_takes_the_name_of_its_workspace(
    opened: OpenStore, ours: Estate, tmp_path: Path
) -> None:
    with LocalStore(tmp_path / "knowledge.db") as local:
        ours.ingest(local)
        assert sorted(local.versions(Collection.INCIDENTS)) == ["incident-1", "incident-2", "incident-3"]
        with opened() as store:
            move(local, store)
    (report,) = read_in(opened, {"lab": ours})
    assert report.fault == ""
    assert titles(opened) == cases("lab", "woodgrove")


@pytest.mark.anyio
async def test_a_namesakes_incidents_are_not_shown_as_this_homes(
    opened: OpenStore, ours: Estate, theirs: Estate
) -> None:
    """Incident 1 of one home and incident 1 of another are cited alike where both call their workspace `default`."""
    import anyio.to_thread

    await anyio.to_thread.run_sync(read_in, opened, {"default": ours})
    await anyio.to_thread.run_sync(read_in, opened, {"fabrikam": theirs})
    with opened() as store:

        def tool(served: Estate) -> KnowledgeTools:
            ids = {"default": served.workspace_id}
            base = KnowledgeBase(lambda: OpenedStore(store, None), workspaces=tuple(ids), workspace_ids=ids)
            return KnowledgeTools(base)

        async def ask(served: Estate, **arguments: Any) -> Any:
            return await tool(served).call("search_knowledge_base", arguments, {})

        mine, other = [await ask(each, query="which case") for each in (ours, theirs)]
        assert {hit["citation"] for hit in mine.value["hits"]} >= {"incident-1@default", "incident-1@fabrikam"}
        assert not any("default" in remark for remark in mine.value["remarks"])
        assert {hit["citation"] for hit in other.value["hits"]} == {f"incident-{n}@fabrikam" for n in NUMBERS}
        assert any("another workspace that is named default" in remark for remark in other.value["remarks"])
        for arguments in ({"document": "incident-1@default"}, {"like_incident": "1@default"}, {"like_incident": "1"}):
            assert not (await ask(ours, **arguments)).is_error
            assert (await ask(theirs, **arguments)).is_error


TEAM, NIGHT = home_owner("11111111-aaaa-4000-8000-000000000001"), home_owner("22222222-bbbb-4000-8000-000000000002")


def folder(path: Path, **texts: str) -> Path:
    path.mkdir()
    for name, text in texts.items():
        (path / f"{name}.md").write_text(f"# {name.title()}\n\n{text}\n")
    return path


def test_playbooks_of_several_homes_stand_side_by_side(opened: OpenStore, tmp_path: Path) -> None:
    """Everybody has a phishing.md: the team's, the night shift's, and the one that comes with the product."""
    team = folder(tmp_path / "team", phishing="apple", zebra="zebrafish")
    night = folder(tmp_path / "night", phishing="plum")
    shipped = folder(tmp_path / "shipped", phishing="stone", ransomware="granite")

    def ingested(owner: PlaybookOwner, place: Path) -> tuple[int, int, int, int]:
        with opened() as store:
            done = ingest_folder(store, None, place, owner=owner, replaces=True).ingested
            return done.added, done.changed, done.unchanged, done.removed

    def found(word: str) -> list[str]:
        with opened() as store:
            return by_words(store, word)

    assert [ingested(TEAM, team), ingested(SHIPPED, shipped), ingested(NIGHT, night)] == [
        (2, 0, 0, 0),
        (2, 0, 0, 0),
        (1, 0, 0, 0),
    ]
    assert [ingested(TEAM, team), ingested(SHIPPED, shipped), ingested(NIGHT, night)] == [
        (0, 0, 2, 0),
        (0, 0, 2, 0),
        (0, 0, 1, 0),
    ]
    with opened() as store:
        ids = [found(word)[0] for word in ("apple", "plum", "stone")]
        assert len(set(ids)) == 3
        assert {e.document.source for e in store.entries(Collection.PLAYBOOKS, ids)} == {"phishing.md"}
    (team / "zebra.md").unlink()
    (team / "phishing.md").write_text("# Phishing\n\napricot\n")
    assert ingested(TEAM, team) == (0, 1, 0, 1)
    assert [bool(found(word)) for word in ("zebrafish", "apple", "apricot", "plum", "stone", "granite")] == [
        False,
        False,
        True,
        True,
        True,
        True,
    ]
    (shipped / "ransomware.md").unlink()  # an installation of another version, with fewer of them
    assert ingested(SHIPPED, shipped) == (0, 0, 1, 0)
    assert found("granite") == ["ransomware.md"]
    (team / "phishing.md").write_bytes(b"half\0written")  # it cannot be read now: its last version stays
    assert ingested(TEAM, team) == (0, 0, 0, 0)
    assert found("apricot") == ids[:1]


def test_playbooks_that_an_earlier_version_stored_are_taken_over_by_their_home(
    opened: OpenStore, tmp_path: Path
) -> None:
    team, night = folder(tmp_path / "team", zebra="zebrafish"), folder(tmp_path / "night", owl="owl")
    with opened() as store:
        ingest_folder(store, None, team)
        (earlier,) = store.versions(Collection.PLAYBOOKS)
        ingest_folder(store, None, night, owner=NIGHT)
        assert by_words(store, "zebrafish") == [earlier] == ["zebra.md"]
        ingest_folder(store, None, team, owner=TEAM)
        assert store.versions(Collection.PLAYBOOKS)[earlier].etag == TEAM.name
        assert len(store.versions(Collection.PLAYBOOKS)) == 2
        ingest_folder(store, None, folder(tmp_path / "other", zebra="stripes"), owner=NIGHT)
        assert by_words(store, "zebrafish") == [earlier]
        assert len(by_words(store, "stripes")) == 1
