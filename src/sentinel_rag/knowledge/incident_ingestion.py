"""Read incidents into a store: what a list shows as new or changed is read, the rest costs no request."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Collection as SomeOf
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from sentinel_rag.contracts.errors import ConfigurationError, SentinelError
from sentinel_rag.knowledge.documents import Collection, Document, IncidentRecord, incident_document, incident_id
from sentinel_rag.knowledge.embedding import Embedder
from sentinel_rag.knowledge.ingestion import IngestReport, give_vectors, ingest
from sentinel_rag.knowledge.stores.port import EmbeddingMismatchError, KnowledgeStore

# What a store remembers of an incident that it holds: enough to tell, from a list alone, whether it is still the same.
# It is kept as the document's etag, so that it is written in one transaction with the document. Sentinel's own etag is
# part of it; the counts are there because nothing says that a comment or a late alert changes the etag.
READING = 2
"""Raised when reading or chunking an incident changes, so that every incident is read again."""


@dataclass(frozen=True, slots=True)
class StoredIncident:
    """One version of one incident. `name` is its GUID; `modified` and `created` are the service's own texts. `whole` is
    False where its details could not be read yet: then it equals no version of a list, and is read again; so does one
    of an earlier `reading`. `workspace_id` is told in a store that several homes share, where `workspace`, a name, is
    not enough."""

    workspace: str
    name: str
    etag: str
    modified: str = ""
    created: str = ""
    comments: int = 0
    alerts: int = 0
    whole: bool = True
    workspace_id: str = ""
    reading: int = READING

    @property
    def text(self) -> str:
        """As the store keeps it."""
        parts = [self.workspace, self.name, self.etag, self.modified, self.created, self.comments, self.alerts]
        of_whom = [self.workspace_id] if self.workspace_id else []
        return json.dumps([self.reading, *parts, self.whole, *of_whom], ensure_ascii=True)

    @property
    def created_at(self) -> datetime | None:
        """When the incident was created; None where the service told no such time."""
        try:
            moment = datetime.fromisoformat(self.created)
        except ValueError:
            return None
        return moment if moment.tzinfo is not None else None


def version_from_text(text: str) -> StoredIncident | None:
    """The version that a store kept, of whichever way of reading: by it the incident's workspace and age are known, so
    that it is brought up to date or removed like any other. None for one of another origin."""
    try:
        reading, workspace, name, etag, modified, created, comments, alerts, whole, *of_whom = json.loads(text)
    except (ValueError, TypeError):
        return None
    of = of_whom[0] if of_whom else ""
    return StoredIncident(workspace, name, etag, modified, created, comments, alerts, whole, of, reading)


# Where homes share a store, a workspace's name says nothing: everybody's first one is `default`. What an earlier
# version stored says only the name; it is a workspace's own if its list shows the same incidents, by their GUIDs.
Held = Mapping[str, StoredIncident]
"""Versions by document id."""


@dataclass(frozen=True, slots=True)
class HeldIncidents:
    """What a store holds for one workspace: `own` is surely its own, `unclaimed` has its name and tells no id."""

    own: Held
    unclaimed: Held

    def with_claimed(self, name: str, listed: Mapping[str, StoredIncident]) -> HeldIncidents:
        """The same once it is known what the workspace called `name` lists: all that is unclaimed is its own if some of
        it is in the list. Raises ConfigurationError if an incident of another workspace stands where one of these
        belongs."""
        guids = {version.name.lower() for version in listed.values()}
        for document, version in self.unclaimed.items():
            if document in listed and listed[document].name.lower() != version.name.lower():
                raise _taken(name)
        if any(version.name.lower() in guids for version in self.unclaimed.values()):
            return HeldIncidents({**self.own, **self.unclaimed}, {})
        return self


def held_versions(store: KnowledgeStore) -> dict[str, StoredIncident]:
    """Of all incidents of a store that a way of reading like this one put there."""
    return dict(_known(store))


def _known(store: KnowledgeStore) -> Iterator[tuple[str, StoredIncident]]:
    for document, held in store.versions(Collection.INCIDENTS).items():
        version = version_from_text(held.etag)
        if version is not None:
            yield document, version


def incidents_of(store: KnowledgeStore, name: str, workspace_id: str) -> HeldIncidents:
    """Those of the workspace called `name`. `workspace_id` is empty in a store of one home, where the name is enough.

    Raises ConfigurationError if the store knows another workspace by this name, or this one by another.
    """
    held = held_versions(store)
    named = {document: version for document, version in held.items() if version.workspace == name}
    if not workspace_id:
        return HeldIncidents(named, {})
    if any(version.workspace_id not in ("", workspace_id) for version in named.values()):
        raise _taken(name)
    for version in held.values():
        if version.workspace_id == workspace_id and version.workspace != name:
            raise ConfigurationError(
                f"The shared knowledge store knows the workspace {name} as {version.workspace}, and one workspace has "
                "one name there.",
                next_step=f"Name it {version.workspace} in this home too (see docs/workspaces.md).",
            )
    return HeldIncidents(
        {document: version for document, version in named.items() if version.workspace_id},
        {document: version for document, version in named.items() if not version.workspace_id},
    )


def _taken(name: str) -> ConfigurationError:
    return ConfigurationError(
        f"The shared knowledge store holds incidents of another workspace that is named {name} too, so these were not "
        "read in.",
        next_step=(
            "Give this workspace a name that is free: on Azure SENTINEL_WORKSPACE_ID=NAME=GUID (the Resource ID "
            "likewise); an embedded one by the name of its folder and SENTINEL_WORKSPACE=NAME."
        ),
    )


# The window says how far back incidents are read in for the first time. What was read in stays: it is kept current and
# goes only when Sentinel no longer has it, since how an old case was closed is what it is remembered for.
_AT_ONCE = 100
"""Incidents whose details are read together."""
_MOST_ASKED = 200
"""Missing incidents that are asked for by name in one run, where the list cannot be trusted to be whole."""


@dataclass(frozen=True, slots=True)
class ListedIncident:
    """An incident as a list shows it, without alerts, entities and comments."""

    version: StoredIncident
    record: IncidentRecord


@dataclass(frozen=True, slots=True)
class IncidentListing:
    """Incidents of a list. `complete` is False where there may be more of them."""

    incidents: tuple[ListedIncident, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class ReadIncident:
    """An incident with its details. `whole` is False where some could not be read for now (a request limit)."""

    record: IncidentRecord
    whole: bool


class IncidentSource(Protocol):
    """The incidents of one workspace. Each call blocks and may raise SentinelError."""

    @property
    def workspace(self) -> str: ...

    @property
    def workspace_id(self) -> str:
        """The workspace's GUID, which no other one has, whatever its name."""
        ...

    def listing(self, since: datetime) -> IncidentListing:
        """All incidents that were created at `since` or later."""
        ...

    def details(self, incidents: Sequence[ListedIncident]) -> Sequence[ReadIncident]:
        """The incidents with their details, in the same order."""
        ...

    def gone(self, names: Sequence[str]) -> frozenset[str]:
        """Those of the GUIDs that the service says it does not have."""
        ...


