"""The embedded workspace as one object: open, import, generate, query, read and write incidents, close.

What the wire server, the command line and tests use; below it are the store, the importer, the sample estate and the
KQL engine. Every method may be called from any thread; an import and a generation wait for each other, queries never.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sentinel_rag.workspace.importing.importer import Importer
from sentinel_rag.workspace.importing.reports import ImportReport
from sentinel_rag.workspace.incidents.incident_store import BookmarkStore, IncidentStore
from sentinel_rag.workspace.queries import KqlAnswer, KqlEngine, QueryLimits, StopSignal, TimeRange
from sentinel_rag.workspace.sample.generate import EstateGuide, generate_estate
from sentinel_rag.workspace.sample.options import EstateOptions
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
