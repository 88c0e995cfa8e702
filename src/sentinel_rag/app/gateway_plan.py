"""One zone of a run as a value, and the plans of the gateway and of what lies behind it.

Listening sockets are opened here and inherited by the zones, so no port is guessed or lost to a race, and all zones can
start at once. Every tool server has a secret of its own, which the gateway alone is told.
"""

from __future__ import annotations

import errno
import secrets
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

from sentinel_rag.app.knowledge_stores import knowledge_configuration, knowledge_environment
from sentinel_rag.app.places import database_configuration, embedded_workspace_id, gateway_folder, workspace_folder
from sentinel_rag.app.tool_servers import (
    freeform_configuration,
    stored_query_configuration,
    switched_off_tools,
    tool_server_configuration,
)
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.settings import NamedWorkspace, Settings, azure_environment, bare_environment
from sentinel_rag.workspace.sample.company import WORKSPACE_RESOURCE


@dataclass(frozen=True, slots=True)
class ListeningSocket:
    """A socket that listens on loopback already, and its base URL."""

    socket: socket.socket
    url: str


@dataclass(frozen=True, slots=True)
class ZonePlan:
    """One process to start: its module arguments, its configuration line and its whole environment."""

    name: str
    arguments: tuple[str, ...]
    configuration: Mapping[str, Any]
    environment: Mapping[str, str]
    listener: ListeningSocket
    needed: bool = True
    """False for a zone without which the others serve on: an embedded workspace beside the default one."""


class Listen(Protocol):
    """Opens the socket of one zone, by name; 0 takes a free port. Raises UnavailableError for a port in use, UsageError
    for one that needs special rights."""

    def __call__(self, name: str, port: int = 0) -> ListeningSocket: ...


def zone(
    name: str, configuration: Mapping[str, Any], environment: Mapping[str, str], listener: ListeningSocket
) -> ZonePlan:
    """A zone that `app.zones` builds under this name."""
    return ZonePlan(name, ("sentinel_rag.app", name), configuration, environment, listener)


def listening(stack: ExitStack) -> Listen:
    """Sockets on loopback that `stack` closes."""

    def listen(name: str, port: int = 0) -> ListeningSocket:
        listener = _listen(name, port)
        stack.callback(listener.socket.close)
        return listener

    return listen


def _listen(name: str, port: int) -> ListeningSocket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise UnavailableError(
                f"Port {port} for the {name} is in use by another program.",
                next_step="Choose another port, or take a free one: sentinel up" + (" --web" if name == "web" else ""),
            ) from None
        if isinstance(error, PermissionError):
            raise UsageError(
                f"Port {port} needs special rights.", next_step="Choose a port above 1023: sentinel up --port 8787"
            ) from None
        raise
    listener.listen(512)
    return ListeningSocket(listener, f"http://127.0.0.1:{listener.getsockname()[1]}")


RUN_KEYS: Mapping[str, Mapping[str, Any]] = {
    "agent": {"scopes": ["execute"]},
    # Whoever may read zones.json owns the data already.
    "user": {"scopes": ["user"], "clearance": "HIGH", "for_key": "agent"},
    "approver": {"scopes": ["approve"]},
    "audit": {"scopes": ["audit"]},
    "admin": {"scopes": ["admin"]},
    # A client of `sentinel mcp` is an agent of its own: what it reads does not raise the conversations of the other.
    "mcp": {"scopes": ["execute"]},
}
"""The gateway's keys of one run, made anew at each start: the agent's, and one for each thing that surfaces do."""


@dataclass(frozen=True, slots=True)
class GatewayPlan:
    """The processes in starting order, the gateway last, and its base URL."""

    zones: tuple[ZonePlan, ...]
    url: str


@dataclass(frozen=True, slots=True)
class _ToolServer:
    """A tool server of this product, and what the gateway is told of it."""

    zone: ZonePlan
    name: str
    token: str

    @property
    def upstream(self) -> dict[str, str]:
        return {"url": f"{self.zone.listener.url}/mcp", "token": self.token}


