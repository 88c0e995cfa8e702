"""Whether knowledge in PostgreSQL is found as well as in the local store, and how much its HNSW index misses.

Both hold the techniques of MITRE ATT&CK, brought over by `move`, and are asked the questions of `knowledge_sets`. The
index is measured against a comparison with every vector, on vectors of real texts; noise makes many of few.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from tests.support.postgres_server import PostgresServer, running_postgres

from bench.harness import write
from bench.knowledge_sets import Question, attack, interval, ndcg, technique_questions
from sentinel_rag.knowledge.chunking import Chunk
from sentinel_rag.knowledge.documents import Collection, Document
from sentinel_rag.knowledge.embedding.minilm import MiniLm
from sentinel_rag.knowledge.ingestion import ingest
from sentinel_rag.knowledge.moving import move
from sentinel_rag.knowledge.search import KnowledgeSearch
from sentinel_rag.knowledge.stores import KnowledgeStore, LocalStore, StoreEntry, Wanted
from sentinel_rag.knowledge.stores.pgvector import PgVectorStore

SIZE = int(os.environ.get("SIZE", "20000"))
NOISE = 0.03
"""Standard deviation added to each of 384 numbers of a vector of length 1: as far as paraphrases are apart."""
WAYS = ("words", "meaning", "hybrid")


def scores(store: KnowledgeStore, model: MiniLm, questions: list[Question]) -> dict[str, list[float]]:
    """nDCG@10 of each question, each way."""
    search = KnowledgeSearch(store, model)
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    for question in questions:
        words = store.by_words(question.text, Wanted(), 50)
        meaning = store.by_vector(model.space, model.embed_query(question.text), Wanted(), 50)
        hits = search.search(question.text, Wanted(), limit=50).hits
        for way, chunks in (
            ("words", store.load([each.key for each in words], frozenset())),
            ("meaning", store.load([each.key for each in meaning], frozenset())),
            ("hybrid", [hit.chunk for hit in hits]),
        ):
            found[way].append(ndcg(question, list(dict.fromkeys(chunk.document_id for chunk in chunks))))
    return found


def index_recall(server: PostgresServer, model: MiniLm, real: np.ndarray, questions: list[Question]) -> dict[str, Any]:
    """Of the ten nearest of SIZE vectors, those that the index finds."""
    random = np.random.default_rng(6)
    vectors = real[random.integers(0, len(real), SIZE)] + random.standard_normal((SIZE, real.shape[1])) * NOISE
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    asked = np.stack([model.embed_query(each.text) for each in questions])
    with PgVectorStore(server.url, "index_recall") as store:
        began = time.perf_counter()
        for start in range(0, SIZE, 1_000):
            chunks = [Chunk(0, (), 1, f"text {n}", f"text {n}") for n in range(start, min(SIZE, start + 1_000))]
            store.keep_vectors(model.space, {each.search_hash: vectors[start + n] for n, each in enumerate(chunks)})
            documents = [Document(f"{start + n}", Collection.PLAYBOOKS, "", "", ()) for n in range(len(chunks))]
            store.put([StoreEntry(each, (chunk,)) for each, chunk in zip(documents, chunks, strict=True)], model.space)
        seconds = time.perf_counter() - began
        hit = 0
        for query in asked:
            expected = {str(n) for n in np.argsort(-(vectors @ query))[:10]}
            found = store.load([each.key for each in store.by_vector(model.space, query, Wanted(), 10)], frozenset())
            hit += len(expected & {chunk.document_id for chunk in found})
    return {
        "chunks": SIZE,
        "recall_at_10": round(hit / (10 * len(asked)), 3),
        "chunks_a_second_with_index": round(SIZE / seconds),
    }


def main() -> None:
    model = MiniLm()
    questions = [*technique_questions("attack_techniques"), *technique_questions("attack_techniques_second")]
    documents, _ = attack()
    with (
        tempfile.TemporaryDirectory(prefix="knowledge-") as folder,
        running_postgres() as server,
        LocalStore(Path(folder) / "knowledge.db") as local,
        PgVectorStore(server.url, "quality") as store,
    ):
        ingest(local, model, Collection.PLAYBOOKS, documents, complete=True)
        moved = move(local, store)
        here, there = scores(local, model, questions), scores(store, model, questions)
        entries = local.entries(Collection.PLAYBOOKS, list(local.versions(Collection.PLAYBOOKS)))
        hashes = [chunk.search_hash for entry in entries for chunk in entry.chunks]
        real = np.stack(list(local.kept_vectors(model.space, hashes).values()))
        recall = index_recall(server, model, real, questions)
    measured = {
        "load_of_the_machine": [round(each, 1) for each in os.getloadavg()],
        "questions": len(questions),
        "documents": moved.moved,
        "chunks": moved.chunks,
        "ndcg_at_10": {
            way: {"local": round(statistics.mean(here[way]), 3), "pgvector": round(statistics.mean(there[way]), 3)}
            for way in WAYS
        },
        "pgvector_over_local_95": {way: interval(there[way], here[way]) for way in WAYS},
        "index": recall,
    }
    write("knowledge_pgvector", measured, claim="Knowledge in PostgreSQL is found as well as in the local store")


if __name__ == "__main__":
    main()
