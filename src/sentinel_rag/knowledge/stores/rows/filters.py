"""`Wanted` as SQL over `document d`, in one place for words, vectors and loading, so that they cannot differ."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sentinel_rag.knowledge.documents import EVERYONE
from sentinel_rag.knowledge.stores.port import Wanted


def conditions(wanted: Wanted) -> tuple[str, list[object]]:
    """A condition that holds for the documents that may be found, and its parameters. Permission is always part."""
    parts: list[str] = []
    values: list[object] = []
    for part, given in _parts(wanted):
        parts.append(part)
        values += given
    return " AND ".join(parts), values


def _parts(wanted: Wanted) -> Iterator[tuple[str, Collection[object]]]:
    readers = sorted({EVERYONE, *wanted.readers})
    yield f"d.audience IN (SELECT audience FROM audience_name WHERE name IN ({_marks(readers)}))", readers
    yield f"d.collection IN ({_marks(wanted.collections)})", sorted(wanted.collections)
    for column, chosen in (
        ("severity", wanted.severities),
        ("status", wanted.statuses),
        ("classification", wanted.classifications),
    ):
        if chosen:
            yield f"d.{column} COLLATE NOCASE IN ({_marks(chosen)})", sorted(chosen)
    for kind, chosen in (("technique", wanted.techniques), ("tactic", wanted.tactics)):
        if chosen:
            # A technique's tag is stored under its parent too, so one comparison finds sub-techniques.
            given = sorted(value.upper() if kind == "technique" else value for value in chosen)
            yield f"d.id IN (SELECT document FROM tag WHERE kind = ? AND value IN ({_marks(given)}))", [kind, *given]
    if wanted.since is not None:
        yield "d.time >= ?", [wanted.since.timestamp()]
    if wanted.until is not None:
        yield "d.time <= ?", [wanted.until.timestamp()]


def _marks(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))
