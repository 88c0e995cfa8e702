"""What a command asks of an Azure workspace, with the identity of the person who runs it: one query, or the schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import anyio

from sentinel_rag.contracts.query_results import TimeWindow
from sentinel_rag.settings import NamedWorkspace

if TYPE_CHECKING:
    from sentinel_rag.sentinel.log_tables import LogsTable


def query_azure(workspace: NamedWorkspace, kql: str, span: TimeWindow) -> LogsTable:
    """Run `kql` over the rows of `span`. Raises QueryFailedError for every way in which there is no table."""
    return anyio.run(_query, workspace, kql, span)


async def _query(workspace: NamedWorkspace, kql: str, span: TimeWindow) -> LogsTable:
    from sentinel_rag.sentinel.credentials import azure_credential
    from sentinel_rag.sentinel.log_analytics import LogAnalytics

    assert workspace.workspace_id is not None, "an embedded workspace is asked by its own way"
    credential = azure_credential(authority=workspace.authority)
    async with LogAnalytics(credential, endpoint=workspace.logs_endpoint, audience=workspace.logs_audience) as logs:
        return await logs.workspace(workspace.name, workspace.workspace_id).query(kql, span)


def azure_schema(workspace: NamedWorkspace) -> Mapping[str, Mapping[str, str]]:
    """Table -> column -> KQL type of a workspace. Raises QueryFailedError."""
    return anyio.run(_schema, workspace)


async def _schema(workspace: NamedWorkspace) -> Mapping[str, Mapping[str, str]]:
    from sentinel_rag.sentinel.credentials import azure_credential
    from sentinel_rag.sentinel.log_analytics import LogAnalytics

    assert workspace.workspace_id is not None, "an embedded workspace is asked by its own way"
    credential = azure_credential(authority=workspace.authority)
    async with LogAnalytics(credential, endpoint=workspace.logs_endpoint, audience=workspace.logs_audience) as logs:
        return await logs.workspace(workspace.name, workspace.workspace_id).schema()
