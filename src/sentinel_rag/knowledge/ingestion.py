"""Put documents and folders of playbooks into a store: only what changed, embedded once, by owner, in one run."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Collection as SomeOf
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.contracts.labels import Label
from sentinel_rag.knowledge.chunking import chunks_of
from sentinel_rag.knowledge.documents import (
    EVERYONE,
    UNTRUSTED_KNOWLEDGE,
    Collection,
    Document,
    FileOutcome,
    FileReading,
    read_folder,
)
from sentinel_rag.knowledge.embedding import Embedder
from sentinel_rag.knowledge.stores.port import KnowledgeStore, StoreEntry, Vector, Version, mismatch
from sentinel_rag.storage.sqlite import create_private

# The owner is kept as the document's etag. Everybody has a `phishing.md`: whoever comes second has an id with the owner
# in it, and is cited by its file all the same. In a store of one home nothing has an owner.
_ID_CHARACTERS = 8


@dataclass(frozen=True, slots=True)
class PlaybookOwner:
    """A source of playbooks. `name` is empty in a store of one home; `suffix` follows the file's path in
    the id where another source has that path."""

    name: str = ""
    suffix: str = ""

    @property
    def removes(self) -> bool:
        """Whether what is gone from the folder goes from the store: homes with several versions of this product have
        several shipped folders."""
        return self != SHIPPED

    def owned(self, document: Document, stored: Mapping[str, Version]) -> Document:
        """The document of a file as this source stores it among those that are `stored`. One without an owner, of an
        earlier version, is taken over."""
        there = stored.get(document.id)
        if not self.name:
            return document if there is None else replace(document, etag=there.etag)
        taken = there is not None and there.etag not in ("", self.name)
        return replace(document, id=f"{document.id}{self.suffix}" if taken else document.id, etag=self.name)

    def of(self, stored: Mapping[str, Version]) -> dict[str, Version]:
        """Of all playbooks of a store those of this source, by their ids."""
        return {name: version for name, version in stored.items() if not self.name or version.etag == self.name}

    def path_of(self, document_id: str) -> str:
        """The path of the file that this source stored by that id."""
        return document_id.removesuffix(self.suffix)


NOBODY = PlaybookOwner()
"""For a store of one home: all playbooks are those of its folder."""
SHIPPED = PlaybookOwner("shipped", "@shipped")
"""The playbooks that come with the product, whichever home reads them in."""


def home_owner(home_id: str) -> PlaybookOwner:
    """The folder of the home with this id (a GUID)."""
    return PlaybookOwner(f"home {home_id}", f"@{home_id[:_ID_CHARACTERS]}")


# What was embedded is kept before the documents that need it, and documents are put a few at a time, each whole. So a
# second run goes on where the first one ended, and search works in between.
_CHUNKS_AT_ONCE = 64
"""Documents are put together until they have so many chunks."""


@dataclass(frozen=True, slots=True)
class IngestReport:
    """How many documents were new, changed, as before, or gone from the source; chunks of those that were put; how many
    texts had to be embedded, for those and for what was there without vectors; seconds it took."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    chunks: int = 0
    embedded: int = 0
    seconds: float = 0.0


ReportListener = Callable[[IngestReport], None]
"""Called after each step with the figures so far."""


