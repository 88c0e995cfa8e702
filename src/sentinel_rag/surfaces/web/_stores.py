"""What an administrator fills from the page: the playbooks of the knowledge base, the tables of embedded workspaces.

A file lies in a folder of this surface until the zone that reads it has answered. A surface is told of these zones
where it runs beside them, and nowhere else; what they refuse is passed on in their words, to people with the role of
whoever may run the commands.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import aiohttp  # noqa: TID253  # the module is this library's use, in a process that always needs it
import anyio
from starlette.requests import ClientDisconnect

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.surfaces.web._clients import Connections
from sentinel_rag.surfaces.web._problems import RequestProblem

WHO = "the web page"
"""What others are told while an ingest runs that was asked for here."""
LARGEST_PLAYBOOK = 64 * 1024 * 1024
LARGEST_FILE = 512 * 1024 * 1024
SENDING_S = 900.0
READING_S = 3_600.0
LONGEST_NAME = 200
MOST_SHOWN = 500
"""Items of a watchlist that the page is told."""


@dataclass(frozen=True, slots=True)
class Received:
    """A file that came, for as long as it lies here."""

    path: Path
    size: int
    sha256: str


class OnRecord(Protocol):
    """Puts a change of a store on record at the gateway: before the block, and how it ended after it."""

    def __call__(
        self, store: str, change: str, name: str, file: Received | None = None
    ) -> AbstractAsyncContextManager[None]: ...


@dataclass(frozen=True, slots=True)
class StoreZone:
    """A zone that owns a store; `token` opens its administration."""

    url: str
    token: str


class FilledStores:
    """`knowledge` is None and `workspaces` empty where this surface runs apart from them. `folder` is emptied: nobody
    waits for what an earlier run left there."""

    def __init__(
        self,
        folder: Path,
        connections: Connections,
        *,
        knowledge: StoreZone | None,
        workspaces: Mapping[str, StoreZone],
    ) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        self.folder = folder
        self._connections = connections
        self._knowledge = knowledge
        self._workspaces = workspaces
        self._at_once = anyio.CapacityLimiter(2)

    def to_dict(self) -> dict[str, Any]:
        """What can be filled, as the page is told."""
        return {"knowledge": self._knowledge is not None, "workspaces": list(self._workspaces)}

    async def playbooks(self) -> list[str]:
        """The ids of the playbooks that can be replaced and removed here."""
        return list(await self._ask_knowledge("GET", "/admin/playbooks"))

    async def add_playbook(
        self, name: str, parts: AsyncIterator[bytes], *, replaces: bool, on_record: OnRecord
    ) -> dict[str, Any]:
        """Read one file in. Raises RequestProblem 409 for a playbook of that name without `replaces`."""
        async with self._received(name, parts, LARGEST_PLAYBOOK) as file:
            wanted = {"folder": str(file.path.parent), "who": WHO, "new": [] if replaces else [name]}
            async with on_record("knowledge", "put", name, file):
                found = dict(await self._ask_knowledge("POST", "/admin/playbooks", wanted))
                if not found["added"] + found["changed"] + found["unchanged"]:
                    why = " ".join(str(each["said"]) for each in found["told"]) or "Nothing in it could be read."
                    raise RequestProblem(422, "not_read", f"{name} was not read in. {why}", "Choose another file.")
        return found

    async def remove_playbook(self, name: str, on_record: OnRecord) -> None:
        async with on_record("knowledge", "removed", name):
            await self._ask_knowledge("DELETE", "/admin/playbooks", {"names": [name], "who": WHO})

    async def read_incidents(self, on_record: OnRecord) -> list[dict[str, Any]]:
        """Bring the past incidents of each workspace up to date."""
        async with on_record("knowledge", "read", "past incidents"):
            return list(await self._ask_knowledge("POST", "/admin/ingest", {"who": WHO}, "workspaces"))

    async def tables(self, workspace: str) -> list[dict[str, Any]]:
        found = await self._ask(self._embedded(workspace), "GET", "/admin/tables")
        return list(found["tables"])

    async def add_rows(
        self, workspace: str, name: str, parts: AsyncIterator[bytes], on_record: OnRecord, **given: Any
    ) -> Any:
        """Import one file; its reports, and questions that its rows answer. `given` is its table, and whether it is
        only tried, which changes nothing and stands on no record."""
        zone = self._embedded(workspace)
        async with self._received(name, parts, LARGEST_FILE) as file:
            recorded = nullcontext() if given["trial"] else on_record(f"workspace {workspace}", "imported", name, file)
            async with recorded:
                return await self._ask(zone, "POST", "/admin/import", {"path": str(file.path), **given})

    async def watchlists(self, workspace: str, kql: str) -> dict[str, Any]:
        """The answer of a query about them."""
        wanted = {"kql": kql, "max_rows": MOST_SHOWN}
        found = await self._ask(self._embedded(workspace), "POST", "/admin/query", wanted)
        names = [column["name"] for column in found["columns"]]
        rows = [dict(zip(names, row, strict=True)) for row in found["rows"]]
        return {"columns": names, "rows": rows, "partial": bool(found["partial"])}

    async def put_watchlist(
        self, workspace: str, parts: AsyncIterator[bytes], on_record: OnRecord, *, name: str, **given: Any
    ) -> Any:
        """Put a list in, from a CSV file; `given` is its alias, its search key, and whether it replaces one."""
        zone = self._embedded(workspace)
        async with (
            self._received(name, parts, LARGEST_PLAYBOOK) as file,
            on_record(f"workspace {workspace}", "put", f"watchlist {given['alias']}, {name}", file),
        ):
            return await self._ask(zone, "POST", "/admin/watchlists", {"path": str(file.path), **given})

    async def remove_watchlist(self, workspace: str, alias: str, on_record: OnRecord) -> None:
        async with on_record(f"workspace {workspace}", "removed", f"watchlist {alias}"):
            await self._ask(self._embedded(workspace), "DELETE", "/admin/watchlists", {"alias": alias})

    def _embedded(self, workspace: str) -> StoreZone:
        zone = self._workspaces.get(workspace)
        if zone is None:
            raise RequestProblem(
                422,
                "not_embedded",
                f"Nothing can be imported into the workspace {workspace} here.",
                "Name one of GET /session; the sample is made anew each day, and rows on Azure are Azure's.",
            )
        return zone

    @asynccontextmanager
    async def _received(self, name: str, parts: AsyncIterator[bytes], most: int) -> AsyncIterator[Received]:
        """The file, alone in a folder, for as long as the block lasts."""
        _check_name(name)
        async with self._at_once:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            folder = Path(tempfile.mkdtemp(dir=self.folder))
            try:
                yield await _write(folder / name, parts, most)
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    async def _ask_knowledge(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, part: str = "playbooks"
    ) -> Any:
        if self._knowledge is None:
            raise elsewhere()
        return (await self._ask(self._knowledge, method, path, body))[part]

    async def _ask(self, zone: StoreZone, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The last line of the answer, which of an ingest comes behind those of its progress."""
        timeout = aiohttp.ClientTimeout(total=READING_S, sock_connect=10)
        headers = {"Authorization": f"Bearer {zone.token}"}
        try:
            async with self._connections.http.request(
                method, zone.url + path, json=body, headers=headers, timeout=timeout
            ) as response:
                last = (await response.read()).splitlines()[-1].decode()
                # Where a file lay for a moment is nobody's business.
                told = json.loads(re.sub(rf"{re.escape(str(self.folder))}/[^/]+/", "", last))
        except (aiohttp.ClientError, OSError, ValueError, IndexError) as error:
            raise UnavailableError(
                f"The store's server did not answer: {type(error).__name__}.", next_step="Run: sentinel status"
            ) from None
        if "error" in told:
            fault = told["error"]
            status = 422 if fault["actor"] == "user" and fault["code"] != "exists" else 409
            raise RequestProblem(status, fault["code"], fault["message"], fault["next_step"])
        return told


