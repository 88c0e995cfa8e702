"""One document of the knowledge base, read in its order; what the caller may not read is not there."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.contracts.servers import READERS, row_labels_in
from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.documents.incidents import IncidentRecord, incident_document
from sentinel_rag.knowledge.ingestion import ingest, ingest_folder
from sentinel_rag.knowledge.stores import LocalStore
from sentinel_rag.tools.knowledge.knowledge_base import KnowledgeBase, OpenedStore
from sentinel_rag.tools.knowledge.knowledge_tools import KnowledgeTools

pytestmark = pytest.mark.anyio
PLAYBOOK = "# House rules\n\n## One\n\nFirst.\n\n## Two\n\nSecond.\n\n### Deep\n\nDeeper.\n\n## Three\n\nThird.\n"
CLOSED = "---\nreaders: [tier2]\n---\n# Closed\n\n## Secret\n\nFor the few.\n"


@pytest.fixture
def tool(tmp_path: Path) -> KnowledgeTools:
    folder = tmp_path / "playbooks"
    folder.mkdir()
    (folder / "house.md").write_text(PLAYBOOK)
    (folder / "closed.md").write_text(CLOSED)
    (folder / "twice.md").write_text("# Twice\n\n## A\n\n### Steps\n\nOne.\n\n## B\n\n### Steps\n\nTwo.\n")
    (folder / "long.md").write_text("# Long\n\n" + "".join(f"## Part {n}\n\nText {n}.\n\n" for n in range(30)))
    store = LocalStore(tmp_path / "knowledge.db")
    ingest_folder(store, None, folder)
    record = IncidentRecord(number=4, title="Spray", created=datetime(2024, 5, 2, tzinfo=UTC), comments=("Noted.",))
    ingest(store, None, Collection.INCIDENTS, [incident_document(record)], complete=False)
    return KnowledgeTools(KnowledgeBase(lambda: OpenedStore(store, None)))


async def read(tool: KnowledgeTools, readers: tuple[str, ...] = (), **arguments: Any) -> Any:
    return await tool.call("search_knowledge_base", arguments, {READERS: list(readers)} if readers else {})


def sections(answer: Any) -> list[str]:
    return [hit["section"].rpartition(" > ")[2] for hit in answer.value["hits"]]


@pytest.mark.requirement("KNOW-3")
async def test_a_document_comes_in_its_order_and_from_a_section_on(tool: KnowledgeTools) -> None:
    whole = await read(tool, document="house.md")
    assert sections(whole) == ["One", "Two", "Deep", "Three"]
    assert whole.value["remarks"] == []
    assert len(row_labels_in(whole.meta) or ()) == 4
    later = await read(tool, document="house.md", section="House rules > Two > Deep")
    assert sections(later) == ["Deep", "Three"]
    past = await read(tool, document="incident-4")
    assert {hit["citation"] for hit in past.value["hits"]} == {"incident-4"}
    assert any("Noted." in hit["text"] for hit in past.value["hits"])


@pytest.mark.parametrize("section", ["deep", "Two > Deep", "house.md > House rules > Two > Deep"])
async def test_a_section_is_known_by_the_end_of_its_path(tool: KnowledgeTools, section: str) -> None:
    assert sections(await read(tool, document="house.md", section=section)) == ["Deep", "Three"]


async def test_where_no_section_fits_or_several_those_that_there_are_come_with_their_labels(
    tool: KnowledgeTools,
) -> None:
    none = await read(tool, document="house.md", section="House rules > Four")
    assert not none.is_error
    assert sections(none) == ["One", "Two", "Deep", "Three"]
    assert "no such section" in none.value["remarks"][0]
    assert len(row_labels_in(none.meta) or ()) == 4
    several = await read(tool, document="twice.md", section="Steps")
    assert [hit["section"] for hit in several.value["hits"]] == ["Twice > A > Steps", "Twice > B > Steps"]
    assert "Several sections" in several.value["remarks"][0]


async def test_a_long_document_goes_on_where_it_ended(tool: KnowledgeTools) -> None:
    first = await read(tool, document="long.md", limit=20)
    assert first.value["remarks"] == ["The document goes on: 10 more parts."]
    rest = await read(tool, document="long.md", section=first.value["hits"][-1]["section"], limit=20)
    assert sections(rest)[0] == sections(first)[-1]
    assert sections(rest)[-1] == "Part 29"


@pytest.mark.requirement("KNOW-4")
async def test_a_closed_document_and_none_look_the_same(tool: KnowledgeTools) -> None:
    closed = await read(tool, document="closed.md")
    none = await read(tool, document="nowhere.md")
    assert closed.is_error
    assert closed.value == none.value
    assert sections(await read(tool, ("tier2",), document="closed.md")) == ["Secret"]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"section": "One"}, "document"),
        ({"document": " "}, "document"),
        ({"document": "house.md", "query": "x"}, "query"),
        ({"document": "house.md", "like_incident": "4"}, "like_incident"),
        ({"document": "house.md", "severity": "High"}, "severity"),
        ({"document": "../house.md"}, "document"),
    ],
)
async def test_what_cannot_be_read_is_one_clear_refusal(
    tool: KnowledgeTools, arguments: dict[str, Any], field: str
) -> None:
    answer = await read(tool, **arguments)
    assert answer.is_error
    assert answer.value["field"] == field
    assert answer.value["next_step"]
    assert "House" not in str(answer.value), "a refusal carries no label, so it tells nothing of a document"
