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

    found: dict[str, tuple[AccessCheck, ...]] = {}
    for each in settings.workspaces:
        if each.workspace_id is None:
            continue
        credential = azure_credential(authority=each.authority)
        async with (
            LogAnalytics(
                credential, endpoint=each.logs_endpoint, audience=each.logs_audience, wait_s=30, retries=1
            ) as logs,
            ArmConnection(
                credential, endpoint=each.arm_endpoint, audience=each.arm_audience, timeout_s=30, retries=1
            ) as manager,
        ):
            rest = None if each.resource_id is None else SentinelRest(each.name, each.resource_id, manager)
            found[each.name] = await check_access(logs.workspace(each.name, each.workspace_id), rest)
    return found
