"""The port that all stores of knowledge obey, and a store put together of its sides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Collection as SomeOf
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

from sentinel_rag.contracts.closing import Closing
from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.contracts.labels import Label
from sentinel_rag.knowledge.chunking import Chunk
from sentinel_rag.knowledge.documents import Collection, Document, Facets

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# A store keeps documents as chunks with their vectors, finds chunks by words and by vector, and filters in the query:
# what a caller may not read, or did not ask for, takes no place among the results. All stores pass the same tests
# (`tests/knowledge/store_contract.py`). Calls block; whoever serves them gives them a thread.
Vector: TypeAlias = "NDArray[np.float32]"
"""One vector of shape (dimensions,), or several of shape (n, dimensions)."""

EmbedTexts = Callable[[Sequence[str]], Vector]
"""Texts to their vectors, shape (texts, dimensions)."""

REBUILD_COMMAND = "sentinel knowledge rebuild"
MOST_RESULTS = 1_000
RE_EMBED_BATCH = 64
"""Texts that are embedded at once where the embedder does not say."""


class EmbeddingMismatchError(SentinelError):
    """The store holds vectors of another model, or the other size; comparing them would rank by chance."""

    code = "embedding_mismatch"


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """What makes vectors comparable: the model, with what tells its weights apart, and the dimensions."""

    model: str
    dimensions: int

    def __str__(self) -> str:
        return f"{self.model} ({self.dimensions} dimensions)"


@dataclass(frozen=True, slots=True)
class Version:
    """What tells whether a stored document is still the source's: the hash of its content, and the source's etag."""

    content_hash: str
    etag: str


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """A document with its chunks, as it is put into a store. One that comes out of a store has no sections, since the
    chunks hold their text; `stored_hash` is then the hash that it was kept with."""

    document: Document
    chunks: tuple[Chunk, ...]
    stored_hash: str = ""

    @property
    def version(self) -> Version:
        """What a store keeps of it for `versions`."""
        return Version(self.stored_hash or self.document.content_hash, self.document.etag)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Who asks and what for. `readers` are the names under which the caller may read; everyone's documents are always
    among theirs. An empty filter lets everything through; several values of one filter are alternatives, several
    filters all hold. A technique stands for its sub-techniques too. Times bound the document's own, both ends included;
    a document without one is outside every bound."""

    readers: frozenset[str] = frozenset()
    collections: frozenset[Collection] = frozenset(Collection)
    severities: frozenset[str] = frozenset()
    statuses: frozenset[str] = frozenset()
    classifications: frozenset[str] = frozenset()
    techniques: frozenset[str] = frozenset()
    tactics: frozenset[str] = frozenset()
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class StoreHit:
    """A chunk by its key (opaque, of this store) and how well it fits: higher is better, comparable in one answer
    only."""

    key: int | str
    score: float


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as it came in, with what an answer says of its document."""

    key: int | str
    collection: Collection
    document_id: str
    title: str
    source: str
    facets: Facets
    label: Label
    number: int
    path: tuple[str, ...]
    place: int
    text: str


@dataclass(frozen=True, slots=True)
class StoreState:
    """What a store holds. `documents` and `chunks` count by collection; `space` is None while it holds no vectors."""

    space: VectorSpace | None
    documents: Mapping[Collection, int] = field(default_factory=dict)
    chunks: Mapping[Collection, int] = field(default_factory=dict)


class StoreReading(Protocol):
    """What a store tells of its documents, and finds by words."""

    def state(self) -> StoreState:
        """What it holds now."""
        ...

    def versions(self, collection: Collection) -> Mapping[str, Version]:
        """Of every document of a collection, by its id."""
        ...

    def entries(self, collection: Collection, ids: Sequence[str]) -> Sequence[StoreEntry]:
        """These documents as they were put, without sections, in the order of `ids`; one that is not there is left out.
        For whoever moves a whole store, with `versions`: no reader is asked for."""
        ...

    def by_words(self, query: str, wanted: Wanted, limit: int) -> Sequence[StoreHit]:
        """The best chunks by BM25 over their search text, best first. Whatever `query` holds is words, never syntax:
        `question_words.query_terms` says what is looked for. Differences of scores count when rankings are fused, so
        they must be those of BM25, of any scale."""
        ...

    def load(self, keys: Sequence[int | str], readers: frozenset[str]) -> Sequence[StoredChunk]:
        """The chunks of these keys that `readers` may read, in the order of the keys. One that was replaced or removed
        since it was found is left out."""
        ...

    def document_chunks(
        self, collection: Collection, document_id: str, readers: frozenset[str]
    ) -> Sequence[StoredChunk]:
        """All chunks of one document in their order; none if there is no such document, or `readers` may not read it:
        the two look the same."""
        ...

    def readable(self, readers: frozenset[str]) -> Mapping[Collection, int]:
        """How many documents of each collection `readers` may read."""
        ...


class VectorSearch(Protocol):
    """What a store finds by vector."""

    def by_vector(self, space: VectorSpace, vector: Vector, wanted: Wanted, limit: int) -> Sequence[StoreHit]:
        """The nearest chunks by cosine, best first. Raises EmbeddingMismatchError for another space than the store's;
        a store without vectors finds none."""
        ...


class VectorKeeping(Protocol):
    """The vectors that a store keeps by the hash of their text, whether a document has that text or not."""

    def missing_vectors(self, space: VectorSpace, search_hashes: SomeOf[str]) -> frozenset[str]:
        """Those of the hashes (`Chunk.search_hash`) for which no vector of `space` is kept."""
        ...

    def kept_vectors(self, space: VectorSpace, search_hashes: SomeOf[str]) -> Mapping[str, Vector]:
        """The vectors of `space` that are kept for these hashes, of length 1 (a zero one stays zero); the same bits go
        in and out of every store."""
        ...


class StoreWriting(Protocol):
    """How a store is changed."""

    def keep_vectors(self, space: VectorSpace, vectors: Mapping[str, Vector]) -> None:
        """Keep vectors by search hash, for `put` and for the next time that the same text comes. Durable on return, so
        that what was embedded is not embedded again after a crash."""
        ...

    def put(self, entries: Sequence[StoreEntry], space: VectorSpace | None) -> None:
        """Put documents, each in place of its earlier version; all of them or, on an error, none.

        With a `space` the vector of each chunk must have been kept, else KeyError. The first put decides the space of
        the store; a later one with another (or None) raises EmbeddingMismatchError.
        """
        ...

    def remove(self, collection: Collection, ids: Iterable[str]) -> int:
        """Remove documents; ids that are not there are no error. Returns how many were removed."""
        ...

    def re_embed(self, space: VectorSpace, embed: EmbedTexts, *, batch: int = RE_EMBED_BATCH) -> int:
        """Give every chunk a vector of `space`, and make it the store's. Until then the old ones serve. What was kept
        before an interruption is not embedded again. Returns how many texts were embedded."""
        ...


class KnowledgeStore(StoreReading, VectorSearch, VectorKeeping, StoreWriting, Protocol):
    """One store. Each call may raise UnavailableError when the store cannot be reached, is locked or is full. Used as a
    context, it closes at the end. `StoreOfParts` makes one of its four sides."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...


