"""Two ways to the embedded workspace with one face: its file, or the server that owns the file while zones run.

Both answer in the JSON forms of the server's admin routes, so a command prints the same whichever it used.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from typing import Any

import msgspec

from sentinel_rag.app.places import workspace_folder
from sentinel_rag.app.plan import workspace_zone
from sentinel_rag.app.run_state import RunFolder, RunState
from sentinel_rag.contracts.errors import SentinelError, UnavailableError, UsageError
from sentinel_rag.settings import Settings
from sentinel_rag.surfaces.cli._zones import choose_workspace, home_to_itself, response_to

Json = dict[str, Any]
MAX_ROWS = 10_000
Ask = Callable[[str, str, Json | None], Any]
"""Carries out one operation of a workspace, by method, path and body of its server's admin route."""


class WorkspaceAccess:
    """A workspace by its name, and the operations of its server's admin routes, in their JSON forms."""

    def __init__(self, name: str, ask: Ask) -> None:
        self.name = name
        self.ask = ask

    def tables(self) -> list[Json]:
        """The tables that hold rows."""
        tables: list[Json] = self.ask("GET", "/admin/tables", None)["tables"]
        return tables

    def query(self, kql: str, timespan: str | None) -> Json:
        """The answer to a query, as Log Analytics gives it."""
        answer: Json = self.ask("POST", "/admin/query", {"kql": kql, "timespan": timespan, "max_rows": MAX_ROWS})
        return answer

    def schema(self) -> dict[str, dict[str, str]]:
        """Table -> column -> KQL type."""
        schema: dict[str, dict[str, str]] = self.ask("GET", "/admin/schema", None)["schema"]
        return schema


@contextmanager
def workspace_access(settings: Settings, requested: str | None, *, writes: bool) -> Iterator[WorkspaceAccess]:
    """Access to the chosen workspace. Raises UsageError for one on Azure, whose rows are not ours to fill."""
    name = embedded_name(settings, requested, writes=writes)
    state = RunFolder(settings.home).read()
    if state is not None and not state.private and name in state.workspaces:
        yield WorkspaceAccess(name, _served(name, state))
        return
    folder = workspace_folder(settings.home, name)
    if not writes and not folder.exists():
        raise UsageError(
            f"There is no embedded workspace {name!r} yet.",
            next_step="Fill it: sentinel workspace import FILE, or sentinel workspace generate",
        )
    # Zones that serve others leave this file alone, and the store itself keeps two of its writers apart.
    beside = state is not None and not state.private
    with nullcontext() if beside else home_to_itself(settings):
        from sentinel_rag.workspace.workspace import OPERATIONS, Workspace

        with closing(Workspace.open(folder)) as opened:
            yield WorkspaceAccess(
                name, lambda method, path, body: msgspec.convert(body or {}, OPERATIONS[method, path]).run(opened)
            )


def embedded_name(settings: Settings, requested: str | None, *, writes: bool) -> str:
    """The embedded workspace that a command means. Raises UsageError for one on Azure, and where all are there."""
    if not settings.workspaces:
        return requested or settings.workspace or ("default" if writes else _asked(settings))
    if requested is None:
        found = next((each.name for each in settings.workspaces if each.embedded), None)
        if found is not None:
            return found
        raise UsageError(
            "SENTINEL_WORKSPACE_ID is set, so questions go to Azure; the embedded workspace is off.",
            next_step="Unset it to work with the embedded workspace.",
        )
    name = choose_workspace(settings, requested)
    chosen = settings.named(name)
    if chosen is not None and not chosen.embedded:
        raise UsageError(
            f"The workspace {name!r} is on Azure, and this command works on embedded ones.",
            next_step="Name an embedded one, or use sentinel kql run for a template on Azure.",
        )
    return name


def _asked(settings: Settings) -> str:
    """The workspace that a question goes to where nobody names one: the one that is served, or would be."""
    state = RunFolder(settings.home).read()
    served = state.workspace if state is not None and not state.private else ""
    return served or choose_workspace(settings, None)


def fault_admin(settings: Settings, requested: str | None) -> Callable[[str, Json | None], Json]:
    """`call(method, body)` of the faults of an embedded workspace that is served now. Raises UsageError if none is."""
    name = embedded_name(settings, requested, writes=False)
    state = RunFolder(settings.home).read()
    if state is None or name not in state.workspaces:
        raise UsageError(
            f"The workspace {name!r} is not served now, and faults are made by its server.",
            next_step=f"Start it in another terminal: sentinel up --workspace {name}",
        )
    ask = _served(name, state)
    return lambda method, body: ask(method, "/admin/faults", body)


def _served(name: str, state: RunState) -> Ask:
    """The server that owns the store's file, through its admin routes."""
    entry = state.zone(workspace_zone(name, default=name == state.workspace))
    if entry is None:
        raise UnavailableError("The zones that run now serve no embedded workspace.", next_step="Run sentinel status")
    url, headers = entry.url, {"Authorization": f"Bearer {state.workspace_token}"}

    def ask(method: str, path: str, body: Json | None) -> Any:
        try:
            with response_to(url, method, path, body=body, headers=headers, timeout=3600) as response:
                data = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise UnavailableError(
                f"The workspace's server did not answer: {error}.",
                next_step="Run sentinel status; nothing half-written was stored, so the command can be repeated.",
            ) from None
        if response.status >= 400:
            raise _error(data["error"])
        return data

    return ask


def _error(data: Json) -> SentinelError:
    kind = UsageError if data.get("actor") == "user" else UnavailableError
    return kind(data["message"], next_step=data.get("next_step", "Run: sentinel status"), code=data["code"])
