"""The playbooks that a caller may read, as hits: each by its file, with its first part."""

from __future__ import annotations

from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.search import Hit, Similarity
from sentinel_rag.knowledge.stores.port import KnowledgeStore
from sentinel_rag.tools.knowledge.asked import Asked

MOST_LOOKED_AT = 1_000
"""Documents; where a caller may read few of very many, the list ends here and says so."""
NOT_RANKED = Similarity(None, None, (), (), ())


def playbook_list(store: KnowledgeStore, asked: Asked, readable: int) -> tuple[list[Hit], list[str]]:
    """At most `asked.limit` playbooks, and a remark if the caller may read more; `readable` is how many that are."""
    hits: list[Hit] = []
    for name in sorted(store.versions(Collection.PLAYBOOKS))[:MOST_LOOKED_AT]:
        if len(hits) == min(asked.limit, readable):
            break
        chunks = store.document_chunks(Collection.PLAYBOOKS, name, asked.wanted.readers)
        if chunks:
            hits.append(Hit(chunks[0], 0.0, NOT_RANKED))
    more = readable - len(hits)
    return hits, [f"There are {more:,} more; search for them by words."] if more > 0 else []
