"""What the tools of one workspace share: the rows, the statistics and the schema of its tables, the clock, the way to
change it."""

from __future__ import annotations

from dataclasses import dataclass

from sentinel_rag.contracts.ports import Clock
from sentinel_rag.sentinel.log_analytics import LogsWorkspace
from sentinel_rag.sentinel.rest import SentinelRest
from sentinel_rag.sentinel.table_statistics import TableStatisticsReader
from sentinel_rag.sentinel.workspace_schema import WorkspaceSchema


@dataclass(frozen=True, slots=True)
class WorkspaceView:
    """Made once for each workspace; every tool takes it first. Without `rest` nothing can be changed."""

    logs: LogsWorkspace
    statistics: TableStatisticsReader
    schema: WorkspaceSchema
    clock: Clock
    rest: SentinelRest | None = None