def elsewhere() -> RequestProblem:
    """The answer of a surface that runs apart from the stores."""
    said, step = "No store is beside this surface.", "Use the commands on the machine of the stores."
    return RequestProblem(409, "elsewhere", said, step)


def _check_name(name: str) -> None:
    if not name.isprintable() or name.startswith(".") or not set("/\\").isdisjoint(name):
        raise RequestProblem(422, "file_name", "This is no name of a file.", "Send it without its folder.")
    if len(name.encode()) > LONGEST_NAME:
        raise RequestProblem(422, "file_name", "The name of the file is too long.", "Give it a shorter one.")


async def _write(file: Path, parts: AsyncIterator[bytes], most: int) -> Received:
    size, digest = 0, hashlib.sha256()
    try:
        with anyio.fail_after(SENDING_S):
            async with await anyio.open_file(file, "wb") as stream:
                async for part in parts:
                    size += len(part)
                    if size > most:
                        limit, step = f"{most // 1024**2} MB", "Larger ones go in by: sentinel workspace import FILE"
                        raise RequestProblem(413, "too_large", f"The file may have at most {limit} here.", step)
                    digest.update(part)
                    await stream.write(part)
    except (TimeoutError, ClientDisconnect):
        raise RequestProblem(408, "malformed_body", "The file did not arrive whole.", "Send it again.") from None
    except OSError as error:
        why, step = f"The file could not be kept: {error.strerror}.", "Make room on the disk of this machine."
        raise RequestProblem(503, "no_room", why, step) from None
    if size == 0:
        raise RequestProblem(422, "empty", "The file is empty.", "Choose another one.")
    return Received(file, size, digest.hexdigest())
