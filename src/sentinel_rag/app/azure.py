"""Azure workspaces: the tool server's connections, what an identity may do there, and what a command asks of one.

One credential signs for all workspaces of one cloud, and five queries at once are the limit of that identity and not of
a workspace, so workspaces share both. Nothing connects before the first query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from sentinel_rag.contracts.query_results import TimeWindow
from sentinel_rag.settings import NamedWorkspace, Settings

if TYPE_CHECKING:
    from azure.core.credentials_async import AsyncTokenCredential

    from sentinel_rag.sentinel.access_checks import AccessCheck
    from sentinel_rag.sentinel.alert_events import AlertEvents
    from sentinel_rag.sentinel.freeform_query import FreeformQueries
    from sentinel_rag.sentinel.logs.log_analytics import LogsTable, LogsWorkspace
    from sentinel_rag.sentinel.rest import ArmConnection, SentinelRest
    from sentinel_rag.sentinel.rest.connection import RateBuckets
    from sentinel_rag.sentinel.service import SentinelService


TOKEN_WITHIN_S = 30


def azure_access(settings: Settings) -> Mapping[str, tuple[AccessCheck, ...]]:
    """The checks by workspace. Raises ConfigurationError for settings that cannot be used."""
    return anyio.run(_check_all, settings)


async def _check_all(settings: Settings) -> dict[str, tuple[AccessCheck, ...]]:
    from sentinel_rag.sentinel.access_checks import check_access
    from sentinel_rag.sentinel.credentials import azure_credential
    from sentinel_rag.sentinel.logs.log_analytics import LogAnalytics
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


def query_azure(workspace: NamedWorkspace, kql: str, span: TimeWindow) -> LogsTable:
    """Run `kql` over the rows of `span`. Raises QueryFailedError for every way in which there is no table."""
    return anyio.run(_query, workspace, kql, span)


async def _query(workspace: NamedWorkspace, kql: str, span: TimeWindow) -> LogsTable:
    from sentinel_rag.sentinel.credentials import azure_credential
    from sentinel_rag.sentinel.logs.log_analytics import LogAnalytics

    assert workspace.workspace_id is not None, "an embedded workspace is asked by its own way"
    credential = azure_credential(authority=workspace.authority)
    async with LogAnalytics(credential, endpoint=workspace.logs_endpoint, audience=workspace.logs_audience) as logs:
        return await logs.workspace(workspace.name, workspace.workspace_id).query(kql, span)


def azure_schema(workspace: NamedWorkspace) -> Mapping[str, Mapping[str, str]]:
    """Table -> column -> KQL type of a workspace. Raises QueryFailedError."""
    return anyio.run(_schema, workspace)


async def _schema(workspace: NamedWorkspace) -> Mapping[str, Mapping[str, str]]:
    from sentinel_rag.sentinel.credentials import azure_credential
    from sentinel_rag.sentinel.logs.log_analytics import LogAnalytics

    assert workspace.workspace_id is not None, "an embedded workspace is asked by its own way"
    credential = azure_credential(authority=workspace.authority)
    async with LogAnalytics(credential, endpoint=workspace.logs_endpoint, audience=workspace.logs_audience) as logs:
        return await logs.workspace(workspace.name, workspace.workspace_id).schema()


Entry = Mapping[str, Any]
"""`name, workspace_id, endpoint, audience, identity {endpoint, header} | None, authority, rest {...} | None`, as
`app.plan` writes it for the tool server."""


def connected_service(
    entries: Sequence[Entry],
    *,
    templates: str | None,
    freeform: FreeformQueries | None = None,
    alert_events: AlertEvents | None = None,
) -> SentinelService:
    """The tools over `entries`, the first of which is the default. Raises ConfigurationError."""
    from sentinel_rag.sentinel.service import SentinelService
    from sentinel_rag.sentinel.templates.template_registry import load_templates

    workspaces, rest = connected_workspaces(entries)
    folder = None if templates is None else Path(templates)
    return SentinelService(
        workspaces, rest=rest, templates=load_templates(own=folder), freeform=freeform, alert_events=alert_events
    )


def connected_workspaces(
    entries: Sequence[Entry], *, share: float = 1.0
) -> tuple[dict[str, LogsWorkspace], dict[str, SentinelRest]]:
    """Log and REST of each of `entries` by its name, in their order; REST of those alone that have it. `share` is the
    part of Sentinel's request limits that is used. Whoever calls closes the connections. Raises ConfigurationError."""
    from sentinel_rag.sentinel.logs.log_analytics import IdentitySlots, LogAnalytics
    from sentinel_rag.sentinel.rest import SentinelRest

    shared = _Shared(share)
    slots = IdentitySlots()
    several = len({entry["endpoint"] for entry in entries}) > 1
    connections: dict[tuple[Any, ...], LogAnalytics] = {}
    workspaces: dict[str, LogsWorkspace] = {}
    rest: dict[str, SentinelRest] = {}
    for entry in entries:
        name, endpoint, audience = entry["name"], entry["endpoint"], entry["audience"]
        key = (endpoint, audience, entry["authority"])
        if key not in connections:
            connections[key] = LogAnalytics(
                shared.credential(entry),
                endpoint=endpoint,
                audience=audience,
                slots=slots.of_endpoint() if several else slots,
            )
        workspaces[name] = connections[key].workspace(name, entry["workspace_id"])
        if entry["rest"] is not None:
            resource = entry["rest"]["resource_id"]
            rest[name] = SentinelRest(name, resource, shared.manager(entry), buckets=shared.buckets(entry))
    return workspaces, rest


class _Shared:
    """What several workspaces use together, each made once."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._credentials: dict[Any, AsyncTokenCredential] = {}
        self._managers: dict[tuple[Any, ...], ArmConnection] = {}
        self._buckets: dict[tuple[str, str], RateBuckets] = {}

    def credential(self, entry: Entry) -> AsyncTokenCredential:
        """The identity of an embedded workspace, or that of a cloud."""
        from sentinel_rag.sentinel.credentials import IdentityEndpointCredential, azure_credential

        identity = entry["identity"]
        key = entry["authority"] if identity is None else identity["endpoint"]
        if key not in self._credentials:
            self._credentials[key] = (
                azure_credential(authority=entry["authority"])
                if identity is None
                else IdentityEndpointCredential(identity["endpoint"], identity["header"])
            )
        return self._credentials[key]

    def manager(self, entry: Entry) -> ArmConnection:
        """The Resource Manager of a cloud, or of an embedded workspace."""
        from sentinel_rag.sentinel.rest import ArmConnection

        rest = entry["rest"]
        key = (rest["endpoint"], rest["audience"], entry["authority"])
        if key not in self._managers:
            self._managers[key] = ArmConnection(
                self.credential(entry), endpoint=rest["endpoint"], audience=rest["audience"]
            )
        return self._managers[key]

    def buckets(self, entry: Entry) -> RateBuckets:
        """The count of the subscription's limits: all of its workspaces draw on it."""
        from sentinel_rag.sentinel.rest.connection import RateBuckets

        subscription = str(entry["rest"]["resource_id"]).strip("/").split("/")[1].lower()
        return self._buckets.setdefault((entry["rest"]["endpoint"], subscription), RateBuckets(share=self._share))
