"""The embedded workspace as one object: open, import, generate, query, read and write incidents, close.

What the wire server, the command line and tests use; below it are the store, the importer, the sample estate and the
KQL engine. Every method may be called from any thread; an import and a generation wait for each other, queries never.

What the owner of an embedded workspace may ask of it: operations with their arguments, that answer in JSON.

The server's admin routes take them over HTTP, and a command carries them out itself where no server has the file open;
so both take and give the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.workspace.importing.importer import Importer
from sentinel_rag.workspace.importing.reports import ImportReport, questions_of
from sentinel_rag.workspace.incidents.incident_store import BookmarkStore, IncidentStore
from sentinel_rag.workspace.queries import KqlAnswer, KqlEngine, QueryLimits, StopSignal, TimeRange
from sentinel_rag.workspace.sample.generate import EstateGuide, generate_estate
from sentinel_rag.workspace.sample.options import DEFAULT_DAYS, DEFAULT_EVENTS, EstateOptions
from sentinel_rag.workspace.store import MemoryLimits, Store, TableInfo
from sentinel_rag.workspace.watchlists import Watchlists


class Workspace:
    """A folder with an analyst's tables. Make one with `open`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._engine = KqlEngine(store)
        self._importer = Importer(store)
        self.watchlists = Watchlists(store, self._importer)
        self.incidents = IncidentStore(store)
        self.bookmarks = BookmarkStore(store)

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False, limits: MemoryLimits | None = None) -> Workspace:
        """Open or create the workspace in folder `path`, with memory and disk for its queries as in `limits`.

        Raises UnavailableError while another process has it open, UsageError for a path that cannot hold one.
        """
        return cls(Store.open(path, read_only=read_only, limits=limits))

    @property
    def folder(self) -> Path:
        return self._store.folder

    def import_path(self, path: Path, *, table: str | None = None, trial: bool = False) -> list[ImportReport]:
        """Import a file, or every importable file of a folder; a report for each table that a file went to, or would
        go to where it is a `trial`, which stores nothing.

        Raises SentinelError if a single file cannot be imported; in a folder such a file is a report with `error`.
        """
        return self._importer.import_path(path, table=table, trial=trial)

    def generate(self, options: EstateOptions) -> EstateGuide:
        """Write the sample estate in place of an earlier one; imported rows stay. Same options, same rows."""
        return generate_estate(self._store, options)

    def tables(self, *, include_empty: bool = False) -> list[TableInfo]:
        """The tables that hold rows, by name; `include_empty` adds the known tables without any."""
        return self._store.tables(include_empty=include_empty)

    def schema(self) -> Mapping[str, Mapping[str, str]]:
        """Table -> column -> KQL type of every table that a query may read, with rows or without."""
        return self._store.schema()

    def columns(self, table: str) -> dict[str, str]:
        """Column -> KQL type of one table, empty for a table that does not exist."""
        return dict(self._store.schema().get(table, {}))

    def query(
        self,
        kql: str,
        *,
        timespan: str | TimeRange | None = None,
        max_rows: int = 500_000,
        max_bytes: int = 64_000_000,
        timeout_s: float = 180.0,
        signal: StopSignal | None = None,
    ) -> KqlAnswer:
        """Answer `kql`; `timespan` (ISO 8601) restricts TimeGenerated of every table read.

        An answer over a limit is cut and says so in `partial`. Raises KqlError, KqlTimeoutError, TimespanError, or
        KqlCancelledError once `signal` is given.
        """
        limits = QueryLimits(max_rows, max_bytes, timeout_s)
        return self._engine.query(kql, timespan=timespan, limits=limits, signal=signal)

    def close(self) -> None:
        self._store.close()


class WorkspaceOperation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One operation; its fields are its arguments."""

    def run(self, workspace: Workspace) -> Any:
        """Carry it out. Raises SentinelError."""
        raise NotImplementedError


class _Tables(WorkspaceOperation, frozen=True):
    def run(self, workspace: Workspace) -> Any:
        return {"tables": [table.to_dict() for table in workspace.tables()]}


class _Schema(WorkspaceOperation, frozen=True):
    def run(self, workspace: Workspace) -> Any:
        return {"schema": {table: dict(columns) for table, columns in workspace.schema().items()}}


class _Import(WorkspaceOperation, frozen=True):
    path: str
    table: str | None = None
    trial: bool = False

    def run(self, workspace: Workspace) -> Any:
        path = Path(self.path)
        if not path.is_absolute():
            raise UsageError(f"The path {path} is not absolute.", next_step="Send the whole path of the file.")
        reports = workspace.import_path(path, table=self.table, trial=self.trial)
        return {"reports": [report.to_dict() for report in reports], "questions": questions_of(reports)}


class _Generate(WorkspaceOperation, frozen=True):
    days: int = DEFAULT_DAYS
    events: int = DEFAULT_EVENTS
    seed: int = 7
    end: datetime | None = None

    def run(self, workspace: Workspace) -> Any:
        options = EstateOptions(days=self.days, events=self.events, seed=self.seed, end=self.end)
        return {"guide": workspace.generate(options).to_dict()}


class _Query(WorkspaceOperation, frozen=True):
    kql: str
    timespan: str | None = None
    max_rows: int = 10_000

    def run(self, workspace: Workspace) -> Any:
        return workspace.query(self.kql, timespan=self.timespan, max_rows=self.max_rows).to_dict()


class _PutWatchlist(WorkspaceOperation, frozen=True):
    alias: str
    path: str
    search_key: str | None = None
    replaces: bool = False

    def run(self, workspace: Workspace) -> Any:
        lists, path = workspace.watchlists, Path(self.path)
        return lists.put(self.alias, path, search_key=self.search_key, replaces=self.replaces)


class _RemoveWatchlist(WorkspaceOperation, frozen=True):
    alias: str

    def run(self, workspace: Workspace) -> Any:
        workspace.watchlists.remove(self.alias)
        return {"alias": self.alias}


class _Merge(WorkspaceOperation, frozen=True):
    source: int
    target: int

    def run(self, workspace: Workspace) -> Any:
        try:
            workspace.incidents.merge(self.source, self.target)
        except LookupError as error:
            raise UsageError(
                f"No incident has the number {error}, or it is both source and target.",
                next_step="Name two incidents of this workspace by their Sentinel numbers.",
            ) from None
        return {"source": self.source, "target": self.target}


OPERATIONS: Mapping[tuple[str, str], type[WorkspaceOperation]] = {
    ("GET", "/admin/tables"): _Tables,
    ("GET", "/admin/schema"): _Schema,
    ("POST", "/admin/import"): _Import,
    ("POST", "/admin/generate"): _Generate,
    ("POST", "/admin/query"): _Query,
    ("POST", "/admin/watchlists"): _PutWatchlist,
    ("DELETE", "/admin/watchlists"): _RemoveWatchlist,
    ("POST", "/admin/merge"): _Merge,
}
"""By the method and the path under which the server takes them."""
