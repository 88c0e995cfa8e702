"""What the owner of an embedded workspace may ask of it: operations with their arguments, that answer in JSON.

The server's admin routes take them over HTTP, and a command carries them out itself where no server has the file open;
so both take and give the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.workspace.importing.reports import questions_of
from sentinel_rag.workspace.sample.options import DEFAULT_DAYS, DEFAULT_EVENTS, EstateOptions

if TYPE_CHECKING:
    from sentinel_rag.workspace.workspace import Workspace


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
