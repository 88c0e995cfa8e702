"""All knowledge of one store into another: documents, chunks, labels, readers and vectors, so that nothing is embedded
again.

A few documents at a time, each whole; what is there already is not moved again, so a second run goes on where the first
one ended. At the end both stores are read and compared. Nothing is taken out of the source.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.stores.port import KnowledgeStore, StoreEntry, Vector, VectorSpace, mismatch

_DOCUMENTS_AT_ONCE = 32
_SAME_TEXT = 1e-3


@dataclass(frozen=True, slots=True)
class MoveReport:
    """Documents that were to be moved, that were moved so far, and that were there before; chunks and vectors that were
    moved; documents that were compared at the end; seconds it took."""

    documents: int = 0
    moved: int = 0
    there_before: int = 0
    chunks: int = 0
    vectors: int = 0
    compared: int = 0
    seconds: float = 0.0

    @property
    def remaining_s(self) -> float | None:
        """Seconds that moving and comparing will take at the rate so far; None before there is one."""
        done = self.moved + self.compared
        whole = self.documents + self.documents + self.there_before
        return (whole - done) * self.seconds / done if done and self.seconds else None


MoveListener = Callable[[MoveReport], None]
"""Called after each step with the figures so far."""


def move(
    source: KnowledgeStore,
    target: KnowledgeStore,
    *,
    beside: bool = False,
    listener: MoveListener | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> MoveReport:
    """Put everything of `source` into `target`.

    Raises UsageError, before anything is moved, for a target that holds other documents or other versions, unless
    `beside`: then others stay, and versions are replaced. Raises EmbeddingMismatchError where the vectors of the two do
    not compare, UnavailableError where something is missing or differs in the end, and whatever the stores raise. What
    was moved until then stays.
    """
    began = clock()
    space = source.state().space
    plans = {each: _plan(source, target, each) for each in Collection}
    _refuse(target, space, plans, beside=beside)
    report = MoveReport(
        documents=sum(len(plan.missing) for plan in plans.values()),
        there_before=sum(plan.there for plan in plans.values()),
    )

    def tell(**figures: int) -> None:
        nonlocal report
        report = replace(report, seconds=clock() - began, **figures)
        if listener is not None:
            listener(report)

    for collection, plan in plans.items():
        for ids in _parts(plan.missing):
            entries = source.entries(collection, ids)
            vectors = _move_vectors(source, target, space, entries)
            target.put(entries, space)
            tell(
                moved=report.moved + len(ids),
                chunks=report.chunks + sum(len(entry.chunks) for entry in entries),
                vectors=report.vectors + vectors,
            )
        # What the source lost meanwhile came from there, and shall not stay.
        kept = source.versions(collection)
        target.remove(collection, [name for name in plan.missing if name not in kept])
    for collection in Collection:
        for ids in _parts(tuple(source.versions(collection))):
            _compare(source, target, collection, ids)
            tell(compared=report.compared + len(ids))
    return report


@dataclass(frozen=True, slots=True)
class _Plan:
    """Of one collection: ids that the target lacks in the source's version; how many it has; how many it holds that are
    not the source's, documents or versions."""

    missing: tuple[str, ...]
    there: int
    others: int


def _plan(source: KnowledgeStore, target: KnowledgeStore, collection: Collection) -> _Plan:
    ours, theirs = source.versions(collection), target.versions(collection)
    missing = tuple(sorted(name for name, version in ours.items() if theirs.get(name) != version))
    if collection is Collection.PLAYBOOKS:  # their etag says whose they are, not what they say
        others = sum(name not in ours or ours[name].content_hash != each.content_hash for name, each in theirs.items())
    else:
        others = sum(ours.get(name) != version for name, version in theirs.items())
    return _Plan(missing, len(ours) - len(missing), others)


def _refuse(
    target: KnowledgeStore, space: VectorSpace | None, plans: Mapping[Collection, _Plan], *, beside: bool
) -> None:
    others = sum(plan.others for plan in plans.values())
    if others and not beside:
        raise UsageError(
            f"The store to move to holds {_documents(others)} of its own, by name or by version.",
            next_step="Name an empty store, or add --beside: they stay there, and older versions are replaced.",
        )
    held = target.state()
    if held.space != space and (held.space is not None or any(held.documents.values())):
        raise mismatch(held.space, space)


def _parts(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), _DOCUMENTS_AT_ONCE):
        yield ids[start : start + _DOCUMENTS_AT_ONCE]


def _move_vectors(
    source: KnowledgeStore, target: KnowledgeStore, space: VectorSpace | None, entries: Sequence[StoreEntry]
) -> int:
    """See that the target keeps the vector of every chunk; how many went over for that."""
    hashes = {chunk.search_hash for entry in entries for chunk in entry.chunks}
    if space is None or not hashes:
        return 0
    missing = target.missing_vectors(space, hashes)
    vectors = source.kept_vectors(space, missing)
    if len(vectors) < len(missing):
        raise UnavailableError(
            f"The store to move from lacks vectors of {space} for {len(missing) - len(vectors):,} chunks.",
            next_step="Run: sentinel knowledge rebuild, then move again: it goes on.",
        )
    if vectors:
        target.keep_vectors(space, vectors)
    return len(vectors)


def _compare(source: KnowledgeStore, target: KnowledgeStore, collection: Collection, ids: Sequence[str]) -> None:
    """UnavailableError unless the target holds these documents exactly as the source does."""
    ours = {entry.document.id: entry for entry in source.entries(collection, ids)}
    theirs = {entry.document.id: entry for entry in target.entries(collection, ids)}
    wrong = [name for name, entry in ours.items() if theirs.get(name) != entry]
    space = target.state().space
    if not wrong and space is not None:
        hashes = [chunk.search_hash for entry in ours.values() for chunk in entry.chunks]
        here, there = source.kept_vectors(space, hashes), target.kept_vectors(space, hashes)
        wrong = [
            name
            for name, entry in ours.items()
            if any(_differ(here.get(chunk.search_hash), there.get(chunk.search_hash)) for chunk in entry.chunks)
        ]
    if wrong:
        raise UnavailableError(
            f"The two stores differ in {_documents(len(wrong))} after moving, the first is {wrong[0]!r}: the first "
            "store was changed meanwhile, or the second did not keep what it was given.",
            next_step="Let nothing write to either, then move again with --beside, or to an empty store.",
        )


def _documents(count: int) -> str:
    return "1 document" if count == 1 else f"{count:,} documents"


def _differ(one: Vector | None, other: Vector | None) -> bool:
    """Whether they are not one text's. The last bits may differ: a target that held the text before may have embedded
    it on another processor."""
    import numpy as np

    return one is None or other is None or not np.allclose(one, other, rtol=0, atol=_SAME_TEXT)
