"""What one run consists of: which processes, who listens where, and who shares which secret with whom.

Listening sockets are opened here and inherited by the zones, so no port is guessed or lost to a race, and all zones can
start at once: one that is asked before it serves answers a little later. Every border has its own secret, made anew
for each run: a hijacked agent holds its key at the Interceptor and nothing that an executor or the workspace accepts.
"""

from __future__ import annotations

import errno
import secrets
import socket
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentinel_rag.assembly.conversations import conversation_configuration
from sentinel_rag.assembly.freeform_kql import freeform_configuration, switched_off_tools
from sentinel_rag.assembly.home_identity import embedded_workspace_id
from sentinel_rag.assembly.knowledge_zone import knowledge_configuration, knowledge_environment
from sentinel_rag.assembly.model_access import (
    IDENTITY_PATH,
    model_configuration,
    model_resource,
    needs_identity,
)
from sentinel_rag.assembly.state_place import database_configuration, gateway_folder
from sentinel_rag.assembly.stored_queries import stored_query_configuration
from sentinel_rag.assembly.telemetry import telemetry_configuration
from sentinel_rag.assembly.tool_servers import tool_server_configuration
from sentinel_rag.assembly.web_access import KEPT_OF_PEOPLE, web_configuration
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.settings import (
    ModelSettings,
    NamedWorkspace,
    Settings,
    azure_environment,
    bare_environment,
    model_environment,
)
from sentinel_rag.workspace.estate.company import WORKSPACE_RESOURCE

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
class Ports:
    """Fixed ports for the two zones that people's own programs talk to; 0 takes a free one."""

    interceptor: int = 0
    agent: int = 0
    web: int | None = None
    """None: the web surface is not served."""


@dataclass(frozen=True, slots=True)
class Listener:
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
    listener: Listener
    needed: bool = True
    """False for a zone without which the others serve on: an embedded workspace beside the default one."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The processes of one run, in starting order, the workspaces (the default one first), and the credentials that
    surfaces use."""

    zones: tuple[ZonePlan, ...]
    workspaces: tuple[str, ...]
    agent_token: str
    workspace_token: str
    knowledge_token: str
    keys: Mapping[str, str]
    """The gateway's keys of this run, by key id; see `RUN_KEYS`."""
    web_secret: str = ""
    """What links that sign in whoever started the run are made of; empty without a web surface."""


