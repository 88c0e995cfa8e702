"""Documents and chunks as records of the index, and back.

A key holds the put that brought the record, so a new version never overwrites the old one: readers move from one to the
other in one step. What is filtered by is spelled evenly; what is told is kept as it came, as JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sentinel_rag.contracts.labels import Label
from sentinel_rag.knowledge.chunking import Chunk
from sentinel_rag.knowledge.documents import Collection, Document, Facets
from sentinel_rag.knowledge.stores.port import StoredChunk, StoreEntry
from sentinel_rag_azure_search.odata import microseconds
from sentinel_rag_azure_search.plain_text import original, plain
from sentinel_rag_azure_search.wire import foreign_records

CHUNK = "chunk"
HEAD = "document"
_LONGEST_NAME = 1_000
Record = dict[str, Any]

CHUNK_FIELDS = (
    "key",
    "collection",
    "document",
    "title",
    "source",
    "facets",
    "label",
    "number",
    "path",
    "place",
    "text",
)
"""What `stored_chunk` reads."""
ENTRY_FIELDS = (*CHUNK_FIELDS, "kind", "document_key", "search_text", "readers", "content_hash", "etag")
"""What `entries_of` reads."""


def document_key(collection: Collection, document_id: str) -> str:
    """A document's name within keys: letters and digits, whatever the id holds."""
    return hashlib.sha256(f"{collection.value}\n{document_id}".encode("utf-8", "surrogatepass")).hexdigest()[:40]


def records_of(entry: StoreEntry, put: str) -> Iterator[Record]:
    """The head of a document and its chunks, without vectors."""
    document = entry.document
    name = document_key(document.collection, document.id)
    shared = {
        **_told(document),
        "collection": document.collection.value,
        "document_key": name,
        "document": plain(document.id),
        "put": put,
        "retired": None,
    }
    yield {
        **shared,
        "key": f"d{name}-{put}-head",
        "kind": HEAD,
        "content_hash": entry.version.content_hash,
        "etag": plain(entry.version.etag),
    }
    for chunk in entry.chunks:
        yield {
            **shared,
            "key": f"d{name}-{put}-{chunk.number:06d}",
            "kind": CHUNK,
            "number": chunk.number,
            "path": [plain(each) for each in chunk.path],
            "place": chunk.place,
            "text": plain(chunk.text),
            "search_text": plain(chunk.search_text),
            "search_hash": chunk.search_hash,
        }


@contextmanager
def our_records() -> Iterator[None]:
    """Around the reading of records. Raises UnavailableError for ones that were not written by `records_of`."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError):
        raise foreign_records() from None


def stored_chunk(record: Mapping[str, Any]) -> StoredChunk:
    """A chunk from a record with CHUNK_FIELDS."""
    return StoredChunk(
        key=record["key"],
        collection=Collection(record["collection"]),
        document_id=original(record["document"]),
        title=original(record["title"]),
        source=original(record["source"]),
        facets=Facets.from_dict(json.loads(record["facets"])),
        label=Label.from_dict(json.loads(record["label"])),
        number=record["number"],
        path=tuple(map(original, record["path"])),
        place=record["place"],
        text=original(record["text"]),
    )


def entries_of(records: Iterable[Mapping[str, Any]]) -> Iterator[StoreEntry]:
    """Documents from their records with ENTRY_FIELDS, heads and chunks in any order."""
    heads: dict[str, Mapping[str, Any]] = {}
    chunks: dict[str, list[Chunk]] = {}
    for record in records:
        name = record["document_key"]
        if record["kind"] == HEAD:
            heads[name] = record
        else:
            path, text = tuple(map(original, record["path"])), original(record["text"])
            chunk = Chunk(record["number"], path, record["place"], text, original(record["search_text"]))
            chunks.setdefault(name, []).append(chunk)
    for name, head in heads.items():
        document = Document(
            id=original(head["document"]),
            collection=Collection(head["collection"]),
            title=original(head["title"]),
            source=original(head["source"]),
            sections=(),
            facets=Facets.from_dict(json.loads(head["facets"])),
            label=Label.from_dict(json.loads(head["label"])),
            readers=frozenset(map(original, head["readers"])),
            etag=original(head["etag"]),
        )
        ordered = sorted(chunks.get(name, ()), key=lambda chunk: chunk.number)
        yield StoreEntry(document, tuple(ordered), head["content_hash"])


def _comparable(values: Iterable[str]) -> list[str]:
    """Values that are filtered by. Ones that are no name any more are left out: the service would refuse the document
    for them, and nobody filters by them."""
    return sorted({plain(value) for value in values if len(value) <= _LONGEST_NAME})


def _told(document: Document) -> Record:
    """What the head and every chunk say of their document."""
    facets = document.facets
    techniques = {name.upper() for name in facets.techniques}
    return {
        "title": plain(document.title),
        "source": plain(document.source),
        "readers": sorted(map(plain, document.readers)),
        # A technique is found under its parent too.
        "techniques": _comparable(techniques | {name.partition(".")[0] for name in techniques}),
        "tactics": _comparable(facets.tactics),
        "severity": next(iter(_comparable((facets.severity.casefold(),))), ""),
        "status": next(iter(_comparable((facets.status.casefold(),))), ""),
        "classification": next(iter(_comparable((facets.classification.casefold(),))), ""),
        "time": None if facets.time is None else microseconds(facets.time.timestamp()),
        "facets": json.dumps(facets.to_dict()),
        "label": json.dumps(document.label.to_dict()),
    }
