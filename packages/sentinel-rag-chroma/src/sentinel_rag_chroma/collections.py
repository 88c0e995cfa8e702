"""ChromaDB's part: a persistent client without telemetry, and the two collections by their names.

Everything that Chroma holds here can be made again from the rows. Its client reads no environment and no `.env` here,
embeds nothing and opens no connection. What it raises comes out as UnavailableError.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.stores.port import Vector, VectorSpace

_AT_ONCE = 1_000
_NEXT = "-next"
_GRAPH = {"space": "cosine", "ef_construction": 200, "max_neighbors": 32, "ef_search": 400}
"""Denser and searched wider than Chroma's own (100, 16, 100): see `bench/results/knowledge_stores.json`."""


class ChromaFailedError(UnavailableError):
    """Chroma itself raised something: its part of the store may be damaged, which the rows are not."""


@dataclass(frozen=True, slots=True)
class Record:
    """A chunk as Chroma keeps it. Metadata values are text, numbers, or lists of text that are not empty."""

    id: str
    vector: Vector
    text: str
    metadata: Mapping[str, str | int | float | list[str]]


class VectorCollections:
    """The collections in the folder `path`, made where there is none. Threads may share it."""

    def __init__(self, path: Path) -> None:
        chromadb = chromadb_module()
        self._lock = threading.RLock()
        self.suspect = False
        """Whether something failed, so that the index is looked at when the store is opened again."""
        self.given_up = False
        """Whether what is here is behind the rows until then, so that it is not asked."""
        with _told(), _forgotten_if_it_fails(chromadb, path):
            path.mkdir(mode=0o700, exist_ok=True)
            # Constructed and not validated, since that would read the environment and `.env` of the current folder.
            settings = chromadb.config.Settings.model_construct(
                is_persistent=True, persist_directory=str(path), anonymized_telemetry=False
            )
            self._client = chromadb.PersistentClient(path, settings=settings)
        self._current: dict[Collection, Any] = {}
        self._next: dict[Collection, Any] = {}
        self._space: VectorSpace | None = None
        try:
            self._names()
        except BaseException:
            self.close()
            raise

    @property
    def space(self) -> VectorSpace | None:
        """Of the vectors in the collections; None before `adopt`."""
        return self._space

    def adopt(self, space: VectorSpace) -> None:
        """Use the collections of `space`: those in use, else those that a `swap` did not come to, else new ones."""
        with _told():
            for each in Collection:
                current, following = self._get(each.value), self._get(each.value + _NEXT)
                if current is not None and _space_of(current) != space:
                    self._client.delete_collection(each.value)
                    current = None
                if current is None and following is not None and _space_of(following) == space:
                    following.modify(name=each.value)
                    current, following = following, None
                if following is not None:
                    self._client.delete_collection(each.value + _NEXT)
                self._current[each] = self._create(each.value, space) if current is None else current
            self._space = space

    def clear(self) -> None:
        """Drop every collection."""
        with _told():
            for name in self._names():
                self._client.delete_collection(name)
            self._current, self._space = {}, None

    def ids(self, collection: Collection) -> set[str]:
        """Of every record."""
        with _told():
            return set(self._current[collection].get(include=[])["ids"])

    def vectors(self, collection: Collection, ids: Sequence[str]) -> Mapping[str, Vector]:
        """Of these records, as the graph holds them. Raises ChromaFailedError where it lacks one."""
        with _told():
            found = self._current[collection].get(ids=list(ids), include=["embeddings"])
            return dict(zip(found["ids"], found["embeddings"], strict=True))

    def upsert(self, collection: Collection, records: Sequence[Record], *, into_next: bool = False) -> None:
        """Put records, each in place of the one with its id."""
        where = self._next if into_next else self._current
        for start in range(0, len(records), _AT_ONCE):
            part = records[start : start + _AT_ONCE]
            with _told():
                where[collection].upsert(
                    ids=[each.id for each in part],
                    embeddings=[each.vector for each in part],
                    documents=[each.text for each in part],
                    metadatas=[dict(each.metadata) for each in part],
                )

    def delete(self, collection: Collection, ids: Iterable[str]) -> None:
        """Remove records; ids that are not there are no error."""
        every = sorted(ids)
        for start in range(0, len(every), _AT_ONCE):
            with _told():
                self._current[collection].delete(ids=every[start : start + _AT_ONCE])

    def nearest(
        self, collection: Collection, space: VectorSpace, vector: Vector, limit: int, ids: Sequence[str] | None
    ) -> Sequence[tuple[str, float]] | None:
        """Ids and cosines of the nearest records, best first; of those among `ids`, if given. None if the collections
        are given up, of another space, or were swapped meanwhile."""
        with self._lock:
            asked = self._current.get(collection)
            if asked is None or self._space != space or self.given_up:
                return None
        try:
            with _told():
                found = asked.query(query_embeddings=[vector], n_results=limit, ids=ids, include=["distances"])
        except ChromaFailedError:
            if self._current.get(collection) is not asked:
                return None
            self.suspect = True
            raise
        return [(each, 1.0 - far) for each, far in zip(found["ids"][0], found["distances"][0], strict=True)]

    def begin_next(self, space: VectorSpace) -> None:
        """Make empty collections of `space` beside those in use, for `upsert` with `into_next`."""
        with _told():
            self.drop_next()
            self._next = {each: self._create(each.value + _NEXT, space) for each in Collection}

    def drop_next(self) -> None:
        """Forget what `begin_next` began."""
        with _told():
            for name in self._names() & {each.value + _NEXT for each in Collection}:
                self._client.delete_collection(name)
            self._next = {}

    def swap(self, space: VectorSpace) -> None:
        """Put the next collections, of `space`, in the place of those in use."""
        with self._lock:
            self._next = {}
            self._current, self._space = {}, None
            self.adopt(space)

    def give_up(self) -> None:
        """Ask nothing here any more; the next opening makes it right."""
        self.suspect = self.given_up = True

    def close(self) -> None:
        self._current, self._next, self._space = {}, {}, None
        with _told():
            self._client.close()

    def _names(self) -> set[str]:
        with _told():
            return {each.name for each in self._client.list_collections()}

    def _get(self, name: str) -> Any:
        # Without the function that embeds, Chroma would take its own, which fetches a model on its first use.
        return self._client.get_collection(name, embedding_function=None) if name in self._names() else None

    def _create(self, name: str, space: VectorSpace) -> Any:
        return self._client.create_collection(
            name,
            configuration={"hnsw": _GRAPH},
            metadata={"model": space.model, "dimensions": space.dimensions},
            embedding_function=None,
        )


def _space_of(collection: Any) -> VectorSpace | None:
    told = collection.metadata or {}
    model, dimensions = told.get("model"), told.get("dimensions")
    return VectorSpace(model, dimensions) if isinstance(model, str) and isinstance(dimensions, int) else None


def chromadb_module() -> Any:
    """The library. Raises ModuleNotFoundError where it is not installed."""
    import chromadb
    import chromadb.config

    return chromadb


@contextmanager
def _forgotten_if_it_fails(chromadb: Any, path: Path) -> Iterator[None]:
    """Chroma remembers a client that could not start, and would hand it out again for the same folder."""
    try:
        yield
    except BaseException:
        chromadb.api.client.SharedSystemClient._identifier_to_system.pop(str(path), None)
        raise


@contextmanager
def _told() -> Iterator[None]:
    """Whatever Chroma raises as one error; its texts can hold rows, so only its kind is told."""
    try:
        yield
    except (UnavailableError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of its Rust part is no Exception
        raise ChromaFailedError(
            f"Chroma failed: {type(error).__name__}.",
            next_step="Try again; if it stays, end the process that has the store open and start it again: what Chroma "
            "holds is then checked, and made again if need be.",
        ) from None
