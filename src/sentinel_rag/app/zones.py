"""What runs inside each zone's process: its objects, built from the configuration line that the supervisor sent.

Every import of a zone is inside the function that builds it, so a process holds the code of its own zone only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from sentinel_rag.agent.gateway_client import HttpToolGateway
    from sentinel_rag.agent.tool_runs import AgentCounts
    from sentinel_rag.audit import Journal, JournalReader
    from sentinel_rag.contracts.ports import Analyst, Chat
    from sentinel_rag.gateway.store import KeyStore
    from sentinel_rag.settings import Settings

Configuration = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AgentZone:
    """The agent's zone: the analyst, whose conversations are kept, and what closes its connections."""

    analyst: Chat
    close: Callable[[], Awaitable[None]]


def build_workspace(configuration: Configuration) -> ASGIApp:
    """The embedded workspace's server over its store."""
    from sentinel_rag.workspace.server import bound_process_memory, create_app
    from sentinel_rag.workspace.workspace import Workspace

    bound_process_memory()
    return create_app(
        Workspace.open(Path(configuration["folder"])),
        workspace_id=configuration["workspace_id"],
        identity_header=configuration["identity_header"],
        admin_token=configuration["admin_token"],
        resource_id=configuration["resource_id"],
    )


def build_sentinel_tools(configuration: Configuration) -> ASGIApp:
    """The MCP server of the tools that read and change Sentinel, on Azure or on embedded workspaces."""
    from sentinel_rag.app.azure import connected_service
    from sentinel_rag.app.tool_servers import freeform_queries, stored_queries
    from sentinel_rag.tools.sentinel import create_app

    freeform = freeform_queries(configuration["freeform"])
    service = connected_service(
        configuration["workspaces"],
        templates=configuration["templates"],
        freeform=freeform,
        alert_events=stored_queries(configuration["stored_queries"], None if freeform is None else freeform.guard),
    )
    return create_app(service, token=configuration["token"])


def build_files_tools(configuration: Configuration) -> ASGIApp:
    """The MCP server of the tools that read files of one folder."""
    from sentinel_rag.tools.files import create_app

    root = configuration["root"]
    return create_app(None if root is None else Path(root), token=configuration["token"])


def build_web_tools(configuration: Configuration) -> ASGIApp:
    """The MCP server of the tools that reach the web."""
    from sentinel_rag.tools.web import WebOptions, create_app

    options = WebOptions(**{name: configuration[name] for name in ("provider", "url", "key", "allowed_hosts")})
    return create_app(options, token=configuration["token"])


def build_knowledge_tools(configuration: Configuration) -> ASGIApp:
    """The MCP server of the tool that searches past incidents and playbooks, and what reads incidents in."""
    from sentinel_rag.app.knowledge_stores import knowledge_app

    return knowledge_app(configuration)


def build_model_identity(configuration: Configuration) -> ASGIApp:
    """The server that holds the Azure credential for models and hands the agent tokens for them alone."""
    from sentinel_rag.app.model_access import identity_app
    from sentinel_rag.sentinel.credentials import azure_credential

    return identity_app(azure_credential(), resource=configuration["resource"], header=configuration["header"])


