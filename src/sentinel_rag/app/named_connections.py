"""From the workspaces of a configuration to one `SentinelService`: connections shared where they can be, limits always.

One credential signs for all workspaces of one cloud, and five queries at once are the limit of that identity and not of
a workspace, so workspaces share both. Nothing connects before the first query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from azure.core.credentials_async import AsyncTokenCredential

    from sentinel_rag.sentinel.alert_events import AlertEvents
    from sentinel_rag.sentinel.freeform_query import FreeformQueries
    from sentinel_rag.sentinel.log_analytics import LogsWorkspace
    from sentinel_rag.sentinel.rest import ArmConnection, SentinelRest
    from sentinel_rag.sentinel.rest.rate_buckets import RateBuckets
    from sentinel_rag.sentinel.service import SentinelService

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
    from sentinel_rag.sentinel.template_registry import load_templates

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
    from sentinel_rag.sentinel.log_analytics import LogAnalytics
    from sentinel_rag.sentinel.query_slots import IdentitySlots
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
        from sentinel_rag.sentinel.rest.rate_buckets import RateBuckets

        subscription = str(entry["rest"]["resource_id"]).strip("/").split("/")[1].lower()
        return self._buckets.setdefault((entry["rest"]["endpoint"], subscription), RateBuckets(share=self._share))
