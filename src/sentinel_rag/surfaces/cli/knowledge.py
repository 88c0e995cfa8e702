"""`sentinel knowledge`: playbooks into the store of this home, and looked up there, by you and not by the agent.

What is read, kept and found, the library `knowledge` knows; here its reports are printed. No policy applies to you on
your own store; the agent will search it through the Interceptor.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sentinel_rag.assembly.knowledge_access import (
    knowledge_place,
    open_embedder,
    open_knowledge,
    shipped_playbooks,
)
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.settings import load_settings
from sentinel_rag.surfaces.cli._safe_text import safe, safe_cell

if TYPE_CHECKING:
    from sentinel_rag.knowledge.ingestion import IngestReport, ReportListener
    from sentinel_rag.knowledge.search import Hit


def ingest(folder: str | None, *, as_json: bool) -> int:
    """Bring the playbooks up to a folder; 2 if a file could not be read, 3 if there is nothing in it."""
    from sentinel_rag.knowledge.folder_ingestion import ingest_folder

    place = shipped_playbooks() if folder is None else Path(folder).expanduser()
    if not place.is_dir():
        raise UsageError(f"There is no folder {place}.", next_step="Name a folder with playbooks.")
    settings = load_settings()
    with open_embedder(settings.embeddings) as model, open_knowledge(settings) as store:
        space = store.state().space
        if space is not None and model.lacking:
            raise UnavailableError(f"The store holds vectors of {space}. {model.lacking}", next_step=model.next_step)
        with _progress(sys.stderr.isatty() and not as_json) as listener:
            report = ingest_folder(store, model.embedder, place, listener=listener)
    done = report.ingested
    if as_json:
        files = [{"source": each.source, "outcome": each.outcome.value, "said": each.said} for each in report.told]
        figures: dict[str, JsonValue] = {
            "added": done.added,
            "changed": done.changed,
            "unchanged": done.unchanged,
            "removed": done.removed,
            "chunks": done.chunks,
            "embedded": done.embedded,
        }
        print(json.dumps({**figures, "by_words_only": model.embedder is None, "told": files}, indent=2))
    else:
        for each in report.told:
            print(safe_cell(each.line))
        print(
            f"Playbooks of {safe_cell(str(place))}: {done.added:,} new, {done.changed:,} changed, "
            f"{done.unchanged:,} as before, {done.removed:,} removed; "
            f"{done.chunks:,} chunks, {done.embedded:,} embedded."
        )
        if model.lacking:
            print(f"Found by words only for now. {safe(model.lacking)}")
            print(f"  Next: {safe(model.next_step)}; then: sentinel knowledge rebuild")
    if report.faults:
        return 2
    return 0 if done.added + done.changed + done.unchanged else 3


def status(*, as_json: bool) -> int:
    """What the store holds, and which model is here."""
    settings = load_settings()
    with open_embedder(settings.embeddings) as in_use, open_knowledge(settings) as store:
        state = store.state()
    place = knowledge_place(settings)
    space = None if in_use.embedder is None else in_use.embedder.space
    model = None if space is None else str(space)
    if as_json:
        collections = {
            each.value: {"documents": state.documents[each], "chunks": state.chunks[each]} for each in state.documents
        }
        vectors = None if state.space is None else str(state.space)
        told = {"store": place, "collections": collections, "vectors": vectors, "model": model}
        print(json.dumps(told, indent=2))
        return 0
    print(f"store    {safe_cell(place)}")
    for each, documents in state.documents.items():
        print(f"{each.value:<20} {documents:,} documents, {state.chunks[each]:,} chunks")
    print(f"vectors  {'none: found by words only' if state.space is None else safe_cell(str(state.space))}")
    lacking = f"{in_use.lacking} {in_use.next_step}" if in_use.lacking else "none"
    print(f"model    {safe_cell(model or lacking)}")
    if space is not None and state.space != space and any(state.documents.values()):
        print("These two differ. Run: sentinel knowledge rebuild")
    return 0


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
    wanted = Wanted(
        collections=frozenset(map(Collection, collections)) or frozenset(Collection),
        severities=frozenset(severities),
        techniques=frozenset(techniques),
    )
    settings = load_settings()
    with open_embedder(settings.embeddings) as model, open_knowledge(settings) as store:
        # A store without vectors is not asked for any: the model would be loaded for nothing.
        embedder = model.embedder if store.state().space else None
        answer = KnowledgeSearch(store, embedder).search(query, wanted, limit=limit)
    if as_json:
        print(json.dumps({"hits": [_as_json(hit) for hit in answer.hits], "remarks": list(answer.remarks)}, indent=2))
    else:
        for number, hit in enumerate(answer.hits, 1):
            print(f"[{number}] {safe_cell(hit.citation)} (line or page {hit.chunk.place})")
            print(f"    {safe_cell(_why(hit))}")
            print("\n".join(f"    {line}" for line in safe(hit.chunk.text).split("\n")) + "\n")
        for remark in answer.remarks:
            print(safe_cell(remark))
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


@contextmanager
def _progress(shown: bool) -> Iterator[ReportListener | None]:
    """A line that tells how far it is, over and over in its place; nothing where nobody watches."""

    def tell(report: IngestReport) -> None:
        rate = report.chunks / report.seconds if report.seconds else 0.0
        documents = report.added + report.changed + report.unchanged
        print(f"\r{documents:,} playbooks, {report.chunks:,} chunks, {rate:.0f} a second ", end="", file=sys.stderr)

    yield tell if shown else None
    if shown:
        print("\r\x1b[K", end="", file=sys.stderr)


def _why(hit: Hit) -> str:
    parts = [f"by words: {hit.why.by_words or '-'}", f"by meaning: {hit.why.by_meaning or '-'}"]
    shared = (*hit.why.techniques, *hit.why.entities, *hit.why.words)
    return ", ".join(parts) + (f"; has {', '.join(shared[:12])}" if shared else "")


def _as_json(hit: Hit) -> dict[str, JsonValue]:
    return {
        "citation": hit.citation,
        "title": hit.chunk.title,
        "collection": hit.chunk.collection.value,
        "place": hit.chunk.place,
        "text": hit.chunk.text,
        "score": hit.score,
        "by_words": hit.why.by_words,
        "by_meaning": hit.why.by_meaning,
        "shared": [*hit.why.techniques, *hit.why.entities, *hit.why.words],
        "label": {**hit.chunk.label.to_dict()},
    }
