"""What questions are answered from and judged by: workspaces, templates, knowledge, files, web, and the policy."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from sentinel_rag.app.run_state import RunFolder
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.settings import Settings
from sentinel_rag.surfaces.cli._zones import choose_workspace
from sentinel_rag.surfaces.cli.doctor._finding import Check, Finding, fault, fine, warning
from sentinel_rag.surfaces.cli.doctor._machine import home_writable

FILL = "sentinel workspace import FILE, or sentinel workspace generate"


def policy(settings: Settings) -> Finding:
    """Whether the next gateway will load the policy."""
    from sentinel_rag.gateway.policy import load_policy

    return fine("policy", f"{settings.policy_file}: {len(load_policy(settings.policy_file).tools)} tools")


def tool_servers(settings: Settings) -> Finding:
    """Whether what the policy's own tool servers are started with is there."""
    from sentinel_rag.app.tool_servers import ToolServers, tool_server_configuration
    from sentinel_rag.gateway.policy import load_policy

    loaded = load_policy(settings.policy_file)
    faults = ToolServers(**tool_server_configuration(settings)).faults(loaded)
    if faults:
        return fault("tool servers", " ".join(map(str, faults)), faults[0].next_step)
    return fine("tool servers", ", ".join(loaded.server_specs) or "only those of the product")


def _no_home(name: str, settings: Settings) -> Finding:
    return fault(name, f"can be kept nowhere: {settings.home} cannot be written", "mend the home folder first")


def conversations(settings: Settings) -> Finding:
    """Where conversations are kept, and how many are."""
    if not home_writable(settings):
        return _no_home("conversations", settings)
    from contextlib import closing

    from sentinel_rag.app.conversations import kept_conversations

    setting = "" if settings.chat_keep_days else "none is kept any more: SENTINEL_CHAT_KEEP_DAYS is 0; "
    try:
        with closing(kept_conversations(settings)) as store:
            return fine("conversations", f"{setting}{store.place}: {store.count()} kept")
    except UsageError as error:
        return fine("conversations", str(error))


def workspaces(settings: Settings) -> Iterator[tuple[str, Check]]:
    """A check for each workspace on this machine, and one for all that are elsewhere, by the name of its line."""
    if settings.gateway_url is not None:
        yield "workspace", _foreign
        return
    if settings.uses_azure:
        yield "workspace", _azure
    embedded = [each.name for each in settings.workspaces if each.embedded]
    for name in embedded if settings.workspaces else [choose_workspace(settings, None)]:
        line = f"workspace {name}" if len(settings.workspaces) > 1 else "workspace"
        yield line, partial(_embedded, name=name, line=line)


def _foreign(settings: Settings) -> Finding:
    return fine("workspace", f"behind the gateway at {settings.gateway_url}")


def _azure(settings: Settings) -> Finding:
    return fine(
        "workspace", f"Azure: {', '.join(settings.azure_workspaces)} (sentinel doctor --azure tries each right)"
    )


def _embedded(settings: Settings, *, name: str, line: str) -> Finding:
    from sentinel_rag.surfaces.cli._workspace_access import workspace_access

    with workspace_access(settings, name, writes=False) as workspace:
        tables = workspace.tables()
    rows = sum(table["rows"] for table in tables)
    if not rows:
        return fault(line, f"{name}: no rows", FILL)
    detail = f"{name}: {rows:,} rows in {len(tables)} tables"
    newest = max((table["newest"] for table in tables if table["newest"]), default=None)
    if newest is None:
        return fine(line, f"{detail}, none with a time")
    detail += f", the newest of {newest[:19].replace('T', ' ')} UTC"
    if datetime.fromisoformat(newest) > datetime.now(UTC):
        return warning(
            line,
            f"{detail}, which is still to come, so windows that end now leave it out",
            "look at the times: sentinel workspace tables; set the clock, or import again with times in UTC",
        )
    return fine(line, detail)


def templates(settings: Settings) -> Finding:
    """The named KQL templates, those of the operator's folder too."""
    from sentinel_rag.sentinel.template_registry import load_templates

    count = len(load_templates(own=settings.templates))
    own = "SENTINEL_TEMPLATES names a folder of your own" if settings.templates is None else str(settings.templates)
    return fine("templates", f"{count} KQL templates; {own}")


def freeform(settings: Settings) -> Finding:
    """Whether the agent may write KQL of its own, and what checks it."""
    if not settings.freeform_kql:
        return fine("freeform KQL", "off: the agent runs named templates only (SENTINEL_FREEFORM_KQL)")
    from sentinel_rag.sentinel.kql_guard.parser_installation import parser_state

    tables = ", ".join(settings.freeform_tables) or "every table"
    state = parser_state()
    if state.missing:
        detail = f"on, over {tables}, with the fallback parser, which refuses more. {state.missing}"
        return fault("freeform KQL", detail, state.next_step)
    return fine("freeform KQL", f"on, over {tables}; Microsoft's parser {state.version} checks each query")


def kql_parser(settings: Settings) -> Finding:
    """Not a fault where it is missing: the guard reads KQL with its stricter fallback then."""
    from sentinel_rag.sentinel.kql_guard.parser_installation import parser_state

    state = parser_state()
    if state.missing or state.node is None:
        return warning("kql parser", f"{state.missing} The guard's stricter fallback reads KQL.", state.next_step)
    node = ".".join(str(part) for part in state.node.version)
    return fine("kql parser", f"Microsoft's parser {state.version} on node {node}")


def files(settings: Settings) -> Finding:
    """The folder that the file tool reads."""
    if settings.files_root is None:
        return fine("files", "the shipped sample files; SENTINEL_FILES_ROOT names a folder of your own")
    import os

    if os.access(settings.files_root, os.R_OK | os.X_OK):
        return fine("files", str(settings.files_root))
    step = "let this account read the folder, or set SENTINEL_FILES_ROOT to another"
    return fault("files", f"{settings.files_root} cannot be read", step)


def web(settings: Settings) -> Finding:
    """Where the web tools search and read."""
    hosts = ", ".join(settings.web_allowed_hosts) or "every public host"
    if settings.search_provider == "bundled":
        search = "the shipped sample pages; SENTINEL_SEARCH_PROVIDER names a service that searches the web"
    else:
        search = settings.search_provider + (f" at {settings.search_url}" if settings.search_url else "")
    return fine("web", f"search: {search}. Pages from: {hosts}")


def knowledge(settings: Settings) -> Finding:
    """Nothing is made, and no service is asked: `sentinel knowledge status` does that."""
    from sentinel_rag.app.knowledge_access import knowledge_place, open_embedder, open_knowledge

    store, place = settings.knowledge.store, knowledge_place(settings)
    if store == "local" and not home_writable(settings):
        return _no_home("knowledge", settings)
    held = "sentinel knowledge status looks into it"
    if store == "chroma" and RunFolder(settings.home).read() is not None:
        held = f"`sentinel up` may have it open, as one process can; once it has ended, {held}"
    if store == "local" and not Path(place).exists():
        held = "empty; it begins with the shipped playbooks at the first search"
    elif store == "local":
        with open_knowledge(settings) as opened:
            documents = opened.state().documents
        held = ", ".join(f"{count:,} {collection.value}" for collection, count in documents.items())
    with open_embedder(settings.embeddings) as model:
        by = "found by words and meaning" if model.embedder is not None else "found by words only"
        detail = f"{store}, {place}: {held}; {by}"
        if model.lacking:
            return warning("knowledge", f"{detail}. {model.lacking}", model.next_step)
        return fine("knowledge", detail)
