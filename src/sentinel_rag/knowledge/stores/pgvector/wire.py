"""Vectors on the wire of PostgreSQL in their binary form, so that no digit is lost; and texts that it cannot hold.

The form (pgvector, `vector_send`): two big-endian 16-bit numbers, the dimensions and 0, then a float4 for each.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format
from psycopg.types import TypeInfo

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.abc import Buffer

# PostgreSQL has no NUL in a text; a code point that is no character, and so in no text, stands before its substitute.
_MARK = "\U0010ffff"


def storable(text: str) -> str:
    """The text without NUL; `told` gives it back."""
    return text.replace(_MARK, f"{_MARK}1").replace("\0", f"{_MARK}0") if "\0" in text or _MARK in text else text


def told(text: str) -> str:
    """The text that `storable` was given."""
    return text.replace(f"{_MARK}0", "\0").replace(f"{_MARK}1", _MARK) if _MARK in text else text


def register_vectors(connection: Connection[Any]) -> None:
    """Arrays of shape (dimensions,) go in and come out of columns of the type `vector`, which must be there."""
    info = TypeInfo.fetch(connection, "vector")
    assert info is not None
    # psycopg asks the class for the number of its type, and each database gives `vector` its own.
    connection.adapters.register_dumper(np.ndarray, type("VectorDumper", (_VectorDumper,), {"oid": info.oid}))
    connection.adapters.register_loader(info.oid, _VectorLoader)


class _VectorDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Any) -> Buffer:
        return struct.pack(">HH", len(obj), 0) + np.asarray(obj, dtype=">f4").tobytes()


class _VectorLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> Any:
        return np.frombuffer(bytes(data)[4:], dtype=">f4").astype(np.float32)
