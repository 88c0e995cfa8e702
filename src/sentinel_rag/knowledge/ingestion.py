"""Documents into a store: only what changed, embedded once, in steps that a crash can part at any moment.

What was embedded is kept before the documents that need it, and documents are put a few at a time, each whole. So a
second run goes on where the first one ended, and search works in between. Above are the commands and the tool server.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Collection as SomeOf
from dataclasses import dataclass

from sentinel_rag.knowledge.chunking import chunks_of
from sentinel_rag.knowledge.documents import Collection, Document
from sentinel_rag.knowledge.embedding.port import Embedder
from sentinel_rag.knowledge.stores.port import KnowledgeStore, StoreEntry, Vector, Version, mismatch

_CHUNKS_AT_ONCE = 64
"""Documents are put together until they have so many chunks."""


@dataclass(frozen=True, slots=True)
class IngestReport:
    """How many documents were new, changed, as before, or gone from the source; chunks of those that were put; how many
    texts had to be embedded, for those and for what was there without vectors; seconds it took."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    chunks: int = 0
    embedded: int = 0
    seconds: float = 0.0


ReportListener = Callable[[IngestReport], None]
"""Called after each step with the figures so far."""


def ingest(
    store: KnowledgeStore,
    embedder: Embedder | None,
    collection: Collection,
    documents: Iterable[Document],
    *,
    complete: bool,
    unread: SomeOf[str] = (),
    listener: ReportListener | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> IngestReport:
    """Bring `collection` up to `documents`; those of another collection are refused with ValueError.

    `complete`: these are all there are, so what the store has beyond them is removed at the end, except `unread`: ids
    of what is there and could not be read now (asked at the end, so it may grow while `documents` are drawn). Raises
    EmbeddingMismatchError before anything is embedded, and whatever the documents, the model or the store raise; what
    was done until then stays, and the next run goes on from it. A store without vectors gets those of `embedder` first.
    """
    held = store.state()
    space = None if embedder is None else embedder.space
    if held.space is not None and held.space != space:
        raise mismatch(held.space, space)
    began = clock()
    counts = dict.fromkeys(("added", "changed", "unchanged", "removed", "chunks", "embedded"), 0)
    if embedder is not None:
        counts["embedded"] = give_vectors(store, embedder)
    versions = store.versions(collection)
    seen: set[str] = set()

    def told() -> IngestReport:
        report = IngestReport(**counts, seconds=clock() - began)
        if listener is not None:
            listener(report)
        return report

    def changed() -> Iterator[StoreEntry]:
        for document in documents:
            if document.collection is not collection:
                raise ValueError(f"{document.id} is of {document.collection.value}, not of {collection.value}")
            seen.add(document.id)
            if versions.get(document.id) == Version(document.content_hash, document.etag):
                counts["unchanged"] += 1
            else:
                yield StoreEntry(document, chunks_of(document))

    for entries in _steps(changed()):
        counts["embedded"] += _put(store, embedder, entries)
        for entry in entries:
            counts["changed" if entry.document.id in versions else "added"] += 1
            counts["chunks"] += len(entry.chunks)
        told()
    if complete:
        counts["removed"] = store.remove(
            collection, [name for name in versions if name not in seen and name not in unread]
        )
    return told()


def give_vectors(store: KnowledgeStore, embedder: Embedder, listener: Callable[[int, int], None] | None = None) -> int:
    """Vectors for a store that was filled by words alone; one that holds vectors, or nothing, is left as it is. What
    was embedded before an interruption is not embedded again. Returns how many texts were embedded.

    `listener` is called after each batch with how many texts were embedded, of at most how many.
    """
    held = store.state()
    if held.space is not None or not any(held.documents.values()):
        return 0
    total, done = sum(held.chunks.values()), 0

    def embed(texts: Sequence[str]) -> Vector:
        nonlocal done
        vectors = embedder.embed_documents(texts)
        done += len(texts)
        if listener is not None:
            listener(done, total)
        return vectors

    return store.re_embed(embedder.space, embed, batch=embedder.batch)


def _steps(entries: Iterable[StoreEntry]) -> Iterator[list[StoreEntry]]:
    """Entries a few at a time; a large document makes a step of its own."""
    step: list[StoreEntry] = []
    for entry in entries:
        step.append(entry)
        if sum(len(each.chunks) for each in step) >= _CHUNKS_AT_ONCE:
            yield step
            step = []
    if step:
        yield step


def _put(store: KnowledgeStore, embedder: Embedder | None, entries: Sequence[StoreEntry]) -> int:
    """Put the entries with the vectors that they need; how many texts were embedded for that."""
    space = None if embedder is None else embedder.space
    embedded = _embed(store, embedder, entries)
    try:
        store.put(entries, space)
    except KeyError:
        # A vector was kept when it was asked for, and another machine removed the last document with its text since.
        embedded += _embed(store, embedder, entries)
        store.put(entries, space)
    return embedded


def _embed(store: KnowledgeStore, embedder: Embedder | None, entries: Sequence[StoreEntry]) -> int:
    """See that a vector is kept for every chunk; how many texts were embedded for that."""
    if embedder is None:
        return 0
    texts = {chunk.search_hash: chunk.search_text for entry in entries for chunk in entry.chunks}
    missing = store.missing_vectors(embedder.space, texts.keys())
    wanted = [search_hash for search_hash in texts if search_hash in missing]
    for start in range(0, len(wanted), embedder.batch):
        part = wanted[start : start + embedder.batch]
        vectors = embedder.embed_documents([texts[search_hash] for search_hash in part])
        store.keep_vectors(embedder.space, dict(zip(part, vectors, strict=True)))
    return len(wanted)