def ingest(
    store: KnowledgeStore,
    embedder: Embedder | None,
    collection: Collection,
    documents: Iterable[Document],
    *,
    complete: bool,
    unread: SomeOf[str] = (),
    listener: ReportListener | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> IngestReport:
    """Bring `collection` up to `documents`; those of another collection are refused with ValueError.

    `complete`: these are all there are, so what the store has beyond them is removed at the end, except `unread`: ids
    of what is there and could not be read now (asked at the end, so it may grow while `documents` are drawn). Raises
    EmbeddingMismatchError before anything is embedded, and whatever the documents, the model or the store raise; what
    was done until then stays, and the next run goes on from it. A store without vectors gets those of `embedder` first.
    """
    held = store.state()
    space = None if embedder is None else embedder.space
    if held.space is not None and held.space != space:
        raise mismatch(held.space, space)
    began = clock()
    counts = dict.fromkeys(("added", "changed", "unchanged", "removed", "chunks", "embedded"), 0)
    if embedder is not None:
        counts["embedded"] = give_vectors(store, embedder)
    versions = store.versions(collection)
    seen: set[str] = set()

    def told() -> IngestReport:
        report = IngestReport(**counts, seconds=clock() - began)
        if listener is not None:
            listener(report)
        return report

    def changed() -> Iterator[StoreEntry]:
        for document in documents:
            if document.collection is not collection:
                raise ValueError(f"{document.id} is of {document.collection.value}, not of {collection.value}")
            seen.add(document.id)
            if versions.get(document.id) == Version(document.content_hash, document.etag):
                counts["unchanged"] += 1
            else:
                yield StoreEntry(document, chunks_of(document))

    for entries in _steps(changed()):
        counts["embedded"] += _put(store, embedder, entries)
        for entry in entries:
            counts["changed" if entry.document.id in versions else "added"] += 1
            counts["chunks"] += len(entry.chunks)
        told()
    if complete:
        counts["removed"] = store.remove(
            collection, [name for name in versions if name not in seen and name not in unread]
        )
    return told()


def give_vectors(store: KnowledgeStore, embedder: Embedder, listener: Callable[[int, int], None] | None = None) -> int:
    """Vectors for a store that was filled by words alone; one that holds vectors, or nothing, is left as it is. What
    was embedded before an interruption is not embedded again. Returns how many texts were embedded.

    `listener` is called after each batch with how many texts were embedded, of at most how many.
    """
    held = store.state()
    if held.space is not None or not any(held.documents.values()):
        return 0
    total, done = sum(held.chunks.values()), 0

    def embed(texts: Sequence[str]) -> Vector:
        nonlocal done
        vectors = embedder.embed_documents(texts)
        done += len(texts)
        if listener is not None:
            listener(done, total)
        return vectors

    return store.re_embed(embedder.space, embed, batch=embedder.batch)


def _steps(entries: Iterable[StoreEntry]) -> Iterator[list[StoreEntry]]:
    """Entries a few at a time; a large document makes a step of its own."""
    step: list[StoreEntry] = []
    for entry in entries:
        step.append(entry)
        if sum(len(each.chunks) for each in step) >= _CHUNKS_AT_ONCE:
            yield step
            step = []
    if step:
        yield step


def _put(store: KnowledgeStore, embedder: Embedder | None, entries: Sequence[StoreEntry]) -> int:
    """Put the entries with the vectors that they need; how many texts were embedded for that."""
    space = None if embedder is None else embedder.space
    embedded = _embed(store, embedder, entries)
    try:
        store.put(entries, space)
    except KeyError:
        # A vector was kept when it was asked for, and another machine removed the last document with its text since.
        embedded += _embed(store, embedder, entries)
        store.put(entries, space)
    return embedded


def _embed(store: KnowledgeStore, embedder: Embedder | None, entries: Sequence[StoreEntry]) -> int:
    """See that a vector is kept for every chunk; how many texts were embedded for that."""
    if embedder is None:
        return 0
    texts = {chunk.search_hash: chunk.search_text for entry in entries for chunk in entry.chunks}
    missing = store.missing_vectors(embedder.space, texts.keys())
    wanted = [search_hash for search_hash in texts if search_hash in missing]
    for start in range(0, len(wanted), embedder.batch):
        part = wanted[start : start + embedder.batch]
        vectors = embedder.embed_documents([texts[search_hash] for search_hash in part])
        store.keep_vectors(embedder.space, dict(zip(part, vectors, strict=True)))
    return len(wanted)


# What the folder does not hold stays, unless the person asks that it go; then too a folder that is absent, empty or
# cannot be listed whole removes nothing, since a disk that is not mounted looks just like that.
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


def remove_playbooks(store: KnowledgeStore, names: SomeOf[str], owner: PlaybookOwner = NOBODY) -> None:
    """Remove those playbooks of `owner` and nothing else. Raises UsageError, and removes nothing, where one is not
    there."""
    there = owner.of(store.versions(Collection.PLAYBOOKS))
    missing = sorted(set(names) - there.keys())
    if missing:
        raise UsageError(
            f"There is no playbook {', '.join(missing)}" + (" of this home." if owner.name else "."),
            next_step="Name one as sentinel knowledge list shows it.",
        )
    store.remove(Collection.PLAYBOOKS, names)


# One ingest at a time for each store of this home, and who it is that runs it. The lock is the operating system's and
# falls with its process, whatever kills it. Ingests of several machines into one shared store need none: each document
# is put whole, so they only do each other's work.
class IngestRunsError(UnavailableError):
    """Another ingest is at work."""

    code = "ingest_runs"


class IngestLock:
    """The lock at `path`, which is made where there is none."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def hold(self, who: str, *, for_another: bool = False) -> Iterator[None]:
        """Be the one ingest. `who` is what others are told ("sentinel knowledge ingest"), with the number of this
        process unless it works `for_another`: whoever ends a process by it must end the command and not the zones.
        Raises IngestRunsError, and UnavailableError for a folder that cannot be used."""
        import fcntl

        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            create_private(self._path)
            file = self._path.open("r+", encoding="utf-8")
        except OSError as error:
            raise UnavailableError(
                f"The folder {self._path.parent} cannot be used: {error.strerror or error}.",
                next_step="Check the folder's owner and permissions.",
            ) from None
        with file:
            try:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise IngestRunsError(
                    f"Another ingest is running: {_told(file.read())}.",
                    next_step="Wait for it, or press Ctrl-C where it was asked for: the next one goes on from there.",
                ) from None
            file.truncate(0)
            process = None if for_another else os.getpid()
            file.write(json.dumps({"who": who, "process": process, "since": datetime.now(UTC).isoformat()}))
            file.flush()
            yield


def _told(text: str) -> str:
    try:
        held = json.loads(text)
        since = datetime.fromisoformat(held["since"])
        process = f", process {held['process']}" if held["process"] is not None else ""
        return f"{held['who']}{process}, since {since:%H:%M} UTC"
    except (ValueError, KeyError, TypeError):
        return "it has begun a moment ago"


# The store knows which incidents it holds; that none are missing, and as of when, only a run that came to its end
# knows.
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class IngestFiles:
    """The files of ingestion beside a store: who runs one, as of when incidents are known, and which folder the
    playbooks come from."""

    lock: Path
    record: Path
    playbooks: Path


@dataclass(frozen=True, slots=True)
class WorkspaceRecord:
    """One workspace: `as_of` is when the last run that came to its end asked for the list (None: none has), `tried`
    when the last run of any kind did; `fault` is why that one did not come to its end. `partial` incidents lack details
    for now, `days` is how far back that run read incidents in."""

    workspace: str
    as_of: datetime | None
    tried: datetime
    incidents: int
    partial: int
    days: int
    fault: str = ""


def read_ingest_record(path: Path) -> tuple[WorkspaceRecord, ...]:
    """Of each workspace, the default one first; none where there was no run, or where the file cannot be read."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        if told["format"] != _FORMAT:
            return ()
        return tuple(
            WorkspaceRecord(**{**each, "as_of": _moment(each["as_of"]), "tried": _moment(each["tried"]) or _NEVER})
            for each in told["workspaces"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return ()


def write_ingest_record(path: Path, workspaces: Iterable[WorkspaceRecord]) -> None:
    """Replace the file at once. Raises OSError."""
    told = [
        {
            **asdict(each),
            "as_of": None if each.as_of is None else each.as_of.isoformat(),
            "tried": each.tried.isoformat(),
        }
        for each in workspaces
    ]
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}-")  # readable by its owner only
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        json.dump({"format": _FORMAT, "workspaces": told}, stream)
    Path(name).replace(path)


def incidents_as_of(path: Path, *, held: int) -> datetime | None:
    """The moment as of which past incidents are known: of several workspaces, that of the one least up to date. None
    if one of them was never read to its end, or there was no run. `held` is how many the store holds: where it lost
    them, the record is that of another store."""
    record = read_ingest_record(path)
    if not held and any(each.incidents for each in record):
        return None
    moments = [each.as_of for each in record]
    known = [moment for moment in moments if moment is not None]
    return min(known) if known and len(known) == len(moments) else None


def playbooks_folder(path: Path) -> Path | None:
    """The folder that the playbooks were last read from; None where none was named."""
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
    return Path(text) if text else None


def remember_playbooks_folder(path: Path, folder: Path) -> None:
    """Keep it for the next ingest, which need not be told. Raises OSError."""
    path.write_text(f"{folder.absolute()}\n", encoding="utf-8")


_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
