"""`sentinel status`, and `sentinel` alone: which parts run, and what to type next."""

from __future__ import annotations

import http.client
import json
from typing import Any

from sentinel_rag.app.conversations import conversation_configuration
from sentinel_rag.app.places import SAMPLE_WORKSPACE, logs_folder, workspace_folder
from sentinel_rag.app.plan import workspace_zone
from sentinel_rag.app.run_state import RunFolder, RunState, ZoneEntry
from sentinel_rag.contracts.errors import ConfigurationError, UnavailableError
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.surfaces.cli._output import print_json, print_table
from sentinel_rag.surfaces.cli._zones import DEFAULT_WORKSPACE, choose_workspace, response_to
from sentinel_rag.surfaces.rendering.visible import safe_cell

EXECUTOR = "executor-"
EXECUTORS = ("sentinel", "files", "web", "knowledge")


def run(*, as_json: bool, url: bool = False) -> int:
    """Print the state of every part, or the `url` of the web page alone; 0 whether or not they run."""
    if url:
        return _page_address()
    settings = load_settings()
    found = addresses(settings, RunFolder(settings.home).read())
    if as_json:
        print_json(found)
        return 0
    parts = {name: found[name] for name in ("interceptor", "agent", "web", "workspace")}
    parts |= {f"workspace {name}": part for name, part in list(found["workspaces"].items())[1:]}
    parts |= {f"executor {name}": part for name, part in found["executors"].items()}
    rows = [(name, part["state"], part["url"] or "-", str(part["pid"] or "-")) for name, part in parts.items()]
    print_table(("part", "state", "url", "process"), rows)
    print(f"\npolicy     {found['policy']}\nhome       {found['home']}")
    print(f"logs       {found['logs']}\nworkspace  {found['serves']}")
    print(f"chats      {found['conversations'] or 'not kept (SENTINEL_CHAT_KEEP_DAYS is 0)'}")
    if found["tokens"] is not None:
        print(f"tokens     {found['tokens']}")
    if not found["running"]:
        print("Nothing runs now. Each question starts what it needs; sentinel up keeps it warm.")
    return 0


def _page_address() -> int:
    """Print the address of the web page. Raises UnavailableError where none is served."""
    settings = load_settings()
    state = RunFolder(settings.home).read()
    zone = None if state is None else state.zone("web")
    if zone is None:
        raise UnavailableError("No web page is served with this home folder.", next_step="Run: sentinel up --web")
    print(settings.web_url or zone.url)
    return 0


def addresses(settings: Settings, state: RunState | None) -> dict[str, Any]:
    """The form of `status --json`: `interceptor`, `agent`, `workspace` (the default one), and by name `workspaces` and
    `executors`, each url, state and pid."""
    by_name = {} if state is None else {zone.name: _part(zone, state.certificate) for zone in state.zones}
    stopped = {"url": None, "state": "stopped", "pid": None}
    served = settings.serves(state.workspace if state is not None else choose_workspace(settings, None))
    workspaces = {
        each.name: by_name.get(workspace_zone(each.name, default=place == 0), stopped)
        if each.embedded
        else {"url": each.logs_endpoint, "state": "azure", "pid": None}
        for place, each in enumerate(served)
    }
    workspace = workspaces[served[0].name]
    serves = ", ".join(each.name if each.embedded else f"{each.name} ({each.workspace_id})" for each in served)
    interceptor = by_name.get("interceptor", stopped)
    if settings.gateway_url is not None:
        interceptor = {"url": settings.gateway_url, "state": "remote", "pid": None}
        workspace, serves = {**stopped, "state": "remote"}, "what the remote gateway serves"
        workspaces = {}
    executors = {name.removeprefix(EXECUTOR): part for name, part in by_name.items() if name.startswith(EXECUTOR)}
    return {
        "running": state is not None,
        "private": state is not None and state.private,
        "home": str(settings.home),
        "logs": str(logs_folder(settings.home)),
        "serves": serves,
        "supervisor_pid": None if state is None else state.supervisor_pid,
        "conversations": _conversations(settings),
        "tokens": None if settings.model_settings is None else _token_counts(),
        "policy": _policy(interceptor, settings),
        "interceptor": interceptor,
        "agent": by_name.get("agent", stopped),
        "web": by_name.get("web", stopped),
        "workspace": workspace,
        "workspaces": workspaces,
        "executors": executors or dict.fromkeys(EXECUTORS, stopped),
    }


