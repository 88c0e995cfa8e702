"""Past incidents of one workspace are never told as another's: the sample estate's not as those of somebody's exports.

In a store of one home an incident's id names its workspace only where several were read in, so the number alone would
say that it is one of the workspace that is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from incident_estate import END, Estate, estate, ingest_estates

from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.ingestion import IngestFiles, WorkspaceRecord, write_ingest_record
from sentinel_rag.knowledge.stores import KnowledgeStore, LocalStore
from sentinel_rag.tools.knowledge import KnowledgeBase, OpenedStore
from sentinel_rag.tools.knowledge.ingestion import IncidentIngest, Refreshing, WorkspacesToRead
from sentinel_rag.tools.knowledge.knowledge_tools import KnowledgeTools

pytestmark = [pytest.mark.requirement("KNOW-3"), pytest.mark.anyio]


def incident(number: int, title: str) -> dict[str, Any]:
    time = f"2025-03-{number:02}T10:00:00Z"
    return {
        "TimeGenerated": time,
        "CreatedTime": time,
        "LastModifiedTime": time,
        "IncidentNumber": number,
        "IncidentName": f"00000000-0000-4000-8000-{sum(title.encode()):08}{number:04}",
        "Title": title,
        "Severity": "High",
        "Status": "New",
    }


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    rows = [incident(number, "Phishing of the sample") for number in (1, 2, 3)]
    with estate(tmp_path_factory.mktemp("sample") / "workspace", {"SecurityIncident": rows}) as served:
        yield served


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    rows = [incident(number, "Phishing of our own") for number in (1, 7)]
    with estate(tmp_path_factory.mktemp("own") / "workspace", {"SecurityIncident": rows}) as served:
        yield served


@pytest.fixture
def store(tmp_path: Path) -> Iterator[KnowledgeStore]:
    with LocalStore(tmp_path / "knowledge.db") as opened:
        yield opened


async def ask(store: KnowledgeStore, *served: str, **arguments: Any) -> Any:
    base = KnowledgeBase(lambda: OpenedStore(store, None), workspaces=served)
    return await KnowledgeTools(base).call("search_knowledge_base", arguments, {})


async def read_in(store: KnowledgeStore, estates: dict[str, Estate]) -> None:
    import anyio.to_thread

    await anyio.to_thread.run_sync(lambda: ingest_estates(store, None, estates))


def citations(answer: Any) -> set[str]:
    return {hit["citation"] for hit in answer.value["hits"]}


async def test_what_was_read_in_of_the_sample_is_not_told_as_ones_own(store: KnowledgeStore, sample: Estate) -> None:
    """`sentinel demo`, then `sentinel workspace import`, then "have we seen this before?"."""
    await read_in(store, {"sample": sample})
    shown = await ask(store, "sample", query="phishing")
    assert citations(shown) == {"incident-1", "incident-2", "incident-3"}
    hidden = await ask(store, "default", query="phishing")
    assert citations(hidden) == set()
    assert hidden.value["freshness"]["incidents"] == 0
    told = " ".join(hidden.value["remarks"])
    assert "incidents of the workspace sample, which is not asked here" in told
    assert "no past incidents to search yet; bring them in with: sentinel knowledge ingest" in told
    assert "Phishing" not in told
    for arguments in ({"document": "incident-1"}, {"like_incident": "1"}, {"like_incident": "1@default"}):
        assert not (await ask(store, "sample", **{**arguments, **_named(arguments, "sample")})).is_error
        refused = await ask(store, "default", **arguments)
        assert refused.is_error
        assert "Phishing" not in str(refused.value)


def _named(arguments: dict[str, str], workspace: str) -> dict[str, str]:
    return {name: value.replace("@default", f"@{workspace}") for name, value in arguments.items()}


async def test_ones_own_beside_what_was_left_of_another_workspace(
    store: KnowledgeStore, sample: Estate, own: Estate
) -> None:
    await read_in(store, {"sample": sample})
    await read_in(store, {"default": own})
    found = await ask(store, "default", query="phishing")
    assert citations(found) == {"incident-1", "incident-7"}
    assert {hit["title"] for hit in found.value["hits"]} == {"Phishing of our own"}
    assert found.value["freshness"]["incidents"] == 2


async def test_an_incident_is_found_by_the_name_of_its_workspace_where_its_id_does_not_tell_it(
    store: KnowledgeStore, sample: Estate
) -> None:
    """A question that names its workspace asks for `1@sample`, which one workspace alone keeps as `incident-1`."""
    await read_in(store, {"sample": sample})
    like = await ask(store, "sample", like_incident="1@sample")
    assert citations(like) == {"incident-2", "incident-3"}
    other = await ask(store, "sample", "emea", like_incident="1@emea")
    assert other.is_error


async def test_the_clock_reads_no_workspace_in_the_place_of_another(
    store: KnowledgeStore, sample: Estate, own: Estate, tmp_path: Path
) -> None:
    """`sentinel up --workspace sample` leaves alone what was read in of one's own."""
    await read_in(store, {"default": own})
    files = IngestFiles(tmp_path / "ingest.lock", tmp_path / "incidents.json", tmp_path / "playbooks.txt")
    write_ingest_record(files.record, [WorkspaceRecord("default", END, END, 2, 0, 90, "")])
    ran = []

    class Opening:
        async def __aenter__(self) -> WorkspacesToRead:
            ran.append("sample")
            return WorkspacesToRead([], {"sample": "It is not needed here."})

        async def __aexit__(self, *_: object) -> None: ...

    for served in (("sample",), ("default",)):
        base = KnowledgeBase(lambda: OpenedStore(store, None), workspaces=served)
        ingest = IncidentIngest(base, Opening, files, clock=lambda: END + timedelta(days=1))
        assert (ingest.as_of() == END) is (served == ("default",))
        before = len(ran)
        await Refreshing(_no_app, ingest, every_s=1.0).once()
        assert len(ran) - before == (served == ("default",))
    assert set(store.versions(Collection.INCIDENTS)) == {"incident-1", "incident-7"}


async def _no_app(*_: object) -> None: ...