def build_gateway(configuration: Configuration) -> ASGIApp:
    """The gateway over its policy, state folder and tool servers."""
    from sentinel_rag.app.places import policies_folder, postgres_place
    from sentinel_rag.app.serving import closing, give_notice, metrics_registry
    from sentinel_rag.app.tls import trusting
    from sentinel_rag.app.tool_servers import ToolServers
    from sentinel_rag.audit import Durability
    from sentinel_rag.gateway.app import create_app
    from sentinel_rag.gateway.approval_webhook import Webhook
    from sentinel_rag.gateway.policy.loading import PolicyArchive, PolicyBook, changed_servers
    from sentinel_rag.gateway.store import RunKeys, new_audit_id, open_state, run_principal
    from sentinel_rag.gateway.upstream import McpHttpUpstream

    state_folder = Path(configuration["state_folder"])
    state = open_state(
        state_folder,
        durability=Durability(configuration["durability"]),
        approval_ttl_s=configuration["approvals"]["ttl_s"],
        memory=timedelta(days=configuration["agent_memory_days"]),
        anchor=None if configuration["anchor"] is None else Path(configuration["anchor"]),
        postgres=postgres_place(configuration["database"], state_folder),
    )
    tool_servers = ToolServers(**configuration["tool_servers"])
    policies = PolicyBook(
        Path(configuration["policy_file"]),
        archive=PolicyArchive(policies_folder(state_folder)),
        record=state.journal.append,
        new_id=new_audit_id,
        objections=lambda policy: changed_servers(policies.current, policy),
    )
    policy = policies.current
    for notice in tool_servers.faults(policy):
        give_notice(notice)
    webhook = configuration["approvals"]["webhook"]
    handed_over = {key["key"]: run_principal(key) for key in configuration["keys"]}
    absent = [name for name, tool in policy.tools.items() if tool.server in configuration.get("absent_servers", ())]
    elsewhere = trusting(configuration.get("authorities"))
    app = create_app(
        policies=policies,
        keys=RunKeys(handed_over, stored=state.keys),
        state=state,
        webhook=None if webhook is None else Webhook(**webhook),
        switched_off=[*configuration["switched_off"], *absent],
        approvals_page=configuration["approvals"]["page"],
        registry=metrics_registry(),
        upstreams={
            # The text of our own servers' results is a line about their structured content.
            **{
                name: McpHttpUpstream(server["url"], token=server["token"], is_ours=True, trusted=elsewhere)
                for name, server in configuration["upstreams"].items()
            },
            **tool_servers.upstreams(policy),
        },
    )
    return closing(app, state.close)


BUILDERS: Mapping[str, Callable[[Configuration], ASGIApp]] = {
    "workspace": build_workspace,
    "executor-sentinel": build_sentinel_tools,
    "executor-files": build_files_tools,
    "executor-web": build_web_tools,
    "executor-knowledge": build_knowledge_tools,
    "interceptor": build_gateway,
    "model-identity": build_model_identity,
}


def build_agent(
    *,
    timezone: str,
    conversations: Configuration,
    model: Configuration | None,
    question_timeout_s: float,
    authorities: str | None = None,
) -> AgentZone:
    """The analyst over the gateway that the environment names (`SENTINEL_URL`, `SENTINEL_API_KEY`) and that is checked
    by `authorities`, with the model of a `model_configuration` or, without one, offline."""
    from sentinel_rag.agent.conversations.chat import StoredChat
    from sentinel_rag.agent.gateway_client import HttpToolGateway
    from sentinel_rag.app.conversations import open_conversations
    from sentinel_rag.app.tls import trusting
    from sentinel_rag.contracts.ports import utc_now
    from sentinel_rag.settings import agent_gateway
    from sentinel_rag.telemetry import tracing

    url, key = agent_gateway()
    gateway = HttpToolGateway(url, key.reveal(), trusted=trusting(authorities))
    counts = _agent_counts()
    analyst, close_models = _analyst(gateway, timezone, conversations, model, question_timeout_s, counts)
    store = open_conversations(conversations)
    prepare = None
    if model is not None:
        from sentinel_rag.agent.tokens import load_counter

        prepare = load_counter  # a second or two of one core, in a thread
    chat: Chat = StoredChat(analyst, store, clock=utc_now, knows_session=gateway.knows_session, prepare=prepare)
    if counts is not None or tracing():
        from sentinel_rag.agent.tool_runs import TracedChat

        chat = TracedChat(chat, counts)

    async def close() -> None:
        await close_models()
        await gateway.aclose()
        if store is not None:
            store.close()

    return AgentZone(chat, close)


