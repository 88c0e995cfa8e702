"""What one run consists of: which processes, who listens where, who shares which secret with whom, and the plans of the
gateway and of what lies behind it.

Every border has its own secret, made anew for each run: a hijacked agent holds its key at the gateway and nothing
that a tool server or the workspace accepts. The collector's headers may hold a credential, so they travel like every
other secret: on standard input, and never in an argument or an environment.

Listening sockets are opened here and inherited by the zones, so no port is guessed or lost to a race, and all zones can
start at once. Every tool server has a secret of its own, which the gateway alone is told.
"""

from __future__ import annotations

import errno
import hashlib
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

from sentinel_rag.app.conversations import conversation_configuration
from sentinel_rag.app.knowledge_stores import knowledge_configuration, knowledge_environment
from sentinel_rag.app.model_access import IDENTITY_PATH, model_configuration, model_resource, needs_identity
from sentinel_rag.app.places import (
    KEPT_OF_PEOPLE,
    SAMPLE_WORKSPACE,
    database_configuration,
    embedded_workspace_id,
    gateway_folder,
    record_file,
    web_configuration,
    workspace_folder,
)
from sentinel_rag.app.tool_servers import (
    freeform_configuration,
    stored_query_configuration,
    switched_off_tools,
    tool_server_configuration,
)
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.settings import (
    ModelSettings,
    NamedWorkspace,
    Settings,
    TelemetrySettings,
    azure_environment,
    bare_environment,
    model_environment,
)
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


def telemetry_configuration(settings: TelemetrySettings) -> dict[str, Any] | None:
    """What `telemetry.process` reads."""
    if settings.endpoint is None and settings.metrics_token is None:
        return None
    tracing = None
    if settings.endpoint is not None:
        tracing = {
            "collector": {
                "endpoint": settings.endpoint,
                "headers": {name: value.reveal() for name, value in settings.headers.items()},
                "timeout_s": settings.timeout_s,
                "certificate": None if settings.certificate is None else str(settings.certificate),
            },
            "wait_s": settings.wait_s,
            "sampler": settings.sampler,
            "ratio": settings.ratio,
            "trusts_callers": settings.trusts_callers,
            "session_key": _session_key(settings),
            "resource": dict(settings.resource),
        }
    token = settings.metrics_token
    return {"tracing": tracing, "metrics_token": None if token is None else token.reveal()}


def _session_key(settings: TelemetrySettings) -> str:
    """What ids of sessions are marked and hashed with, in hex. It follows from the secrets that every zone is told
    alike, so that zones which run apart agree, and a session is called the same after a restart; without any it is new
    for each run."""
    told = [f"{name}={value.reveal()}" for name, value in sorted(settings.headers.items())]
    if settings.metrics_token is not None:
        told.append(settings.metrics_token.reveal())
    secret = "\n".join(told).encode() if told else secrets.token_bytes(32)
    return hashlib.blake2b(secret, digest_size=32, person=b"session ids").hexdigest()


@dataclass(frozen=True, slots=True)
class Ports:
    """Fixed ports for the two zones that people's own programs talk to; 0 takes a free one."""

    interceptor: int = 0
    agent: int = 0
    web: int | None = None
    """None: the web surface is not served."""


@dataclass(frozen=True, slots=True)
class RunPlan:
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


