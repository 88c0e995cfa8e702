"""KQL by hand over the workspace that a command means: an embedded one, or one of Azure under the person's own sign-in.

Both give the schema and the rows in one form, so that what is checked and printed does not depend on where the rows
are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from sentinel_rag.contracts.query_results import TimeWindow
from sentinel_rag.settings import NamedWorkspace, Settings

if TYPE_CHECKING:
    from sentinel_rag.sentinel.log_tables import LogsTable
    from sentinel_rag.surfaces.cli._workspace_access import WorkspaceAccess


class KqlAccess(Protocol):
    """One workspace by name. Both methods raise SentinelError."""

    name: str

    def schema(self) -> Mapping[str, Mapping[str, str]]:
        """Table -> column -> KQL type."""
        ...

    def answer(self, kql: str, span: TimeWindow) -> LogsTable:
        """The rows of a query over `span` of TimeGenerated."""
        ...


@contextmanager
def kql_access(settings: Settings, requested: str | None) -> Iterator[KqlAccess]:
    """Access to the chosen workspace. Raises UsageError for a name that means none."""
    from sentinel_rag.surfaces.cli._zones import choose_workspace

    chosen = settings.named(choose_workspace(settings, requested)) if settings.workspaces else None
    if chosen is not None and not chosen.embedded:
        yield _OnAzure(chosen)
        return
    from sentinel_rag.surfaces.cli._workspace_access import workspace_access

    with workspace_access(settings, requested if chosen is None else chosen.name, writes=False) as access:
        yield _Embedded(access)


class _OnAzure:
    def __init__(self, workspace: NamedWorkspace) -> None:
        self.name = workspace.name
        self._workspace = workspace

    def schema(self) -> Mapping[str, Mapping[str, str]]:
        from sentinel_rag.app.log_queries import azure_schema

        return azure_schema(self._workspace)

    def answer(self, kql: str, span: TimeWindow) -> LogsTable:
        from sentinel_rag.app.log_queries import query_azure

        return query_azure(self._workspace, kql, span)


class _Embedded:
    def __init__(self, access: WorkspaceAccess) -> None:
        self.name = access.name
        self._access = access

    def schema(self) -> Mapping[str, Mapping[str, str]]:
        return self._access.schema()

    def answer(self, kql: str, span: TimeWindow) -> LogsTable:
        from sentinel_rag.sentinel.log_analytics import timespan_text
        from sentinel_rag.sentinel.log_tables import decode_table

        answer = self._access.query(kql, timespan_text(span))
        return decode_table(answer, kql, partial_reason=answer["partial"])
