"""What one run consists of: which processes, who listens where, and who shares which secret with whom.

Every border has its own secret, made anew for each run: a hijacked agent holds its key at the gateway and nothing
that a tool server or the workspace accepts. The collector's headers may hold a credential, so they travel like every
other secret: on standard input, and never in an argument or an environment.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from sentinel_rag.app.conversations import conversation_configuration
from sentinel_rag.app.gateway_plan import (
    RUN_KEYS,
    GatewayPlanner,
    ListeningSocket,
    ZonePlan,
    approvals_page,
    listening,
    new_key,
    workspace_zone,
    zone,
)
from sentinel_rag.app.model_access import IDENTITY_PATH, model_configuration, model_resource, needs_identity
from sentinel_rag.app.places import (
    KEPT_OF_PEOPLE,
    SAMPLE_WORKSPACE,
    database_configuration,
    gateway_folder,
    record_file,
    web_configuration,
)
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.settings import (
    ModelSettings,
    Settings,
    TelemetrySettings,
    azure_environment,
    bare_environment,
    model_environment,
)


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
