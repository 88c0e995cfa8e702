"""A folder of playbooks into a store: what is in it is added, or read anew where it changed.

What the folder does not hold stays, unless the person asks that it go; then too a folder that is absent, empty or
cannot be listed whole removes nothing, since a disk that is not mounted looks just like that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sentinel_rag.contracts.labels import Label
from sentinel_rag.knowledge.documents import (
    EVERYONE,
    UNTRUSTED_KNOWLEDGE,
    Collection,
    Document,
    FileOutcome,
    FileReading,
    read_folder,
)
from sentinel_rag.knowledge.embedding.port import Embedder
from sentinel_rag.knowledge.ingestion import IngestReport, ReportListener, ingest
from sentinel_rag.knowledge.playbook_owners import NOBODY, PlaybookOwner
from sentinel_rag.knowledge.stores.port import KnowledgeStore

_NO_FAULT = frozenset({FileOutcome.READ, FileOutcome.NOT_KNOWN})
_STILL_THERE = frozenset({FileOutcome.UNREADABLE, FileOutcome.BROKEN, FileOutcome.TOO_LARGE})


@dataclass(frozen=True, slots=True)
class FolderReport:
    """What became of the store, and a reading for each file that says something: not read, or read with a remark."""

    ingested: IngestReport
    told: tuple[FileReading, ...]
    beyond: int = 0
    """Playbooks of this source that the store holds and the folder does not."""

    @property
    def faults(self) -> tuple[FileReading, ...]:
        """Files that should have been read and were not; a file of another kind is none."""
        return tuple(each for each in self.told if each.outcome not in _NO_FAULT)


def ingest_folder(
    store: KnowledgeStore,
    embedder: Embedder | None,
    folder: Path,
    *,
    label: Label = UNTRUSTED_KNOWLEDGE,
    readers: frozenset[str] = frozenset({EVERYONE}),
    owner: PlaybookOwner = NOBODY,
    replaces: bool = False,
    listener: ReportListener | None = None,
) -> FolderReport:
    """Bring the playbooks of `folder` into the store. With `replaces`, those of `owner` that are not in it go; those of
    others stay. `label` and `readers` as in `read_folder`; raises as `ingest`."""
    told: list[FileReading] = []
    seen: set[str] = set()
    stored = store.versions(Collection.PLAYBOOKS)
    before = owner.of(stored)
    unread = stored.keys() - before.keys()

    def documents() -> Iterator[Document]:
        for reading in read_folder(folder, label=label, readers=readers):
            if reading.outcome is not FileOutcome.READ or reading.said:
                told.append(reading)
            if reading.document is not None:
                document = owner.owned(reading.document, stored)
                seen.add(document.id)
                yield document
            elif reading.outcome is FileOutcome.NOTHING_THERE or reading.source == ".":
                unread.update(before)
            elif reading.outcome in _STILL_THERE:
                # A folder that cannot be listed stands for all that was read under it.
                under = f"{reading.source}/"
                unread.update(name for name in before if f"{owner.path_of(name)}/".startswith(under))

    report = ingest(
        store,
        embedder,
        Collection.PLAYBOOKS,
        documents(),
        complete=replaces and owner.removes,
        unread=unread,
        listener=listener,
    )
    return FolderReport(report, tuple(told), len(before.keys() - seen) - report.removed)
