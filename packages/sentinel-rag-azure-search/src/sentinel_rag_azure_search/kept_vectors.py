"""Vectors by the hash of their text, in an index of their own: what was embedded is not embedded again.

They are durable when the service has taken them, but found only later, so those of this process are remembered until
then.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection as SomeOf
from collections.abc import Iterable, Iterator, Mapping

from sentinel_rag.knowledge.stores.port import Vector, VectorSpace
from sentinel_rag_azure_search.index import SearchIndex
from sentinel_rag_azure_search.odata import literal, one_of

_AT_ONCE = 500
_REMEMBERED = 2_000


class KeptVectors:
    """The vectors in `index`, which must be there before `keep`."""

    def __init__(self, index: SearchIndex) -> None:
        self._index = index
        self._fresh: dict[str, str] = {}

    def missing(self, space: VectorSpace, search_hashes: SomeOf[str]) -> frozenset[str]:
        """Those of the hashes that have no vector here."""
        wanted = {_key(space, each): each for each in search_hashes}
        for part in parts(key for key in wanted if key not in self._fresh):
            for record in self._index.rows(one_of("key", part), ()):
                wanted.pop(record["key"], None)
        return frozenset(search_hash for key, search_hash in wanted.items() if key not in self._fresh)

    def keep(self, space: VectorSpace, vectors: Mapping[str, Vector]) -> None:
        """Keep vectors by hash. Raises ValueError for one of another size, or that is none."""
        from sentinel_rag.knowledge.stores.vector_arrays import unit

        fresh: dict[str, str] = {}
        for search_hash, vector in vectors.items():
            if vector.shape != (space.dimensions,):
                raise ValueError(f"a vector of {space} has the shape {vector.shape}")
            fresh[_key(space, search_hash)] = base64.b64encode(unit(vector)[0].astype("<f4").tobytes()).decode("ascii")
        if len(self._fresh) + len(fresh) > _REMEMBERED:
            self._forget_found()
        self._index.upload({"key": key, "space": _space_name(space), "data": data} for key, data in fresh.items())
        self._fresh |= fresh

    def fetch(self, space: VectorSpace, search_hashes: SomeOf[str]) -> dict[str, Vector]:
        """The vectors of those of the hashes that have one."""
        import numpy as np

        wanted = {_key(space, each): each for each in search_hashes}
        data = {key: self._fresh[key] for key in wanted if key in self._fresh}
        for part in parts(key for key in wanted if key not in data):
            data |= {record["key"]: record["data"] for record in self._index.rows(one_of("key", part), ("data",))}
        return {
            search_hash: np.frombuffer(base64.b64decode(data[key]), dtype="<f4")
            for key, search_hash in wanted.items()
            if key in data
        }

    def forget(self, space: VectorSpace, search_hashes: SomeOf[str]) -> None:
        """Keep these no longer."""
        keys = [_key(space, each) for each in search_hashes]
        for key in keys:
            self._fresh.pop(key, None)
        self._index.delete(keys)

    def forget_other_spaces(self, space: VectorSpace) -> None:
        """Keep the vectors of `space` only."""
        name = _space_name(space)
        self._fresh = {key: data for key, data in self._fresh.items() if key.startswith(name)}
        gone = [record["key"] for record in self._index.rows(f"space ne {literal(name)}", ())]
        self._index.delete(gone)

    def _forget_found(self) -> None:
        """Wait until the service finds what this process kept, and remember it no longer."""
        for part in parts(self._fresh):
            self._index.until_count(one_of("key", part), len(part))
        self._fresh.clear()


def _space_name(space: VectorSpace) -> str:
    return "s" + hashlib.sha256(f"{space.model}\n{space.dimensions}".encode()).hexdigest()[:16]


def _key(space: VectorSpace, search_hash: str) -> str:
    return f"{_space_name(space)}-{bytes.fromhex(search_hash).hex()}"


def parts(keys: Iterable[str]) -> Iterator[list[str]]:
    """Values in lists that a filter takes."""
    listed = list(keys)
    for start in range(0, len(listed), _AT_ONCE):
        yield listed[start : start + _AT_ONCE]
