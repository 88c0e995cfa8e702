"""What a command asks of an Azure workspace, with the identity of the person who runs it: one query, or the schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import anyio

from sentinel_rag.contracts.query_results import TimeWindow
from sentinel_rag.settings import Settings

if TYPE_CHECKING:
    from sentinel_rag.sentinel.log_tables import LogsTable


def query_azure(settings: Settings, workspace: str, kql: str, span: TimeWindow) -> LogsTable:
    """Run `kql` over the rows of `span`. Raises QueryFailedError for every way in which there is no table."""
    return anyio.run(_query, settings, workspace, kql, span)


async def _query(settings: Settings, workspace: str, kql: str, span: TimeWindow) -> LogsTable:
    from sentinel_rag.sentinel.credentials import azure_credential
    from sentinel_rag.sentinel.log_analytics import LogAnalytics

    async with LogAnalytics(azure_credential(), endpoint=settings.logs_endpoint) as logs:
        return await logs.workspace(workspace, settings.azure_workspaces[workspace]).query(kql, span)


def azure_schema(settings: Settings, workspace: str) -> Mapping[str, Mapping[str, str]]:
    """Table -> column -> KQL type of a workspace. Raises QueryFailedError."""
    return anyio.run(_schema, settings, workspace)


async def _schema(settings: Settings, workspace: str) -> Mapping[str, Mapping[str, str]]:
    from sentinel_rag.sentinel.credentials import azure_credential
    from sentinel_rag.sentinel.log_analytics import LogAnalytics

    async with LogAnalytics(azure_credential(), endpoint=settings.logs_endpoint) as logs:
        return await logs.workspace(workspace, settings.azure_workspaces[workspace]).schema()
