"""`sentinel knowledge search` and `rebuild`: the store of this home, looked up by you and not by the agent.

What is kept and found, the library `knowledge` knows; here it is printed. No policy applies to you on your own store,
and what is closed is found under the names of SENTINEL_READERS, as it is for the agent, which searches it through the
gateway.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sentinel_rag.app.knowledge_access import open_embedder, open_knowledge
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.settings import load_settings
from sentinel_rag.surfaces.cli._safe_text import safe, safe_cell

if TYPE_CHECKING:
    from sentinel_rag.knowledge.search import KnowledgeHit
    from sentinel_rag.knowledge.stores import KnowledgeStore, Wanted


def search(
    words: Sequence[str],
    *,
    collections: Sequence[str],
    severities: Sequence[str],
    techniques: Sequence[str],
    limit: int,
    as_json: bool,
) -> int:
    """Print the best chunks for a question; 3 if there is none."""
    from sentinel_rag.knowledge.documents import Collection
    from sentinel_rag.knowledge.search import KnowledgeSearch
    from sentinel_rag.knowledge.stores import Wanted

    query = " ".join(words).strip() or sys.stdin.read().strip()
    if not query:
        raise UsageError("There is nothing to search for.", next_step='Write it behind the command: "stolen session".')
    settings = load_settings()
    wanted = Wanted(
        readers=frozenset(settings.readers),
        collections=frozenset(map(Collection, collections)) or frozenset(Collection),
        severities=frozenset(severities),
        techniques=frozenset(techniques),
    )
    with open_embedder(settings.embeddings) as model, open_knowledge(settings) as store:
        # A store without vectors is not asked for any: the model would be loaded for nothing.
        embedder = model.embedder if store.state().space else None
        without_vectors = embedder is None and model.embedder is not None
        answer = KnowledgeSearch(store, embedder).search(query, wanted, limit=limit)
        remarks = (*answer.remarks, *_closed(store, wanted))
    if as_json:
        print(json.dumps({"hits": [_as_json(hit) for hit in answer.hits], "remarks": list(remarks)}, indent=2))
    else:
        for number, hit in enumerate(answer.hits, 1):
            print(f"[{number}] {safe_cell(hit.citation)} (line or page {hit.chunk.place})")
            print(f"    {safe_cell(_why(hit))}")
            print("\n".join(f"    {line}" for line in safe(hit.chunk.text).split("\n")) + "\n")
        for remark in remarks:
            print(safe_cell(remark))
        if without_vectors:
            print("No vectors were made yet. Run: sentinel knowledge ingest")
        if not answer.hits:
            print("Nothing fits. `sentinel knowledge status` says what is in the store.")
    return 0 if answer.hits else 3


def rebuild(*, as_json: bool) -> int:
    """Embed everything anew with the model that is here."""
    settings = load_settings()
    with open_embedder(settings.embeddings) as model:
        embedder = model.embedder
        if embedder is None:
            raise UnavailableError(
                model.lacking or "SENTINEL_EMBEDDINGS=none: there is no model to embed with.",
                next_step=model.next_step or "Set SENTINEL_EMBEDDINGS=local, or leave it out.",
            )
        with open_knowledge(settings) as store:
            count = store.re_embed(embedder.space, embedder.embed_documents, batch=embedder.batch)
    if as_json:
        print(json.dumps({"embedded": count, "vectors": str(embedder.space)}))
    else:
        print(f"{count:,} texts embedded; the store holds vectors of {safe_cell(str(embedder.space))} now.")
    return 0


def _closed(store: KnowledgeStore, wanted: Wanted) -> Iterator[str]:
    """What was left out because it is closed, so that nobody takes it for lost."""
    held, readable = store.state().documents, store.readable(wanted.readers)
    closed = sum(held[each] - readable[each] for each in wanted.collections)
    if closed:
        names = ", ".join(sorted(wanted.readers)) or "nobody, since it is not set"
        yield (
            f"{closed:,} document{' is' if closed == 1 else 's are'} closed to the names in SENTINEL_READERS ({names}) "
            "and not searched."
        )


def _why(hit: KnowledgeHit) -> str:
    parts = [f"by words: {hit.why.by_words or '-'}", f"by meaning: {hit.why.by_meaning or '-'}"]
    shared = (*hit.why.techniques, *hit.why.entities, *hit.why.tactics, *hit.why.words)
    return ", ".join(parts) + (f"; has {', '.join(shared[:12])}" if shared else "")


def _as_json(hit: KnowledgeHit) -> dict[str, JsonValue]:
    return {
        "citation": hit.citation,
        "title": hit.chunk.title,
        "collection": hit.chunk.collection.value,
        "place": hit.chunk.place,
        "text": hit.chunk.text,
        "score": hit.score,
        "by_words": hit.why.by_words,
        "by_meaning": hit.why.by_meaning,
        "shared": [*hit.why.techniques, *hit.why.entities, *hit.why.tactics, *hit.why.words],
        "alike": list(hit.alike),
        "label": {**hit.chunk.label.to_dict()},
    }
