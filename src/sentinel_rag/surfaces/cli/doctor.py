"""`sentinel doctor`: one line for each thing that must be right, with the command that mends it."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib import metadata
from pathlib import Path

from sentinel_rag.assembly.run_state import RunFolder
from sentinel_rag.contracts.errors import ConfigurationError, SentinelError, UsageError
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.surfaces.cli._safe_text import safe
from sentinel_rag.surfaces.cli._zones import choose_workspace
from sentinel_rag.surfaces.cli.status import addresses

PACKAGES = ("duckdb", "duckdb-kql", "mcp", "azure-monitor-query", "azure-identity", "starlette", "uvicorn", "msgspec")
MIN_FREE_BYTES = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. `fix` is what to do; empty where nothing is wrong."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


def run(*, as_json: bool, azure: bool = False, model: bool = False) -> int:
    """Print every finding; 0 if all is well, 1 if something needs mending. `azure` tries each right by a read, `model`
    asks each model one tiny question."""
    findings = list(_examine())
    if azure:
        findings += _azure()
    if model:
        findings += _model_calls()
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            print(f"{'ok  ' if finding.ok else 'FAIL'}  {finding.name:22} {safe(finding.detail)}")
            if finding.fix:
                print(f"      {'':22} fix: {safe(finding.fix)}")
    return 0 if all(finding.ok for finding in findings) else 1


def _examine() -> Iterator[Finding]:
    version = ".".join(str(part) for part in sys.version_info[:3])
    yield Finding("python", sys.version_info >= (3, 11), version, "" if sys.version_info >= (3, 11) else "use 3.11+")
    yield _packages()
    try:
        settings = load_settings()
    except ConfigurationError as error:
        yield Finding("settings", False, "; ".join(error.problems), error.next_step)
        return
    yield Finding("settings", True, f"model {settings.model}, time zone {settings.timezone}")
    checks: tuple[tuple[str, Callable[[Settings], Finding]], ...] = (
        ("home folder", _home),
        ("policy", _policy),
        ("tool servers", _tool_servers),
        *_workspace_checks(settings),
        ("templates", _templates),
        ("freeform KQL", _freeform),
        ("kql parser", _kql_parser),
        ("files", _files),
        ("web", _web),
        ("knowledge", _knowledge),
        ("conversations", _conversations),
        ("model", _model),
        ("zones", _zones),
    )
    for name, check in checks:
        yield _guarded(name, check, settings)


def _azure() -> list[Finding]:
    try:
        settings = load_settings()
        if not settings.uses_azure:
            return [Finding("azure", False, "SENTINEL_WORKSPACE_ID is not set", "see docs/azure.md")]
        from sentinel_rag.assembly.azure_access import azure_access

        return [
            Finding(f"azure {name}", check.ok, f"{check.name}: {check.detail}", check.next_step)
            for name, checks in azure_access(settings).items()
            for check in checks
        ]
    except ConfigurationError as error:
        return [Finding("azure", False, f"{error} {'; '.join(error.problems)}".strip(), error.next_step)]


def _model_calls() -> list[Finding]:
    try:
        settings = load_settings().model_settings
        if settings is None:
            return [Finding("model call", False, "SENTINEL_MODEL is offline: no model to ask", "see docs/models.md")]
        from sentinel_rag.assembly.model_access import check_models

        return [
            Finding(f"model {check.tier}", check.ok, check.detail, check.next_step) for check in check_models(settings)
        ]
    except ConfigurationError as error:
        return [Finding("model call", False, f"{error} {'; '.join(error.problems)}".strip(), error.next_step)]


def _guarded(name: str, check: Callable[[Settings], Finding], settings: Settings) -> Finding:
    try:
        return check(settings)
    except ConfigurationError as error:
        return Finding(name, False, f"{error} {'; '.join(error.problems)}", error.next_step)
    except SentinelError as error:
        return Finding(name, False, str(error), error.next_step)
    except OSError as error:
        return Finding(
            name, False, f"{error.strerror or error}: {error.filename}", "check the folder's owner and rights"
        )


def _packages() -> Finding:
    missing, found = [], []
    for name in PACKAGES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        return Finding(
            "packages", False, f"missing: {', '.join(missing)}", "run: make demo (it installs what is locked)"
        )
    return Finding("packages", True, ", ".join(found))


def _home(settings: Settings) -> Finding:
    RunFolder(settings.home).is_held()
    nearest = next(folder for folder in (settings.home, *settings.home.parents) if folder.exists())
    if not _writable(nearest):
        return Finding(
            "home folder", False, f"{settings.home} cannot be written", "set SENTINEL_HOME to a folder that can be"
        )
    free = shutil.disk_usage(nearest).free
    detail = f"{settings.home}, {free / 1e9:.0f} GB free"
    return Finding(
        "home folder", free > MIN_FREE_BYTES, detail, "" if free > MIN_FREE_BYTES else "free some disk space"
    )


def _writable(folder: Path) -> bool:
    import os

    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _policy(settings: Settings) -> Finding:
    from sentinel_rag.interceptor.policy import load_policy

    policy = load_policy(settings.policy_file)
    return Finding("policy", True, f"{settings.policy_file}: {len(policy.tools)} tools")


def _tool_servers(settings: Settings) -> Finding:
    from sentinel_rag.assembly.tool_servers import ToolServers, tool_server_configuration
    from sentinel_rag.interceptor.policy import load_policy

    policy = load_policy(settings.policy_file)
    faults = ToolServers(**tool_server_configuration(settings)).faults(policy)
    if faults:
        return Finding("tool servers", False, " ".join(map(str, faults)), faults[0].next_step)
    declared = ", ".join(policy.server_specs) or "only those of the product"
    return Finding("tool servers", True, declared)


def _conversations(settings: Settings) -> Finding:
    from contextlib import closing

    from sentinel_rag.assembly.conversations import kept_conversations

    setting = "" if settings.chat_keep_days else "none is kept any more: SENTINEL_CHAT_KEEP_DAYS is 0; "
    try:
        with closing(kept_conversations(settings)) as store:
            return Finding("conversations", True, f"{setting}{store.path}: {store.count()} kept")
    except UsageError as error:
        return Finding("conversations", True, str(error))


def _workspace_checks(settings: Settings) -> list[tuple[str, Callable[[Settings], Finding]]]:
    """A check for each workspace on this machine, and one for all that are elsewhere."""
    if settings.gateway_url is not None:
        return [("workspace", _foreign_workspaces)]
    embedded = [each.name for each in settings.workspaces if each.embedded]
    if not settings.workspaces:
        embedded = [choose_workspace(settings, None)]
    azure: list[tuple[str, Callable[[Settings], Finding]]] = (
        [("workspace", _azure_workspaces)] if settings.uses_azure else []
    )
    several = len(settings.workspaces) > 1
    lines = {name: f"workspace {name}" if several else "workspace" for name in embedded}
    return azure + [(line, partial(_workspace, name=name, line=line)) for name, line in lines.items()]


def _foreign_workspaces(settings: Settings) -> Finding:
    return Finding("workspace", True, f"behind the Interceptor at {settings.gateway_url}")


def _azure_workspaces(settings: Settings) -> Finding:
    names = ", ".join(settings.azure_workspaces)
    return Finding("workspace", True, f"Azure: {names} (sentinel doctor --azure tries each right)")


def _workspace(settings: Settings, *, name: str, line: str) -> Finding:
    from sentinel_rag.surfaces.cli._workspace_access import workspace_access

    with workspace_access(settings, name, writes=False) as workspace:
        tables = workspace.tables()
    rows = sum(table["rows"] for table in tables)
    fix = "" if rows else "sentinel workspace import FILE, or sentinel workspace generate"
    return Finding(line, rows > 0, f"{name}: {rows} rows in {len(tables)} tables", fix)


def _templates(settings: Settings) -> Finding:
    from sentinel_rag.sentinel.template_registry import load_templates

    count = len(load_templates(own=settings.templates))
    own = "SENTINEL_TEMPLATES names a folder of your own" if settings.templates is None else str(settings.templates)
    return Finding("templates", True, f"{count} KQL templates; {own}")


def _freeform(settings: Settings) -> Finding:
    if not settings.freeform_kql:
        return Finding("freeform KQL", True, "off: the agent runs named templates only (SENTINEL_FREEFORM_KQL)")
    from sentinel_rag.sentinel.kql_guard.parser_installation import parser_state

    tables = ", ".join(settings.freeform_tables) or "every table"
    state = parser_state()
    if state.missing:
        detail = f"on, over {tables}, with the fallback parser, which refuses more. {state.missing}"
        return Finding("freeform KQL", False, detail, state.next_step)
    return Finding("freeform KQL", True, f"on, over {tables}; Microsoft's parser {state.version} checks each query")


def _kql_parser(_: Settings) -> Finding:
    """Not a fault where it is missing: the guard reads KQL with its stricter fallback then."""
    from sentinel_rag.sentinel.kql_guard.parser_installation import parser_state

    state = parser_state()
    if state.missing or state.node is None:
        return Finding("kql parser", True, f"{state.missing} The guard's stricter fallback reads KQL.", state.next_step)
    node = ".".join(str(part) for part in state.node.version)
    return Finding("kql parser", True, f"Microsoft's parser {state.version} on node {node}")


def _files(settings: Settings) -> Finding:
    if settings.files_root is None:
        return Finding("files", True, "the shipped sample files; SENTINEL_FILES_ROOT names a folder of your own")
    import os

    readable = os.access(settings.files_root, os.R_OK | os.X_OK)
    fix = "" if readable else "let this account read the folder, or set SENTINEL_FILES_ROOT to another"
    return Finding("files", readable, str(settings.files_root), fix)


def _web(settings: Settings) -> Finding:
    hosts = ", ".join(settings.web_allowed_hosts) or "every public host"
    if settings.search_provider == "bundled":
        search = "the shipped sample pages; SENTINEL_SEARCH_PROVIDER names a service that searches the web"
    else:
        search = settings.search_provider + (f" at {settings.search_url}" if settings.search_url else "")
    return Finding("web", True, f"search: {search}. Pages from: {hosts}")


def _knowledge(settings: Settings) -> Finding:
    """Nothing is made, and no service is asked: `sentinel knowledge status` does that."""
    from sentinel_rag.assembly.knowledge_access import knowledge_place, open_embedder, open_knowledge

    store, place = settings.knowledge.store, knowledge_place(settings)
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
        lacking = f". {model.lacking}" if model.lacking else ""
        return Finding("knowledge", True, f"{store}, {place}: {held}; {by}{lacking}", model.next_step)


def _model(settings: Settings) -> Finding:
    model = settings.model_settings
    if model is None:
        return Finding("model", True, "offline: answers are planned and written without a model")
    names = model.name if model.small_name is None else f"{model.name}, for simple questions {model.small_name}"
    detail = f"{names} at {model.url}, which reads questions and the rows behind them (sentinel doctor --model asks it)"
    try:
        return Finding("model", True, f"{detail}, openai {metadata.version('openai')}")
    except metadata.PackageNotFoundError:
        return Finding("model", False, f"{detail}; the openai library is missing", "pip install 'sentinel-rag[openai]'")


def _zones(settings: Settings) -> Finding:
    found = addresses(settings, RunFolder(settings.home).read())
    if not found["running"]:
        return Finding("zones", True, "not running; each question starts what it needs (sentinel up keeps it warm)")
    parts = {name: found[name]["state"] for name in ("interceptor", "agent", "workspace")}
    parts |= {f"workspace {name}": part["state"] for name, part in list(found["workspaces"].items())[1:]}
    parts |= {f"executor {name}": part["state"] for name, part in found["executors"].items()}
    ok = all(state in ("running", "azure", "remote") for state in parts.values())
    detail = ", ".join(f"{name} {state}" for name, state in parts.items())
    return Finding("zones", ok, detail, "" if ok else f"stop sentinel up and start it again; logs: {found['logs']}")