def plan_zones(settings: Settings, workspace: str, ports: Ports, stack: ExitStack) -> RunPlan:
    """The processes of one run, whose sockets `stack` closes. A gateway that the settings name is used in place of
    one of its own. Raises UsageError, UnavailableError for a port that cannot be had."""
    agent_token, workspace_token, knowledge_token = (secrets.token_urlsafe(32) for _ in range(3))
    keys = {key_id: new_key(key_id) for key_id in RUN_KEYS}
    if settings.gateway_key is not None:
        keys["agent"] = settings.gateway_key.reveal()
    common, listen = _told_to_all(settings), listening(stack)
    web = None if ports.web is None else listen("web", ports.web)
    zones: list[ZonePlan] = []
    names: tuple[str, ...] = (workspace,)
    if settings.gateway_url is None:
        served = settings.serves(workspace)
        names = tuple(each.name for each in served) or names
        planner = GatewayPlanner(settings, common, listen, keys, workspace_token, knowledge_token)
        page = None if web is None else approvals_page(settings.web_url or web.url)
        gateway = planner.plan(served, port=ports.interceptor, page=page)
        zones += gateway.zones
        gateway_url = gateway.url
    else:
        if settings.gateway_key is None:
            raise UsageError(
                "SENTINEL_URL is set without SENTINEL_API_KEY, so the agent has no key at that gateway.",
                next_step="Set SENTINEL_API_KEY; sentinel approvals alone needs SENTINEL_APPROVER_KEY only.",
            )
        gateway_url = settings.gateway_url
    model = plan_model(settings.model_settings, common, listen)
    zones += model.zones
    # All that the agent ever learns of the outside: where the gateway is, its own key there, and the model.
    environment = {**model.environment, "SENTINEL_URL": gateway_url, "SENTINEL_API_KEY": keys["agent"]}
    told = _told_to_agent(settings, agent_token, for_people=web is not None)
    agent = ZonePlan(
        "agent",
        ("sentinel_rag.surfaces.http",),
        {**common, **told, "model": model.configuration},
        environment,
        listen("agent", ports.agent),
    )
    zones.append(agent)
    web_secret = ""
    if web is not None:
        web_secret = secrets.token_urlsafe(32)
        configuration = {
            **common,
            "gateway_url": gateway_url,
            "agent_url": agent.listener.url,
            "agent_token": agent_token,
            **web_configuration(settings, keys),
            "state_folder": str(gateway_folder(settings.home)),
            "database": database_configuration(settings),
            "owner_secret": web_secret,
            "workspaces": names,
            "stores": _stores(settings, zones, names, workspace_token, knowledge_token),
        }
        zones.append(ZonePlan("web", ("sentinel_rag.surfaces.web",), configuration, bare_environment(), web))
    return RunPlan(tuple(zones), names, agent_token, workspace_token, knowledge_token, keys, web_secret)


def _stores(
    settings: Settings, zones: Sequence[ZonePlan], names: Sequence[str], workspace_token: str, knowledge_token: str
) -> dict[str, Any] | None:
    """What the web surface is told of the stores that administrators may fill from the page."""
    urls = {each.name: each.listener.url for each in zones}
    embedded = {name: urls.get(workspace_zone(name, default=name == names[0])) for name in names}
    return {
        "folder": str(record_file(settings.home).parent / "uploads"),
        "knowledge": {"url": urls["executor-knowledge"], "token": knowledge_token},
        "workspaces": {
            name: {"url": url, "token": workspace_token}
            for name, url in embedded.items()
            if url is not None and name != SAMPLE_WORKSPACE
        },
    }


def _told_to_all(settings: Settings) -> dict[str, Any]:
    ca = settings.deployment.tls_ca
    return {
        "log_level": settings.log_level,
        "telemetry": telemetry_configuration(settings.telemetry),
        "authorities": None if ca is None else str(ca),
    }


def _told_to_agent(settings: Settings, token: str, *, for_people: bool) -> dict[str, Any]:
    conversations = conversation_configuration(settings)
    if for_people:
        conversations["keep"] = max(settings.chat_keep, KEPT_OF_PEOPLE)
    return {
        "token": token,
        "timezone": settings.timezone,
        "question_timeout_s": settings.question_timeout_s,
        "conversations": conversations,
    }


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """What a model adds to a run: the zone that holds the Azure credential for it, if it needs one, and what the
    agent's process is handed. `configuration` is None without a model."""

    zones: tuple[ZonePlan, ...]
    configuration: Mapping[str, Any] | None
    environment: Mapping[str, str]


def plan_model(
    settings: ModelSettings | None, common: Mapping[str, Any], listen: Callable[[str], ListeningSocket]
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
    identity_zone = zone("model-identity", configuration, azure_environment(), listener)
    identity = {"endpoint": f"{listener.url}{IDENTITY_PATH}", "header": header}
    return ModelPlan((identity_zone,), model_configuration(settings, identity=identity), environment)
