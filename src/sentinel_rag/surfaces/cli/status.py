"""`sentinel status`: every part with its address and state."""

from __future__ import annotations

import http.client
import json
from typing import Any

from sentinel_rag.app.conversations import conversation_configuration
from sentinel_rag.app.gateway_plan import workspace_zone
from sentinel_rag.app.home_folders import logs_folder
from sentinel_rag.app.run_state import RunFolder, RunState, ZoneEntry
from sentinel_rag.app.tls import connection_here
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.surfaces.cli._safe_text import safe_cell
from sentinel_rag.surfaces.cli._zones import choose_workspace

EXECUTOR = "executor-"
EXECUTORS = ("sentinel", "files", "web", "knowledge")


def run(*, as_json: bool) -> int:
    """Print the state of every part; 0 whether or not they run."""
    settings = load_settings()
    found = addresses(settings, RunFolder(settings.home).read())
    if as_json:
        print(json.dumps(found, indent=2))
        return 0
    from sentinel_rag.surfaces.cli._render import console, print_table

    parts = {name: found[name] for name in ("interceptor", "agent", "web", "workspace")}
    parts |= {f"workspace {name}": part for name, part in list(found["workspaces"].items())[1:]}
    parts |= {f"executor {name}": part for name, part in found["executors"].items()}
    rows = [(name, part["state"], part["url"] or "-", str(part["pid"] or "-")) for name, part in parts.items()]
    print_table(console(), "", ("part", "state", "url", "process"), rows)
    print(f"\npolicy     {found['policy']}\nhome       {found['home']}")
    print(f"logs       {found['logs']}\nworkspace  {found['serves']}")
    print(f"chats      {found['conversations'] or 'not kept (SENTINEL_CHAT_KEEP_DAYS is 0)'}")
    if found["tokens"] is not None:
        print(f"tokens     {found['tokens']}")
    if not found["running"]:
        print("Nothing runs now. Each question starts what it needs; sentinel up keeps it warm.")
    return 0


def page_address() -> int:
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
    connection = connection_here(zone.url, certificate, timeout=2)
    try:
        connection.request("GET", "/healthz")
        state = "running" if connection.getresponse().status == 200 else "unhealthy"
    except (OSError, http.client.HTTPException):
        state = "unreachable"
    finally:
        connection.close()
    return {"url": zone.url, "state": state, "pid": zone.pid}


def _policy(interceptor: dict[str, Any], settings: Settings) -> str:
    """Which policy judges calls: as the running gateway says, else the file that the next start will load."""
    if interceptor["state"] == "remote":
        return "what the remote gateway has loaded"
    url = interceptor["url"]
    if interceptor["state"] != "running":
        return f"{settings.policy_file} (not loaded: no gateway runs)"
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=10)
    try:
        connection.request("GET", "/readyz")
        state = json.loads(connection.getresponse().read())["checks"]["policy"]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return "unknown: the gateway did not say"
    finally:
        connection.close()
    return f"{settings.policy_file} ({'in force' if state == 'ok' else safe_cell(str(state))})"
