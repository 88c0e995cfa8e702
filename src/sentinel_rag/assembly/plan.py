"""What one run consists of: which processes, who listens where, and who shares which secret with whom.

Listening sockets are opened here and inherited by the zones, so no port is guessed or lost to a race, and all zones can
start at once: one that is asked before it serves answers a little later. Every border has its own secret, made anew
for each run: a hijacked agent holds its key at the Interceptor and nothing that an executor or the workspace accepts.
"""

from __future__ import annotations

import errno
import secrets
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.settings import Settings, azure_environment, bare_environment


@dataclass(frozen=True, slots=True)
class Ports:
    """Fixed ports for the two zones that people's own programs talk to; 0 takes a free one."""

    interceptor: int = 0
    agent: int = 0


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


@dataclass(frozen=True, slots=True)
class Plan:
    """The processes of one run, in starting order, and the credentials that surfaces use."""

    zones: tuple[ZonePlan, ...]
    agent_token: str
    workspace_token: str
    audit_key: str
    agent_key: str


def plan_zones(settings: Settings, workspace: str, ports: Ports, stack: ExitStack) -> Plan:
    """Who listens where and who shares which secret with whom. One secret for each border, made anew at each start."""
    identity_header, workspace_token, agent_token, executor_token = (secrets.token_urlsafe(32) for _ in range(4))
    audit_key = new_key("audit")
    agent_key = settings.gateway_key.reveal() if settings.gateway_key is not None else new_key("agent")
    zones: list[ZonePlan] = []
    common = {"log_level": settings.log_level}

    def listen(name: str, port: int = 0) -> Listener:
        listener = _listen(name, port)
        stack.callback(listener.socket.close)
        return listener

    if settings.gateway_url is None:
        executor: dict[str, Any] = {
            "workspaces": dict(settings.azure_workspaces),
            "default": workspace,
            "endpoint": settings.logs_endpoint,
            "identity": None,
            "token": executor_token,
        }
        if not settings.uses_azure:
            listener = listen("workspace")
            workspace_id = str(uuid5(NAMESPACE_URL, f"sentinel-rag/{workspace}"))
            configuration = {
                "folder": str(workspace_folder(settings.home, workspace)),
                "workspace_id": workspace_id,
                "identity_header": identity_header,
                "admin_token": workspace_token,
            }
            zones.append(_zone("workspace", {**common, **configuration}, bare_environment(), listener))
            executor |= {
                "workspaces": {workspace: workspace_id},
                "endpoint": listener.url,
                "identity": {"endpoint": f"{listener.url}/msi/token", "header": identity_header},
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
        interceptor = {
            "state_folder": str(gateway_folder(settings.home)),
            "policy_file": str(settings.policy_file),
            "durability": settings.audit_durability,
            "upstreams": upstreams,
            "keys": [
                {"key_id": "agent", "key": agent_key, "scopes": ["execute"]},
                {"key_id": "audit", "key": audit_key, "scopes": ["audit"]},
            ],
        }
        listener = listen("interceptor", ports.interceptor)
        zones.append(_zone("interceptor", {**common, **interceptor}, bare_environment(), listener))
        gateway_url = listener.url
    else:
        gateway_url = settings.gateway_url
    agent = {"token": agent_token, "timezone": settings.timezone, "question_timeout_s": settings.question_timeout_s}
    zones.append(
        ZonePlan(
            "agent",
            ("sentinel_rag.surfaces.http",),
            {**common, **agent},
            # All that the agent ever learns of the outside: where the gateway is, and its own key there.
            {**bare_environment(), "SENTINEL_URL": gateway_url, "SENTINEL_API_KEY": agent_key},
            listen("agent", ports.agent),
        )
    )
    return Plan(tuple(zones), agent_token, workspace_token, audit_key, agent_key)


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


def gateway_folder(home: Path) -> Path:
    """Where the Interceptor keeps its keys, sessions and journal."""
    return home / "gateway"


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
                next_step="Choose another port, or leave the option out to take a free one.",
            ) from None
        if isinstance(error, PermissionError):
            raise UsageError(f"Port {port} needs special rights.", next_step="Choose a port above 1023.") from None
        raise
    listener.listen(512)
    return Listener(listener, f"http://127.0.0.1:{listener.getsockname()[1]}")