def plan_zones(settings: Settings, workspace: str, ports: Ports, stack: ExitStack) -> Plan:
    """Who listens where and who shares which secret with whom. One secret for each border, made anew at each start."""
    workspace_token, agent_token, executor_token, knowledge_token = (secrets.token_urlsafe(32) for _ in range(4))
    keys = {key_id: new_key(key_id) for key_id in RUN_KEYS}
    if settings.gateway_key is not None:
        keys["agent"] = settings.gateway_key.reveal()
    zones: list[ZonePlan] = []
    ca = settings.deployment.tls_ca
    common = {
        "log_level": settings.log_level,
        "telemetry": telemetry_configuration(settings.telemetry),
        "authorities": None if ca is None else str(ca),
    }

    def listen(name: str, port: int = 0) -> Listener:
        listener = _listen(name, port)
        stack.callback(listener.socket.close)
        return listener

    web = None if ports.web is None else listen("web", ports.web)
    served: tuple[NamedWorkspace, ...] = ()
    if settings.gateway_url is None:
        served = settings.serves(workspace)
        entries: list[dict[str, Any]] = []
        for place, each in enumerate(served):
            if not each.embedded:
                entries.append(_azure_entry(each))
                continue
            name = workspace_zone(each.name, default=place == 0)
            listener = listen(name)
            zone, entry = _embedded(name, each, settings.home, listener, workspace_token, common, needed=place == 0)
            zones.append(zone)
            entries.append(entry)
        executor = {
            "workspaces": entries,
            "templates": None if settings.templates is None else str(settings.templates),
            "freeform": freeform_configuration(settings),
            "stored_queries": stored_query_configuration(settings),
            "token": executor_token,
        }
        environment = azure_environment() if settings.uses_azure else bare_environment()
        listener = listen("executor-sentinel")
        zones.append(_zone("executor-sentinel", {**common, **executor}, environment, listener))
        upstreams = {"sentinel": {"url": f"{listener.url}/mcp", "token": executor_token}}
        for name, configuration in _side_executors(settings).items():
            listener = listen(f"executor-{name}")
            token = secrets.token_urlsafe(32)
            configuration = {**common, **configuration, "token": token}
            zones.append(_zone(f"executor-{name}", configuration, bare_environment(), listener))
            upstreams[name] = {"url": f"{listener.url}/mcp", "token": token}
        listener, token = listen("executor-knowledge"), secrets.token_urlsafe(32)
        configuration = {**common, **knowledge_configuration(settings), "token": token}
        configuration |= {"workspaces": entries, "admin_token": knowledge_token}
        zones.append(_zone("executor-knowledge", configuration, knowledge_environment(settings), listener))
        upstreams["knowledge"] = {"url": f"{listener.url}/mcp", "token": token}
        interceptor = {
            "state_folder": str(gateway_folder(settings.home)),
            "policy_file": str(settings.policy_file),
            "durability": settings.audit_durability,
            "database": database_configuration(settings),
            "anchor": None if settings.audit_anchor is None else str(settings.audit_anchor),
            "tool_servers": tool_server_configuration(settings),
            "upstreams": upstreams,
            "switched_off": switched_off_tools(settings),
            "keys": [
                {"key_id": key_id, "key": keys[key_id], **terms, **_readers(key_id, settings)}
                for key_id, terms in RUN_KEYS.items()
            ],
            "approvals": {
                "ttl_s": settings.approval_ttl_s,
                "webhook": _webhook(settings),
                "page": None if web is None else approvals_page(settings.web_url or web.url),
            },
        }
        listener = listen("interceptor", ports.interceptor)
        zones.append(_zone("interceptor", {**common, **interceptor}, bare_environment(), listener))
        gateway_url = listener.url
    else:
        if settings.gateway_key is None:
            raise UsageError(
                "SENTINEL_URL is set without SENTINEL_API_KEY, so the agent has no key at that Interceptor.",
                next_step="Set SENTINEL_API_KEY; sentinel approvals alone needs SENTINEL_APPROVER_KEY only.",
            )
        gateway_url = settings.gateway_url
    model = plan_model(settings.model_settings, common, listen)
    zones += model.zones
    conversations = conversation_configuration(settings)
    if ports.web is not None:
        conversations["keep"] = max(settings.chat_keep, KEPT_OF_PEOPLE)
    agent = {
        "token": agent_token,
        "timezone": settings.timezone,
        "question_timeout_s": settings.question_timeout_s,
        "conversations": conversations,
    }
    zones.append(
        ZonePlan(
            "agent",
            ("sentinel_rag.surfaces.http",),
            {**common, **agent, "model": model.configuration},
            # All that the agent ever learns of the outside: where the gateway is, its own key there, and the model.
            {**model.environment, "SENTINEL_URL": gateway_url, "SENTINEL_API_KEY": keys["agent"]},
            listen("agent", ports.agent),
        )
    )
    names = tuple(each.name for each in served) or (workspace,)
    web_secret = ""
    if web is not None:
        web_secret = secrets.token_urlsafe(32)
        where = {"gateway_url": gateway_url, "agent_url": zones[-1].listener.url, "agent_token": agent_token}
        files = {
            "state_folder": str(gateway_folder(settings.home)),
            "database": database_configuration(settings),
            "owner_secret": web_secret,
        }
        configuration = {**common, **where, **web_configuration(settings, keys), **files, "workspaces": names}
        zones.append(ZonePlan("web", ("sentinel_rag.surfaces.web",), configuration, bare_environment(), web))
    return Plan(tuple(zones), names, agent_token, workspace_token, knowledge_token, keys, web_secret)


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """What a model adds to a run: the zone that holds the Azure credential for it, if it needs one, and what the
    agent's process is handed. `configuration` is None without a model."""

    zones: tuple[ZonePlan, ...]
    configuration: Mapping[str, Any] | None
    environment: Mapping[str, str]