@dataclass(frozen=True, slots=True)
class IngestProgress:
    """How far a workspace is: `done` of `total` incidents that had to be read, seconds since it began. `total` is None
    while it is not known yet. Without a workspace it is of texts that are given the vectors they lack."""

    workspace: str
    done: int = 0
    total: int | None = None
    seconds: float = 0.0

    @property
    def remaining_s(self) -> float | None:
        """Seconds left at the rate so far; None while nothing can be said."""
        if self.total is None or not self.done or self.seconds <= 0:
            return None
        return (self.total - self.done) * self.seconds / self.done


ProgressListener = Callable[[IngestProgress], None]


@dataclass(frozen=True, slots=True)
class WorkspaceReport:
    """What became of one workspace. `listed` incidents were seen; `partial` of those that were read lack details for
    now. `fault` says why it could not be read to the end, and is empty where it was; then `next_step` says what
    helps. `served` is False for one that this home serves no more, whose incidents went."""

    workspace: str
    ingested: IngestReport
    listed: int = 0
    partial: int = 0
    fault: str = ""
    next_step: str = ""
    served: bool = True


def ingest_incidents(
    store: KnowledgeStore,
    embedder: Embedder | None,
    sources: Sequence[IncidentSource],
    *,
    since: datetime,
    also_served: SomeOf[str] = (),
    formerly_served: SomeOf[str] = (),
    shared: bool = False,
    reread: bool = False,
    listener: ProgressListener | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[WorkspaceReport, ...]:
    """Bring the store's incidents up to those of `sources`. These and `also_served`, which cannot be read, are the
    workspaces that are served now; what the store holds of those `formerly_served` goes, each told in a report. A
    `shared` store holds others' workspaces too: then ids name the workspace even where there is one, a workspace is
    known by its id, and what is not served here stays, since others may serve it.

    Incidents created before `since` are not read in, but kept current if they are there. `reread` reads also what did
    not change. A workspace that fails is told in its report and ends nothing else; what was read until then stays, and
    the next run goes on from it. Raises EmbeddingMismatchError.
    """
    began = clock()

    def tell_vectors(done: int, total: int) -> None:
        if listener is not None:
            listener(IngestProgress("", done, total, clock() - began))

    vectors = 0 if embedder is None else give_vectors(store, embedder, tell_vectors)
    vectors_s = clock() - began
    served = {*(source.workspace for source in sources), *also_served}
    several = len(served) > 1 or shared
    reports: list[WorkspaceReport] = []
    for source in sources:
        run = _Run(store, embedder, source, several, listener, clock, shared=shared)
        try:
            reports.append(run.ingest(since, reread=reread))
        except EmbeddingMismatchError:
            raise
        except SentinelError as error:
            reports.append(replace(run.report, fault=str(error), next_step=error.next_step))
    if vectors and reports:  # they are of the whole store, and belong to the run
        done = reports[0].ingested
        done = replace(done, embedded=done.embedded + vectors, seconds=done.seconds + vectors_s)
        reports[0] = replace(reports[0], ingested=done)
    if not shared:
        for name in sorted(set(formerly_served) - served):
            removed = store.remove(Collection.INCIDENTS, incidents_of(store, name, "").own)
            if removed:
                reports.append(WorkspaceReport(name, IngestReport(removed=removed), served=False))
    return tuple(reports)


class _Run:
    """One workspace of one run; `report` is true at any moment."""

    def __init__(
        self,
        store: KnowledgeStore,
        embedder: Embedder | None,
        source: IncidentSource,
        several: bool,
        listener: ProgressListener | None,
        clock: Callable[[], float],
        *,
        shared: bool,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._source = source
        self._suffix = source.workspace if several else ""
        self._workspace_id = source.workspace_id if shared else ""
        self._listener = listener
        self._clock = clock
        self._began = clock()
        self._total: int | None = None
        self.report = WorkspaceReport(source.workspace, IngestReport())

    def ingest(self, since: datetime, *, reread: bool) -> WorkspaceReport:
        self._tell()
        held = incidents_of(self._store, self._source.workspace, self._workspace_id)
        versions = [*held.own.values(), *held.unclaimed.values()]
        oldest = [moment for version in versions if (moment := version.created_at) is not None]
        listing = self._source.listing(min([since, *oldest]))
        listed = {incident_id(each.record.number, self._suffix): self._owned(each) for each in listing.incidents}
        held = held.with_claimed(self._source.workspace, {name: each.version for name, each in listed.items()})
        own = held.own
        known = {version.name.lower() for version in own.values()}
        wanted = {
            name: each
            for name, each in listed.items()
            if each.version.name.lower() in known or not _before(each, since)
        }
        changed = [each for name, each in wanted.items() if reread or own.get(name) != each.version]
        self.report = replace(
            self.report,
            listed=len(wanted),
            ingested=replace(self.report.ingested, unchanged=len(wanted) - len(changed)),
        )
        self._total = len(changed)
        self._tell()
        if changed:
            ingest(
                self._store,
                self._embedder,
                Collection.INCIDENTS,
                self._documents(changed),
                complete=False,
                listener=self._put,
                clock=self._clock,
            )
        put = {each.version.name.lower() for each in wanted.values()}
        missing = {name: version for name, version in own.items() if name not in listed}
        renamed = [name for name, version in missing.items() if version.name.lower() in put]
        gone = [*renamed, *self._gone({name: missing[name] for name in missing.keys() - set(renamed)}, listing)]
        removed = self._store.remove(Collection.INCIDENTS, gone)
        self._add(removed=removed)
        self._tell()
        return self.report

    def _owned(self, incident: ListedIncident) -> ListedIncident:
        return replace(incident, version=replace(incident.version, workspace_id=self._workspace_id))

    def _documents(self, changed: Sequence[ListedIncident]) -> Iterator[Document]:
        """Newest first: they are asked for most, and a run may be interrupted."""
        newest_first = sorted(changed, key=lambda each: each.version.created, reverse=True)
        for start in range(0, len(newest_first), _AT_ONCE):
            part = newest_first[start : start + _AT_ONCE]
            for listed, read in zip(part, self._source.details(part), strict=True):
                if not read.whole:
                    self.report = replace(self.report, partial=self.report.partial + 1)
                version = replace(listed.version, whole=read.whole)
                yield incident_document(replace(read.record, workspace=self._suffix, etag=version.text))

    def _gone(self, missing: Mapping[str, StoredIncident], listing: IncidentListing) -> Sequence[str]:
        """Of those that the list does not show, the ones that are surely no more: a list that may end early, or that
        shows nothing at all, proves nothing."""
        if listing.complete and listing.incidents:
            return list(missing)
        asked = dict(list(missing.items())[:_MOST_ASKED])
        names = self._source.gone([version.name for version in asked.values()]) if asked else frozenset()
        return [name for name, version in asked.items() if version.name in names]

    def _put(self, step: IngestReport) -> None:
        """A step was stored. Its `unchanged` are incidents whose new version says the same."""
        before = self.report.ingested
        self.report = replace(
            self.report,
            ingested=replace(step, unchanged=(self.report.listed - (self._total or 0)) + step.unchanged),
        )
        if self.report.ingested != before:
            self._tell()

    def _add(self, *, removed: int) -> None:
        ingested = self.report.ingested
        self.report = replace(
            self.report,
            ingested=replace(ingested, removed=ingested.removed + removed, seconds=self._clock() - self._began),
        )

    def _tell(self) -> None:
        if self._listener is not None:
            done = self.report.ingested.added + self.report.ingested.changed
            self._listener(IngestProgress(self._source.workspace, done, self._total, self._clock() - self._began))


def _before(incident: ListedIncident, since: datetime) -> bool:
    created = incident.version.created_at
    return created is not None and created < since
