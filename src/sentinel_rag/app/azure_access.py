"""What the configured identity may do on each Azure workspace, tried from the process that asks: `sentinel doctor`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import anyio

from sentinel_rag.settings import Settings

if TYPE_CHECKING:
    from sentinel_rag.sentinel.access_checks import AccessCheck

TOKEN_WITHIN_S = 30


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


def azure_sign_in(settings: Settings) -> AccessCheck | None:
    """The first Azure workspace for which no token can be had, with the reason; None where there is one for each."""
    return anyio.run(_sign_in_everywhere, settings)


async def _sign_in_everywhere(settings: Settings) -> AccessCheck | None:
    """One token for each authority and audience, not for each workspace."""
    from sentinel_rag.sentinel.access_checks import AccessCheck

    tried: set[tuple[str | None, str]] = set()
    for each in settings.workspaces:
        to_try = (each.authority, each.logs_audience)
        if each.workspace_id is None or to_try in tried:
            continue
        tried.add(to_try)
        reason = await _no_token(*to_try)
        if reason:
            return AccessCheck(each.name, False, reason, "az login (or give this process a managed identity)")
    return None


async def _no_token(authority: str | None, audience: str) -> str:
    """Why no token can be had; empty if one can."""
    from azure.core.exceptions import AzureError, ClientAuthenticationError

    from sentinel_rag.sentinel.credentials import azure_credential

    try:
        with anyio.fail_after(TOKEN_WITHIN_S):
            async with azure_credential(authority=authority) as credential:
                await credential.get_token(f"{audience}/.default")
    except ClientAuthenticationError:
        # Its text names every credential that was tried, over a page.
        return "no configured identity is signed in or allowed"
    except TimeoutError:
        return f"nothing answered within {TOKEN_WITHIN_S} seconds"
    except (AzureError, OSError, ValueError) as error:
        return f"the sign-in failed ({type(error).__name__})"
    return ""