def _analyst(
    gateway: HttpToolGateway,
    timezone: str,
    conversations: Configuration,
    model: Configuration | None,
    question_timeout_s: float,
    counts: AgentCounts | None,
) -> tuple[Analyst, Callable[[], Awaitable[None]]]:
    """The analyst, and what closes its models. One with a model ends a question a little before its surface does, so
    that the person reads what was found until then."""
    from sentinel_rag.agent.offline import OfflineAnalyst
    from sentinel_rag.contracts.ports import utc_now

    if model is None:
        return OfflineAnalyst(gateway, clock=utc_now, timezone=timezone), _nothing
    from sentinel_rag.app.model_access import fitting_catalogue, model_host, open_models, traced_models
    from sentinel_rag.telemetry import tracing

    models = open_models(model)
    if counts is not None or tracing():
        models = traced_models(models, model, counts)
    if model["role"] == "assist":
        from sentinel_rag.agent.model_analyst.assisted import AssistedAnalyst

        offline = OfflineAnalyst(gateway, clock=utc_now, timezone=timezone)
        limit_s = question_timeout_s / 2
        assisted = AssistedAnalyst(offline, gateway, models.large, limit_s=limit_s, host=model_host(model))
        return assisted, models.aclose
    from sentinel_rag.agent.model_analyst import ModelAnalyst, TurnLimits
    from sentinel_rag.app.conversations import model_budget

    budget = model_budget(conversations)
    limits = TurnLimits(turn_s=question_timeout_s - min(3.0, question_timeout_s / 10), rounds=model["tool_rounds"])
    analyst = ModelAnalyst(
        gateway,
        models,
        clock=utc_now,
        timezone=timezone,
        limits=limits,
        budget=budget,
        catalogue=fitting_catalogue(gateway.offered_schemas, budget.total),
        host=model_host(model),
    )
    return analyst, models.aclose


def _agent_counts() -> AgentCounts | None:
    from sentinel_rag.app.serving import metrics_registry

    registry = metrics_registry()
    if registry is None:
        return None
    from sentinel_rag.agent.tool_runs import AgentCounts

    return AgentCounts(registry)


async def _nothing() -> None:
    """There is no model to close."""


def journal_reader(settings: Settings) -> JournalReader:
    """The journal of this home's gateway, whether or not it runs."""
    from sentinel_rag.app.places import database_configuration, gateway_folder, journal_place
    from sentinel_rag.audit import JournalReader

    return JournalReader(journal_place(database_configuration(settings), gateway_folder(settings.home)))


@contextmanager
def open_journal(settings: Settings) -> Iterator[Journal]:
    """The journal of this home for writing, beside a gateway that may run. Raises UnavailableError if there is
    none yet."""
    from sentinel_rag.app.places import gateway_folder, state_place
    from sentinel_rag.audit import Durability
    from sentinel_rag.gateway.store import open_state

    journal_reader(settings).last(1)
    folder = gateway_folder(settings.home)
    with open_state(
        folder,
        durability=Durability(settings.audit_durability),
        anchor=settings.audit_anchor,
        postgres=state_place(settings),
    ) as state:
        yield state.journal


def key_store(settings: Settings) -> KeyStore:
    """The stored keys of this home's gateway, whether or not it runs. The caller closes it."""
    from sentinel_rag.app.places import gateway_folder, state_place
    from sentinel_rag.gateway.store import KeyStore
    from sentinel_rag.gateway.store.state import KEYS_FILE, needs_postgres

    place = state_place(settings)
    if place is None:
        return KeyStore(gateway_folder(settings.home) / KEYS_FILE)
    with needs_postgres():
        from sentinel_rag.gateway.store.postgres_keys import PostgresKeys
    return KeyStore(PostgresKeys(place))


def policy_texts(settings: Settings) -> Callable[[str], bytes | None]:
    """Finds the bytes of a policy of this home by their SHA-256: every one that was in force, and the file itself."""
    import hashlib

    from sentinel_rag.app.places import gateway_folder, policies_folder
    from sentinel_rag.gateway.policy.loading import PolicyArchive, read_policy_file

    archive = PolicyArchive(policies_folder(gateway_folder(settings.home)))

    def find(sha256: str) -> bytes | None:
        kept = archive.find(sha256)
        if kept is not None or not settings.policy_file.is_file():
            return kept
        content = read_policy_file(settings.policy_file)
        return content if hashlib.sha256(content).hexdigest() == sha256 else None

    return find
