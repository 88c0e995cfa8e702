"""Two ways to the embedded workspace with one face: its file, or the server that owns the file while zones run.

Both answer in the JSON forms of the server's admin routes, so a command prints the same whichever it used.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sentinel_rag.app.gateway_plan import workspace_zone
from sentinel_rag.app.places import workspace_folder
from sentinel_rag.app.run_state import RunFolder, RunState
from sentinel_rag.contracts.errors import SentinelError, UnavailableError, UsageError
from sentinel_rag.settings import Settings
from sentinel_rag.surfaces.cli._zones import choose_workspace, home_to_itself
from sentinel_rag.workspace.importing.reports import ImportReport
from sentinel_rag.workspace.sample.options import EstateOptions

if TYPE_CHECKING:
    from sentinel_rag.workspace.workspace import Workspace

Json = dict[str, Any]
MAX_ROWS = 10_000


class WorkspaceAccess(Protocol):
    """What `sentinel workspace` does. Tables, guides and answers come in the JSON forms of the admin routes."""

    name: str

    def import_path(self, path: Path, table: str | None) -> list[ImportReport]: ...
    def generate(self, options: EstateOptions) -> Json: ...
    def tables(self) -> list[Json]: ...
    def query(self, kql: str, timespan: str | None) -> Json: ...
    def schema(self) -> dict[str, dict[str, str]]: ...
    def put_watchlist(self, alias: str, path: Path, search_key: str | None, replaces: bool) -> Json: ...
    def remove_watchlist(self, alias: str) -> None: ...


@contextmanager
def workspace_access(settings: Settings, requested: str | None, *, writes: bool) -> Iterator[WorkspaceAccess]:
    """Access to the chosen workspace. Raises UsageError for one on Azure, whose rows are not ours to fill."""
    name = embedded_name(settings, requested, writes=writes)
    state = RunFolder(settings.home).read()
    if state is not None and not state.private and name in state.workspaces:
        yield _Served(name, state)
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
        from sentinel_rag.workspace.workspace import Workspace

        opened = Workspace.open(folder)
        try:
            yield _Opened(name, opened)
        finally:
            opened.close()


def embedded_name(settings: Settings, requested: str | None, *, writes: bool) -> str:
    """The embedded workspace that a command means. Raises UsageError for one on Azure, and where all are there."""
    if not settings.workspaces:
        return requested or settings.workspace or ("default" if writes else choose_workspace(settings, None))
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


def fault_admin(settings: Settings, requested: str | None) -> Callable[[str, Json | None], Json]:
    """`call(method, body)` of the faults of an embedded workspace that is served now. Raises UsageError if none is."""
    name = embedded_name(settings, requested, writes=False)
    state = RunFolder(settings.home).read()
    if state is None or name not in state.workspaces:
        raise UsageError(
            f"The workspace {name!r} is not served now, and faults are made by its server.",
            next_step=f"Start it in another terminal: sentinel up --workspace {name}",
        )
    served = _Served(name, state)
    return lambda method, body: served.faults(method, body)


class _Opened:
    """The store's file, opened by this process."""

    def __init__(self, name: str, workspace: Workspace) -> None:
        self.name = name
        self._workspace = workspace

    def import_path(self, path: Path, table: str | None) -> list[ImportReport]:
        return self._workspace.import_path(path, table=table)

    def generate(self, options: EstateOptions) -> Json:
        return self._workspace.generate(options).to_dict()

    def tables(self) -> list[Json]:
        return [table.to_dict() for table in self._workspace.tables()]

    def query(self, kql: str, timespan: str | None) -> Json:
        return self._workspace.query(kql, timespan=timespan, max_rows=MAX_ROWS).to_dict()

    def schema(self) -> dict[str, dict[str, str]]:
        return {table: dict(columns) for table, columns in self._workspace.schema().items()}

    def put_watchlist(self, alias: str, path: Path, search_key: str | None, replaces: bool) -> Json:
        return self._workspace.watchlists.put(alias, path, search_key=search_key, replaces=replaces)

    def remove_watchlist(self, alias: str) -> None:
        self._workspace.watchlists.remove(alias)


class _Served:
    """The server that owns the store's file, through its admin routes."""

    def __init__(self, name: str, state: RunState) -> None:
        self.name = name
        entry = state.zone(workspace_zone(name, default=name == state.workspace))
        if entry is None:
            raise UnavailableError(
                "The zones that run now serve no embedded workspace.", next_step="Run sentinel status"
            )
        self._address = entry.url.removeprefix("http://")
        self._token = state.workspace_token

    def import_path(self, path: Path, table: str | None) -> list[ImportReport]:
        reports = self._call("POST", "/admin/import", {"path": str(path), "table": table})["reports"]
        return [ImportReport.from_dict(report) for report in reports]

    def generate(self, options: EstateOptions) -> Json:
        made: Json = self._call("POST", "/admin/generate", options.to_dict())["guide"]
        return made

    def tables(self) -> list[Json]:
        tables: list[Json] = self._call("GET", "/admin/tables")["tables"]
        return tables

    def query(self, kql: str, timespan: str | None) -> Json:
        answer: Json = self._call("POST", "/admin/query", {"kql": kql, "timespan": timespan, "max_rows": MAX_ROWS})
        return answer

    def faults(self, method: str, body: Json | None) -> Json:
        state: Json = self._call(method, "/admin/faults", body)
        return state

    def schema(self) -> dict[str, dict[str, str]]:
        schema: dict[str, dict[str, str]] = self._call("GET", "/admin/schema")["schema"]
        return schema

    def put_watchlist(self, alias: str, path: Path, search_key: str | None, replaces: bool) -> Json:
        wanted = {"alias": alias, "path": str(path), "search_key": search_key, "replaces": replaces}
        made: Json = self._call("POST", "/admin/watchlists", wanted)
        return made

    def remove_watchlist(self, alias: str) -> None:
        self._call("DELETE", "/admin/watchlists", {"alias": alias})

    def _call(self, method: str, path: str, body: Json | None = None) -> Any:
        connection = http.client.HTTPConnection(self._address, timeout=3600)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            data = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise UnavailableError(
                f"The workspace's server did not answer: {error}.",
                next_step="Run sentinel status; nothing half-written was stored, so the command can be repeated.",
            ) from None
        finally:
            connection.close()
        if response.status >= 400:
            raise _error(data["error"])
        return data


def _error(data: Json) -> SentinelError:
    kind = UsageError if data.get("actor") == "user" else UnavailableError
    return kind(data["message"], next_step=data.get("next_step", "Run: sentinel status"), code=data["code"])
