"""The playbooks that there are: those that the caller may read, bounded, and nothing of the others."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_rag.contracts.knowledge_tools import MAX_LISTED, MAX_LISTED_CHARACTERS
from sentinel_rag.contracts.servers import READERS, row_labels_in
from sentinel_rag.knowledge.ingestion import ingest_folder
from sentinel_rag.knowledge.stores import LocalStore
from sentinel_rag.tools.knowledge.knowledge_base import KnowledgeBase, OpenedStore
from sentinel_rag.tools.knowledge.knowledge_tools import KnowledgeTools

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeTools:
    folder = tmp_path_factory.mktemp("listed")
    for number in range(MAX_LISTED + 5):
        (folder / f"book-{number:03}.md").write_text(
            f"# Book {number}\n\n## Triage\n\n{'Look. ' * 100}\n\n## Scope\n\nMore.\n"
        )
    (folder / "a-closed.md").write_text("---\nreaders: [tier2]\n---\n# Closed\n\n## Triage\n\nFor the few.\n")
    store = LocalStore(folder.parent / "listed.db")
    ingest_folder(store, None, folder)
    return KnowledgeTools(KnowledgeBase(lambda: OpenedStore(store, None)))


async def listed(tool: KnowledgeTools, readers: tuple[str, ...] = (), **arguments: Any) -> Any:
    return await tool.call("search_knowledge_base", arguments, {READERS: list(readers)} if readers else {})


@pytest.mark.requirement("KNOW-3")
async def test_the_collection_alone_lists_its_playbooks_once_each(tool: KnowledgeTools) -> None:
    answer = await listed(tool, collection="playbooks")
    hits = answer.value["hits"]
    assert [hit["document_id"] for hit in hits] == [f"book-{number:03}.md" for number in range(MAX_LISTED)]
    assert answer.value["remarks"] == ["There are 5 more; search for them by words."]
    assert answer.value["freshness"]["playbooks"] == MAX_LISTED + 5
    assert all(len(hit["text"]) <= MAX_LISTED_CHARACTERS for hit in hits)
    assert len(row_labels_in(answer.meta) or ()) == MAX_LISTED
    few = await listed(tool, collection="playbooks", limit=2)
    assert [hit["title"] for hit in few.value["hits"]] == ["Book 0", "Book 1"]


@pytest.mark.requirement("KNOW-4")
async def test_a_playbook_of_others_is_neither_listed_nor_counted(tool: KnowledgeTools) -> None:
    few = await listed(tool, ("tier2",), collection="playbooks", limit=1)
    assert [hit["document_id"] for hit in few.value["hits"]] == ["a-closed.md"]
    assert few.value["freshness"]["playbooks"] == MAX_LISTED + 6


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"collection": "sentinel_incidents"},
        {"collection": "playbooks", "severity": "High"},
        {"collection": "playbooks", "query": " "},
        {"limit": 3},
    ],
)
async def test_nothing_else_lists(tool: KnowledgeTools, arguments: dict[str, Any]) -> None:
    answer = await listed(tool, **arguments)
    assert answer.is_error
    assert answer.value["field"] == "query"