@dataclass(frozen=True, slots=True)
class GatewayPlanner:
    """`common` is what every zone of the run is told; `keys` are the gateway's, by key id; with `workspace_token` a
    person's commands enter the embedded workspaces, with `knowledge_token` the knowledge zone."""

    settings: Settings
    common: Mapping[str, Any]
    listen: Listen
    keys: Mapping[str, str]
    workspace_token: str
    knowledge_token: str

    def plan(self, served: Sequence[NamedWorkspace], *, port: int, page: str | None) -> GatewayPlan:
        """The gateway before the workspaces `served`, the default one first. `page` is where people decide approvals.
        Raises UnavailableError, UsageError for a port that cannot be had."""
        zones: list[ZonePlan] = []
        entries: list[dict[str, Any]] = []
        for place, workspace in enumerate(served):
            if workspace.embedded:
                own, entry = self._embedded(workspace, default=place == 0)
                zones.append(own)
                entries.append(entry)
            else:
                entries.append(_azure_entry(workspace))
        servers = list(self._tool_servers(entries))
        zones += [each.zone for each in servers]
        interceptor = self._gateway({each.name: each.upstream for each in servers}, page)
        listener = self.listen("interceptor", port)
        zones.append(zone("interceptor", {**self.common, **interceptor}, bare_environment(), listener))
        return GatewayPlan(tuple(zones), listener.url)

    def _embedded(self, workspace: NamedWorkspace, *, default: bool) -> tuple[ZonePlan, dict[str, Any]]:
        """The process of an embedded workspace, and what the tool servers are told of it."""
        name = workspace_zone(workspace.name, default=default)
        home, listener = self.settings.home, self.listen(name)
        workspace_id = embedded_workspace_id(home, workspace.name)
        identity_header = secrets.token_urlsafe(32)
        configuration = {
            **self.common,
            "folder": str(workspace_folder(home, workspace.name)),
            "workspace_id": workspace_id,
            "resource_id": WORKSPACE_RESOURCE,
            "identity_header": identity_header,
            "admin_token": self.workspace_token,
        }
        plan = ZonePlan(
            name, ("sentinel_rag.app", "workspace"), configuration, bare_environment(), listener, needed=default
        )
        return plan, {
            "name": workspace.name,
            "workspace_id": workspace_id,
            "endpoint": listener.url,
            "audience": workspace.logs_audience,
            "identity": {"endpoint": f"{listener.url}/msi/token", "header": identity_header},
            "authority": None,
            "rest": {"endpoint": listener.url, "audience": workspace.arm_audience, "resource_id": WORKSPACE_RESOURCE},
        }

    def _tool_servers(self, workspaces: Sequence[Mapping[str, Any]]) -> Iterator[_ToolServer]:
        """Each with a credential for no more than it needs: the search key goes to one process alone, and Azure's to
        those that ask Azure."""
        settings = self.settings
        environment = azure_environment() if settings.uses_azure else bare_environment()
        yield self._tool_server("sentinel", {"workspaces": workspaces, **_sentinel(settings)}, environment)
        yield self._tool_server("files", _files(settings), bare_environment())
        yield self._tool_server("web", _web(settings), bare_environment())
        knowledge = {
            **knowledge_configuration(settings),
            "workspaces": workspaces,
            "admin_token": self.knowledge_token,
        }
        yield self._tool_server("knowledge", knowledge, knowledge_environment(settings))

    def _tool_server(self, name: str, configuration: Mapping[str, Any], environment: Mapping[str, str]) -> _ToolServer:
        name_of_zone, token = f"executor-{name}", secrets.token_urlsafe(32)
        told = {**self.common, **configuration, "token": token}
        return _ToolServer(zone(name_of_zone, told, environment, self.listen(name_of_zone)), name, token)

    def _gateway(self, upstreams: Mapping[str, Mapping[str, str]], page: str | None) -> dict[str, Any]:
        settings = self.settings
        return {
            "state_folder": str(gateway_folder(settings.home)),
            "policy_file": str(settings.policy_file),
            "durability": settings.audit_durability,
            "database": database_configuration(settings),
            "anchor": None if settings.audit_anchor is None else str(settings.audit_anchor),
            "tool_servers": tool_server_configuration(settings),
            "upstreams": upstreams,
            "switched_off": switched_off_tools(settings),
            # What an agent was shown counts for as long as it may keep it.
            "agent_memory_days": settings.chat_keep_days,
            "keys": [
                {"key_id": key_id, "key": self.keys[key_id], **terms, **_readers(key_id, settings)}
                for key_id, terms in RUN_KEYS.items()
            ],
            "approvals": {"ttl_s": settings.approval_ttl_s, "webhook": _webhook(settings), "page": page},
        }


def approvals_page(web_url: str) -> str:
    """Where people decide approvals on the web surface at that address; the id of one comes behind it."""
    return f"{web_url.rstrip('/')}/#/approvals"


def workspace_zone(name: str, *, default: bool) -> str:
    """The zone of an embedded workspace: `workspace` for the default one, else with its name."""
    return "workspace" if default else f"workspace-{name}"


def new_key(key_id: str) -> str:
    """A gateway key: 256 random bits behind a prefix that says whose it is."""
    return f"sr_{key_id}_{secrets.token_urlsafe(32)}"


def _azure_entry(workspace: NamedWorkspace) -> dict[str, Any]:
    """What the tool server is told of a workspace on Azure."""
    resource = workspace.resource_id
    return {
        "name": workspace.name,
        "workspace_id": workspace.workspace_id,
        "endpoint": workspace.logs_endpoint,
        "audience": workspace.logs_audience,
        "identity": None,
        "authority": workspace.authority,
        "rest": None
        if resource is None
        else {"endpoint": workspace.arm_endpoint, "audience": workspace.arm_audience, "resource_id": resource},
    }


def _sentinel(settings: Settings) -> dict[str, Any]:
    return {
        "templates": None if settings.templates is None else str(settings.templates),
        "freeform": freeform_configuration(settings),
        "stored_queries": stored_query_configuration(settings),
    }


def _files(settings: Settings) -> dict[str, Any]:
    return {"root": None if settings.files_root is None else str(settings.files_root)}


def _web(settings: Settings) -> dict[str, Any]:
    return {
        "provider": settings.search_provider,
        "url": settings.search_url,
        "key": "" if settings.search_key is None else settings.search_key.reveal(),
        "allowed_hosts": list(settings.web_allowed_hosts),
    }


def _readers(key_id: str, settings: Settings) -> dict[str, Any]:
    """The person's key alone reads under the names of the settings: the agent by itself reads what is for everybody."""
    return {"readers": list(settings.readers)} if key_id == "user" else {}


def _webhook(settings: Settings) -> dict[str, Any] | None:
    if settings.approval_webhook_url is None or settings.approval_webhook_secret is None:
        return None
    return {
        "url": settings.approval_webhook_url,
        "secret": settings.approval_webhook_secret.reveal(),
        "arguments": settings.approval_webhook_arguments,
        "decides": settings.approval_webhook_decides,
        "form": settings.approval_webhook_form,
        "page": settings.web_url,
    }
