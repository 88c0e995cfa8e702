"""The processes of `ingest_crash`: one that reads made-up incidents into a store until it is killed, one that searches.

They share the store's file and nothing else. The one that writes prints a line before each batch of texts and goes on
when it is given one, or when its input has ended, so that whoever watches can kill it at any of them; the one that
reads searches until its input ends, then tells what it met.
"""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.knowledge.documents import Document, IncidentRecord, incident_document
from sentinel_rag.knowledge.incident_ingestion import (
    IncidentListing,
    ListedIncident,
    ReadIncident,
    StoredIncident,
    ingest_incidents,
)
from sentinel_rag.knowledge.ingestion import IngestLock
from sentinel_rag.knowledge.search import KnowledgeSearch
from sentinel_rag.knowledge.stores import LocalStore, Wanted
from sentinel_rag.knowledge.stores.port import Vector, VectorSpace

SPACE = VectorSpace("made of hashes", 32)
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
_PAUSE_S = 0.03


def vector_of(text: str) -> Vector:
    """A direction of the text's own: nothing else is as near to it as it is itself."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    return np.random.default_rng(seed).standard_normal(SPACE.dimensions).astype(np.float32)


class MadeIncidents:
    """`count` incidents in two generations: in the second each third one was changed and each tenth one is gone."""

    workspace = "made"
    workspace_id = "5b1f1ae4-5a3c-4c7e-9d2a-3b8b6f1f0d11"

    def __init__(self, count: int, generation: int) -> None:
        self._generation = generation
        self.numbers = [n for n in range(1, count + 1) if generation == 1 or n % 10]

    def listing(self, since: datetime) -> IncidentListing:
        return IncidentListing(tuple(map(self._listed, self.numbers)), complete=True)

    def details(self, incidents: Sequence[ListedIncident]) -> list[ReadIncident]:
        return [ReadIncident(each.record, True) for each in incidents]

    def gone(self, names: Sequence[str]) -> frozenset[str]:
        return frozenset()

    def documents(self) -> Iterator[Document]:
        """As the store must hold them in the end."""
        for number in self.numbers:
            listed = self._listed(number)
            yield incident_document(replace(listed.record, etag=listed.version.text))

    def _listed(self, number: int) -> ListedIncident:
        changed = self._generation == 2 and number % 3 == 0
        created = FIRST + timedelta(hours=number)
        record = IncidentRecord(
            number=number,
            title=f"Case {number} of rule {number % 17}",
            severity="High" if number % 5 == 0 else "Low",
            status="Closed" if changed else "New",
            description=f"Searchable description number {number}. " * 3,
            created=created,
            alerts=tuple(f"alert {number}-{n}" for n in range(3)),
            entities=(("host", f"host-{number}"), ("account", f"user-{number % 40}")),
            classification="TruePositive" if changed else "",
            classification_comment=f"closed, number {number}" if changed else "",
            comments=tuple(f"comment {n} on {number}" for n in range(number % 4)),
        )
        version = StoredIncident("made", f"guid-{number}", f'"{number}-{changed}"', created=created.isoformat())
        return ListedIncident(version, record)


class TellingEmbedder:
    """Vectors of hashes, and a line before each batch: how many texts were embedded until then. Each batch waits for a
    line in turn, or for the end of the input: one who is slow to look must not find that the run is over."""

    space = SPACE
    batch = 16

    def __init__(self) -> None:
        self.embedded = 0

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        print(self.embedded, flush=True)
        sys.stdin.readline()
        self.embedded += len(texts)
        return np.stack([vector_of(text) for text in texts])

    def embed_query(self, text: str) -> Vector:
        return vector_of(text)


def ingest(path: Path, count: int, generation: int) -> None:
    """Read them in; the last line is what became of it, as JSON."""
    embedder = TellingEmbedder()
    with IngestLock(path.with_name("ingest.lock")).hold("a crash trial"), LocalStore(path) as store:
        (report,) = ingest_incidents(store, embedder, [MadeIncidents(count, generation)], since=FIRST)
    print(json.dumps({"fault": report.fault, "embedded": embedder.embedded, "removed": report.ingested.removed}))


def read(path: Path) -> None:
    """Search by words and by vectors until the input ends, and load what was found; then tell how often, and every
    sentence that was met instead of an answer."""
    ended = threading.Event()

    def until_input_ends() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=until_input_ends, daemon=True).start()
    searches, with_hits, failures = 0, 0, list[str]()
    with LocalStore(path) as store:
        print("ready", flush=True)
        search = KnowledgeSearch(store, TellingQuestions())
        while not ended.wait(_PAUSE_S):
            searches += 1
            number = searches * 7 % 300 + 1
            try:
                found = search.search(f"searchable description number {number} host-{number}", Wanted(), limit=5)
                with_hits += bool(found.hits)
                for hit in found.hits:
                    if not hit.chunk.text:
                        failures.append(f"a chunk of {hit.citation} came without its text")
            except SentinelError as error:
                failures.append(str(error))
    print(json.dumps({"searches": searches, "with_hits": with_hits, "failures": failures}))


class TellingQuestions(TellingEmbedder):
    """The same vectors for questions; nothing is printed."""

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        return np.stack([vector_of(text) for text in texts])


if __name__ == "__main__":
    role, file, *numbers = sys.argv[1:]
    if role == "read":
        read(Path(file))
    else:
        ingest(Path(file), *map(int, numbers))