def _conversations(settings: Settings) -> str | None:
    """Where conversations are kept, without a secret; None: nowhere."""
    told = conversation_configuration(settings)
    if told["file"] is None or told["database"] is None:
        return None if told["file"] is None else str(told["file"])
    return f"the schema {told['database']['schema']} in PostgreSQL"


def _token_counts() -> str:
    """How the agent counts what it tells a model."""
    from sentinel_rag.agent.tokens import counts_exactly

    if counts_exactly():
        return "counted exactly (o200k_base)"
    return "estimated: install sentinel-rag[openai] for exact counts"


def _part(zone: ZoneEntry, certificate: str) -> dict[str, Any]:
    try:
        with response_to(zone.url, "GET", "/healthz", timeout=2, certificate=certificate) as response:
            state = "running" if response.status == 200 else "unhealthy"
    except (OSError, http.client.HTTPException):
        state = "unreachable"
    return {"url": zone.url, "state": state, "pid": zone.pid}


def _policy(interceptor: dict[str, Any], settings: Settings) -> str:
    """Which policy judges calls: as the running gateway says, else the file that the next start will load."""
    if interceptor["state"] == "remote":
        return "what the remote gateway has loaded"
    url = interceptor["url"]
    if interceptor["state"] != "running":
        return f"{settings.policy_file} (not loaded: no gateway runs)"
    try:
        with response_to(url, "GET", "/readyz", timeout=10) as response:
            state = json.loads(response.read())["checks"]["policy"]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return "unknown: the gateway did not say"
    return f"{settings.policy_file} ({'in force' if state == 'ok' else safe_cell(str(state))})"


FROM_NOTHING = (
    ("sentinel demo", "see what it does, and a hijacked agent fail"),
    ("sentinel workspace generate", "a sample estate to ask about, on this machine"),
    ("sentinel workspace import FILE", "or your own exports: CSV, JSON, Parquet"),
    ("sentinel doctor", "or Azure: what is set, and what is missing"),
)
WITH_ROWS = (
    ("sentinel chat", "hold a conversation; /help for more"),
    ('sentinel ask "which incidents are open?"', "one question"),
    ("sentinel status", "which parts run, and where"),
    ("sentinel doctor", "check everything that it needs"),
)


def show_first_steps() -> int:
    """Print the first steps; 0."""
    try:
        settings = load_settings()
    except ConfigurationError:
        print("Some settings are wrong, so nothing starts yet. Each is named, with its remedy, by:\n")
        print("  sentinel doctor")
        return 0
    ready, running = _holds_rows(settings), RunFolder(settings.home).read() is not None
    print("Sentinel RAG answers questions about Microsoft Sentinel in plain words.")
    if running:
        print("It runs now. Next:\n")
    else:
        print(
            "Ready to be asked. Next:\n" if ready else "There is nothing to ask about yet. Start with one of these:\n"
        )
    steps = WITH_ROWS if ready else FROM_NOTHING
    width = max(len(typed) for typed, _ in steps)
    for typed, meaning in steps:
        print(f"  {typed:{width}}  {meaning}")
    print("\nsentinel --help lists all commands.")
    return 0


def _holds_rows(settings: Settings) -> bool:
    """Whether there is a workspace to ask: elsewhere, on Azure, or a folder in this home."""
    if settings.gateway_url is not None or any(not each.embedded for each in settings.workspaces):
        return True
    names = {each.name for each in settings.workspaces} or {settings.workspace or DEFAULT_WORKSPACE, SAMPLE_WORKSPACE}
    return any(workspace_folder(settings.home, name).exists() for name in names)
