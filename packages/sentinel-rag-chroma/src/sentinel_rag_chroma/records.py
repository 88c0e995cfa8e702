"""Rows as Chroma's records: the id that tells which row in which version, and metadata for whoever opens Chroma.

The id holds the chunk's number and the beginnings of both hashes, so that a record of another row, or of an earlier
version of it, is told by its id alone.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence

from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.stores.rows import AT_ONCE, ChunkRow, SpaceRow, kept_vectors
from sentinel_rag_chroma.collections import Record

RECORD_ID = "c.id || '-' || lower(substr(hex(c.hash), 1, 8)) || '-' || substr(d.content_hash, 1, 8)"
"""`record_id` in SQL, over `chunk c` and `document d`."""


def record_id(chunk: ChunkRow) -> str:
    """The id of a chunk's record."""
    return f"{chunk.id}-{chunk.search_hash[:8]}-{chunk.content_hash[:8]}"


def chunk_of(record: str) -> int:
    """The chunk's number in an id."""
    return int(record.partition("-")[0])


def records_of(
    connection: sqlite3.Connection, held: SpaceRow, chunks: Sequence[int]
) -> Iterator[tuple[Collection, Sequence[Record]]]:
    """The records of these chunks in parts, each of one collection. Raises KeyError where a vector is not kept."""
    import numpy as np

    for start in range(0, len(chunks), AT_ONCE):
        part = chunks[start : start + AT_ONCE]
        rows = connection.execute(
            f"SELECT {RECORD_ID}, c.hash, c.body, c.number, c.path, d.collection, d.name, d.title, d.source, d.facets, "
            "(SELECT names FROM audience WHERE id = d.audience), d.time FROM chunk c JOIN document d "
            f"ON d.id = c.document WHERE c.id IN ({', '.join('?' * len(part))}) ORDER BY c.id",
            list(part),
        ).fetchall()
        data = kept_vectors(connection, held.number, {row[1].hex() for row in rows})
        found: dict[Collection, list[Record]] = {}
        for record, search_hash, body, number, path, collection, name, title, source, facets, names, time in rows:
            told = json.loads(facets)
            metadata = {
                "document": name,
                "title": title,
                "source": source,
                "section": " > ".join(json.loads(path)),
                "number": number,
                "readers": json.loads(names),
                "severity": told["severity"],
                "status": told["status"],
                "classification": told["classification"],
                "techniques": sorted(
                    {each for name in told["techniques"] for each in (name.upper(), name.upper().partition(".")[0])}
                ),
                "tactics": told["tactics"],
                "time": time,
            }
            vector = np.frombuffer(data[search_hash.hex()], dtype="<f4")
            # Chroma refuses empty lists and values that are none.
            kept = {key: value for key, value in metadata.items() if value not in (None, "", [])}
            found.setdefault(Collection(collection), []).append(Record(record, vector, body, kept))
        yield from found.items()