def mismatch(held: VectorSpace | None, given: VectorSpace | None) -> EmbeddingMismatchError:
    """The error for vectors of `given` in a store that holds `held`; its next step is the command that re-embeds."""
    held_words = "no vectors" if held is None else f"vectors of {held}"
    given_words = "no embedding model is in use" if given is None else f"the model in use is {given}"
    return EmbeddingMismatchError(
        f"The knowledge store holds {held_words}, and {given_words}.",
        next_step=f"Run: {REBUILD_COMMAND} (it embeds everything again), or set the model back.",
    )


class StoreOfParts(Closing):
    """A `KnowledgeStore` whose calls are those of the side that answers them; `close` lets go of them all. Threads may
    share it where they may share the sides; close it or use `with`."""

    def __init__(
        self,
        reading: StoreReading,
        writing: StoreWriting,
        *,
        vectors: VectorSearch,
        kept: VectorKeeping,
        close: Callable[[], None],
    ) -> None:
        self.state, self.versions, self.entries = reading.state, reading.versions, reading.entries
        self.by_words, self.load, self.document_chunks = reading.by_words, reading.load, reading.document_chunks
        self.readable, self.by_vector = reading.readable, vectors.by_vector
        self.missing_vectors, self.kept_vectors = kept.missing_vectors, kept.kept_vectors
        self.keep_vectors, self.put = writing.keep_vectors, writing.put
        self.remove, self.re_embed = writing.remove, writing.re_embed
        self._close = close

    def close(self) -> None:
        self._close()
