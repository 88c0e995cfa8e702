"""What the configured identity may do on each Azure workspace, tried from the process that asks: `sentinel doctor`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import anyio

from sentinel_rag.settings import Settings

if TYPE_CHECKING:
    from sentinel_rag.sentinel.access_checks import AccessCheck


def azure_access(settings: Settings) -> Mapping[str, tuple[AccessCheck, ...]]:
    """The checks by workspace. Raises ConfigurationError for settings that cannot be used."""
    return anyio.run(_check_all, settings)


async def _check_all(settings: Settings) -> dict[str, tuple[AccessCheck, ...]]:
    from sentinel_rag.sentinel.access_checks import check_access
    from sentinel_rag.sentinel.credentials import azure_credential
    from sentinel_rag.sentinel.log_analytics import LogAnalytics
    from sentinel_rag.sentinel.rest import ArmConnection, SentinelRest

    credential = azure_credential()
    found: dict[str, tuple[AccessCheck, ...]] = {}
    async with (
        LogAnalytics(credential, endpoint=settings.logs_endpoint, wait_s=30, retries=1) as logs,
        ArmConnection(credential, endpoint=settings.arm_endpoint, timeout_s=30, retries=1) as manager,
    ):
        for name, workspace_id in settings.azure_workspaces.items():
            resource = settings.workspace_resources.get(name)
            rest = None if resource is None else SentinelRest(name, resource, manager)
            found[name] = await check_access(logs.workspace(name, workspace_id), rest)
    return found
