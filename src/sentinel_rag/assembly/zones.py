"""What runs inside each zone's process: its objects, built from the configuration line that the supervisor sent.

Every import of a zone is inside the function that builds it, so a process holds the code of its own zone only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentinel_rag.assembly.plan import gateway_folder
from sentinel_rag.contracts.ports import Analyst, utc_now
from sentinel_rag.settings import Settings, agent_gateway

if TYPE_CHECKING:
    from azure.core.credentials_async import AsyncTokenCredential
    from starlette.types import ASGIApp

    from sentinel_rag.audit import JournalReader

Configuration = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Agent:
    """The agent's zone: the analyst and what closes its connections."""

    analyst: Analyst
    close: Callable[[], Awaitable[None]]


def build_workspace(configuration: Configuration) -> ASGIApp:
    """The embedded workspace's server over its store."""
    from sentinel_rag.workspace.server import create_app
    from sentinel_rag.workspace.workspace import Workspace

    return create_app(
        Workspace.open(Path(configuration["folder"])),
        workspace_id=configuration["workspace_id"],
        identity_header=configuration["identity_header"],
        admin_token=configuration["admin_token"],
    )


def build_sentinel_executor(configuration: Configuration) -> ASGIApp:
    """The MCP server of the tools that read Sentinel, on Azure or on the embedded workspace."""
    from sentinel_rag.executors.sentinel import create_app
    from sentinel_rag.sentinel.credentials import IdentityEndpointCredential, azure_credential
    from sentinel_rag.sentinel.log_analytics import LogAnalytics
    from sentinel_rag.sentinel.service import SentinelService

    identity = configuration["identity"]
    credential: AsyncTokenCredential = (
        azure_credential() if identity is None else IdentityEndpointCredential(identity["endpoint"], identity["header"])
    )
    connection = LogAnalytics(credential, endpoint=configuration["endpoint"])
    workspaces = {name: connection.workspace(name, guid) for name, guid in configuration["workspaces"].items()}
    return create_app(SentinelService(workspaces, default=configuration["default"]), token=configuration["token"])


def build_files_executor(configuration: Configuration) -> ASGIApp:
    """The MCP server of the tools that read files of one folder."""
    from sentinel_rag.executors.files import create_app

    root = configuration["root"]
    return create_app(None if root is None else Path(root), token=configuration["token"])


def build_web_executor(configuration: Configuration) -> ASGIApp:
    """The MCP server of the tools that reach the web."""
    from sentinel_rag.executors.web import WebOptions, create_app

    options = WebOptions(**{name: configuration[name] for name in ("provider", "url", "key", "allowed_hosts")})
    return create_app(options, token=configuration["token"])


def build_interceptor(configuration: Configuration) -> ASGIApp:
    """The Interceptor over its policy, state folder and tool servers."""
    from sentinel_rag.audit import Durability
    from sentinel_rag.interceptor import create_app
    from sentinel_rag.interceptor.policy import load_policy
    from sentinel_rag.interceptor.store import RunKeys, Scope, open_state
    from sentinel_rag.interceptor.upstream import McpHttpUpstream

    policy = load_policy(Path(configuration["policy_file"]))
    state = open_state(Path(configuration["state_folder"]), durability=Durability(configuration["durability"]))
    handed_over = {
        key["key"]: (key["key_id"], [Scope(scope) for scope in key["scopes"]]) for key in configuration["keys"]
    }
    return create_app(
        policy=policy,
        keys=RunKeys(handed_over, stored=state.keys),
        sessions=state.sessions,
        journal=state.journal,
        upstreams={
            name: McpHttpUpstream(server["url"], token=server["token"])
            for name, server in configuration["upstreams"].items()
        },
    )


BUILDERS: Mapping[str, Callable[[Configuration], ASGIApp]] = {
    "workspace": build_workspace,
    "executor-sentinel": build_sentinel_executor,
    "executor-files": build_files_executor,
    "executor-web": build_web_executor,
    "interceptor": build_interceptor,
}


def build_agent(*, timezone: str) -> Agent:
    """The analyst over the gateway that the environment names (`SENTINEL_URL`, `SENTINEL_API_KEY`)."""
    from sentinel_rag.agent.gateway_client import HttpToolGateway
    from sentinel_rag.agent.offline import OfflineAnalyst

    url, key = agent_gateway()
    gateway = HttpToolGateway(url, key.reveal())
    return Agent(OfflineAnalyst(gateway, clock=utc_now, timezone=timezone), gateway.aclose)


def journal_reader(settings: Settings) -> JournalReader:
    """The journal of this home's Interceptor, whether or not it runs."""
    from sentinel_rag.audit import JournalReader
    from sentinel_rag.interceptor.store.state import JOURNAL_FILE

    return JournalReader(gateway_folder(settings.home) / JOURNAL_FILE)
