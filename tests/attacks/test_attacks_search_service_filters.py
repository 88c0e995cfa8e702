"""Attack: names that turn a filter of the search service into another. The attacker controls whatever reaches a filter:
names of readers, severities, techniques, tactics, keys of hits, ids of documents.

Refused: every chunk that the name, taken as it is written, does not allow. A permission is part of the same filter, so
one quote that got through would read everybody's documents. The store is asked directly, below the gateway: whose
record of the call is tested there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from tests.support.azure_search import running_azure_search

from sentinel_rag.knowledge.chunking import chunks_of
from sentinel_rag.knowledge.documents import BlockKind, Collection, Document, DocumentBlock, DocumentSection, Facets
from sentinel_rag.knowledge.stores import StoreEntry, Wanted
from sentinel_rag_azure_search.connection import SearchConnection
from sentinel_rag_azure_search.store import AzureSearchStore
from sentinel_rag_azure_search.wire import SearchEndpoint

pytestmark = pytest.mark.requirement("KNOW-4")
PAYLOADS = (
    "tier3|hr",
    "tier3,hr",
    "hr;tier3",
    "|hr|",
    " hr ",
    "HR",
    "hr'",
    "' or kind eq 'chunk",
    "x') or true or search.in(v, 'hr",
    "x'', '|')) or readers/any(v: v eq 'hr",
    "%27 or true",
    "\\' or true or v eq \\'",
    "*' or 'a' eq 'a",
    "h\0r",
    "",
    "~^,;|hr",
)


class _Key:
    async def headers(self) -> Mapping[str, str]:
        return {"api-key": "double-key"}


@pytest.fixture(scope="module")
def store() -> Iterator[AzureSearchStore]:
    """A secret of `hr`, and one document for each payload as a reader."""
    section = DocumentSection((), (DocumentBlock(BlockKind.PARAGRAPH, "apple", 1),))

    def playbook(name: str, reader: str) -> StoreEntry:
        facets = Facets(("T1566",), ("Impact",), "High", "Closed", "TruePositive")
        made = Document(name, Collection.PLAYBOOKS, "", name, (section,), facets, readers=frozenset({reader}))
        return StoreEntry(made, chunks_of(made))

    with running_azure_search() as (url, _):
        connection = SearchConnection(SearchEndpoint(url, "kb"), _Key())
        with AzureSearchStore(connection) as store:
            payloads = [playbook(f"payload {n}", payload) for n, payload in enumerate(PAYLOADS)]
            store.put([playbook("secret", "hr"), *payloads], None)
            yield store


def readable(store: AzureSearchStore, wanted: Wanted) -> set[str]:
    keys = [found.key for found in store.by_words("apple", wanted, 100)]
    return {chunk.document_id for chunk in store.load(keys, wanted.readers)}


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_name_of_a_reader_is_that_name_and_nothing_else(store: AzureSearchStore, payload: str) -> None:
    mine = {f"payload {PAYLOADS.index(payload)}"}
    assert readable(store, Wanted(readers=frozenset({payload}))) == mine
    for other in ("tier1", "a'b|c,d;e~f^g"):
        assert readable(store, Wanted(readers=frozenset({payload, other}))) == mine
    assert readable(store, Wanted(readers=frozenset({payload, "hr"}))) == {*mine, "secret"}
    assert store.readable(frozenset({payload}))[Collection.PLAYBOOKS] == 1


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_filter_or_a_key_lets_nothing_more_through(store: AzureSearchStore, payload: str) -> None:
    chosen = frozenset({payload})
    for wanted in (
        Wanted(severities=chosen),
        Wanted(statuses=chosen),
        Wanted(classifications=chosen),
        Wanted(techniques=chosen),
        Wanted(tactics=chosen),
    ):
        assert readable(store, wanted) == set()
    assert store.load([payload, f"{payload}' or key ne '"], frozenset()) == []
    assert store.document_chunks(Collection.PLAYBOOKS, payload, frozenset()) == []
    assert store.entries(Collection.PLAYBOOKS, [payload]) == []
    assert store.remove(Collection.PLAYBOOKS, [payload]) == 0
    assert store.by_words(payload, Wanted(), 5) == () or readable(store, Wanted()) == set()
