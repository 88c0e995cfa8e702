"""Vectors as the rows keep them: by the hash of their text, at length one, for each space in use or to come."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection as SomeOf

AT_ONCE = 500
"""Parameters of one statement."""


def kept_vectors(connection: sqlite3.Connection, number: int, search_hashes: SomeOf[str]) -> dict[str, bytes]:
    """The vectors that are kept for these hashes."""
    found: dict[str, bytes] = {}
    hashes = [bytes.fromhex(each) for each in search_hashes]
    for start in range(0, len(hashes), AT_ONCE):
        part = hashes[start : start + AT_ONCE]
        rows = connection.execute(
            f"SELECT hash, data FROM vector WHERE space = ? AND hash IN ({', '.join('?' * len(part))})",
            [number, *part],
        )
        found |= {search_hash.hex(): data for search_hash, data in rows}
    return found


def forget_unused_vectors(connection: sqlite3.Connection) -> None:
    """Drop the vectors of texts that no chunk has any more."""
    connection.execute("DELETE FROM vector WHERE hash NOT IN (SELECT hash FROM chunk)")