def plan_model(
    settings: ModelSettings | None, common: Mapping[str, Any], listen: Callable[[str], Listener]
) -> ModelPlan:
    """The agent never holds a credential of Azure, which would open Sentinel too: with Entra ID it is handed the
    address of a zone that gives tokens for models alone."""
    if settings is None:
        return ModelPlan((), None, bare_environment())
    environment = {**bare_environment(), **model_environment()}
    if not needs_identity(settings):
        return ModelPlan((), model_configuration(settings), environment)
    listener, header = listen("model-identity"), secrets.token_urlsafe(32)
    configuration = {**common, "resource": model_resource(settings.url), "header": header}
    zone = _zone("model-identity", configuration, azure_environment(), listener)
    identity = {"endpoint": f"{listener.url}{IDENTITY_PATH}", "header": header}
    return ModelPlan((zone,), model_configuration(settings, identity=identity), environment)


def approvals_page(web_url: str) -> str:
    """Where people decide approvals on the web surface at that address; the id of one comes behind it."""
    return f"{web_url.rstrip('/')}/#/approvals"


def workspace_zone(name: str, *, default: bool) -> str:
    """The zone of an embedded workspace: `workspace` for the default one, else with its name."""
    return "workspace" if default else f"workspace-{name}"


def _azure_entry(workspace: NamedWorkspace) -> dict[str, Any]:
    """What the executor is told of a workspace on Azure."""
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


def _embedded(
    zone: str,
    workspace: NamedWorkspace,
    home: Path,
    listener: Listener,
    admin_token: str,
    common: Mapping[str, Any],
    *,
    needed: bool,
) -> tuple[ZonePlan, dict[str, Any]]:
    """The process of an embedded workspace, and what the executor is told of it."""
    workspace_id = embedded_workspace_id(home, workspace.name)
    identity_header = secrets.token_urlsafe(32)
    configuration = {
        **common,
        "folder": str(workspace_folder(home, workspace.name)),
        "workspace_id": workspace_id,
        "resource_id": WORKSPACE_RESOURCE,
        "identity_header": identity_header,
        "admin_token": admin_token,
    }
    plan = ZonePlan(
        zone, ("sentinel_rag.assembly", "workspace"), configuration, bare_environment(), listener, needed=needed
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


def _side_executors(settings: Settings) -> dict[str, dict[str, Any]]:
    """The configuration of each tool server that does not read Sentinel; the search key goes to one process alone."""
    return {
        "files": {"root": None if settings.files_root is None else str(settings.files_root)},
        "web": {
            "provider": settings.search_provider,
            "url": settings.search_url,
            "key": "" if settings.search_key is None else settings.search_key.reveal(),
            "allowed_hosts": list(settings.web_allowed_hosts),
        },
    }


def _zone(name: str, configuration: Mapping[str, Any], environment: Mapping[str, str], listener: Listener) -> ZonePlan:
    return ZonePlan(name, ("sentinel_rag.assembly", name), configuration, environment, listener)


def new_key(key_id: str) -> str:
    """A gateway key: 256 random bits behind a prefix that says whose it is."""
    return f"sr_{key_id}_{secrets.token_urlsafe(32)}"


def workspace_folder(home: Path, name: str) -> Path:
    """Where the embedded workspace of that name is stored."""
    return home / "workspaces" / name


def policies_folder(state_folder: Path) -> Path:
    """Where the Interceptor keeps every policy that was in force, below its state."""
    return state_folder / "policies"


def logs_folder(home: Path) -> Path:
    """Where each zone's log lies."""
    return home / "logs"


def _listen(name: str, port: int) -> Listener:
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
    return Listener(listener, f"http://127.0.0.1:{listener.getsockname()[1]}")
