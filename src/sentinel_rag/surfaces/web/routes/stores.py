"""Routes that fill stores, for people with the role of who may run the commands that do the same: playbooks, past
incidents, and tables of embedded workspaces.

A file is the body of its request as it stands, and comes as a stream: no form, which another site's page could send.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import anyio
from fastapi import APIRouter, Depends, Query, Request

from sentinel_rag.contracts.watchlists import ALIAS, LISTED, rows_of
from sentinel_rag.gateway.admission import unless_gone
from sentinel_rag.gateway.store import Scope
from sentinel_rag.surfaces.web._parts import Admin, Parts, admin, signed_in
from sentinel_rag.surfaces.web._problems import RequestProblem
from sentinel_rag.surfaces.web._stores import FilledStores, OnRecord, Received, elsewhere

FILE = "application/octet-stream"
_SENT = {"requestBody": {"required": True, "content": {FILE: {"schema": {"type": "string", "format": "binary"}}}}}

Name = Annotated[str, Query(min_length=1, max_length=400, description="The name of the file, without its folder.")]


async def stores_of(web: Parts) -> FilledStores:
    """The stores of this surface. Raises RequestProblem where it has none."""
    if web.stores is None:
        raise elsewhere()
    return web.stores


Filled = Annotated[FilledStores, Depends(stores_of)]


async def content(request: Request, web: Parts) -> AsyncIterator[bytes]:
    """The body as it comes. Raises RequestProblem for another kind, and at its end where who sends it may no more."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != FILE or "content-encoding" in request.headers:
        raise RequestProblem(415, "unsupported_media_type", f"Send the file as {FILE} without Content-Encoding.")

    async def parts() -> AsyncIterator[bytes]:
        async for part in request.stream():
            yield part
        await admin(await signed_in(request, web))  # a file may come for minutes

    return parts()


async def on_record(sign_in: Admin, web: Parts) -> OnRecord:
    """Puts what this admin changes on record, with their own key."""
    key = await web.key_of(sign_in.account, Scope.ADMIN)

    @asynccontextmanager
    async def change(store: str, change: str, name: str, file: Received | None = None) -> AsyncIterator[None]:
        told: dict[str, Any] = {"store": store, "change": change, "name": name}
        told |= {"bytes": file and file.size, "sha256": file and file.sha256, "audit_id": None}
        told |= await web.gateway.ask(key, "POST", "/v1/store-changes", {**told, "state": "asked"})
        ended = "refused"
        try:
            yield
            ended = "done"
        finally:
            with anyio.CancelScope(shield=True):
                await web.gateway.ask(key, "POST", "/v1/store-changes", {**told, "state": ended})

    return change


Recorded = Annotated[OnRecord, Depends(on_record)]

File = Annotated[AsyncIterator[bytes], Depends(content)]

knowledge_router = APIRouter(prefix="/knowledge", tags=["knowledge"])


@knowledge_router.put("/playbooks", summary="Read a playbook in", openapi_extra=_SENT)
async def add_playbook(
    name: Name, _: Admin, stores: Filled, parts: File, recorded: Recorded, replace: bool = False
) -> dict[str, Any]:
    return await stores.add_playbook(name, parts, replaces=replace, on_record=recorded)


@knowledge_router.get("/playbooks", summary="The playbooks that can be replaced and removed here")
async def list_playbooks(_: Admin, stores: Filled) -> dict[str, Any]:
    return {"playbooks": await stores.playbooks()}


@knowledge_router.delete("/playbooks", status_code=204, summary="Remove one playbook and nothing else")
async def remove_playbook(
    name: Annotated[str, Query(min_length=1, max_length=2_000)], _: Admin, stores: Filled, recorded: Recorded
) -> None:
    await stores.remove_playbook(name, recorded)


@knowledge_router.post("/incidents", summary="Read past incidents in, or bring them up to date")
async def read_incidents(request: Request, _: Admin, stores: Filled, recorded: Recorded) -> dict[str, Any]:
    return {"workspaces": await unless_gone(request, stores.read_incidents(recorded))}


data_router = APIRouter(prefix="/data", tags=["data"])

Workspace = Annotated[str, Query(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$", examples=["default"])]


@data_router.get("", summary="The tables of an embedded workspace that hold rows")
async def tables(workspace: Workspace, _: Admin, stores: Filled) -> dict[str, Any]:
    return {"tables": await stores.tables(workspace)}


@data_router.put("", summary="Import a file into an embedded workspace", openapi_extra=_SENT)
async def add_rows(
    workspace: Workspace,
    name: Name,
    _: Admin,
    stores: Filled,
    parts: File,
    recorded: Recorded,
    table: Annotated[str | None, Query(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,99}$", examples=["SigninLogs"])] = None,
    trial: Annotated[bool, Query(description="Tell what would become of it, and store nothing.")] = False,
) -> Any:
    return await stores.add_rows(workspace, name, parts, recorded, table=table, trial=trial)


Alias = Annotated[str, Query(pattern=rf"^{ALIAS.pattern}$", examples=["VIPUsers"])]


@data_router.get("/watchlists", summary="The watchlists of an embedded workspace, or the items of one")
async def watchlists(workspace: Workspace, _: Admin, stores: Filled, alias: Alias | None = None) -> dict[str, Any]:
    return await stores.watchlists(workspace, LISTED if alias is None else rows_of(alias))


@data_router.put("/watchlists", summary="Put a watchlist in, from a CSV file", openapi_extra=_SENT)
async def put_watchlist(
    workspace: Workspace,
    name: Name,
    alias: Alias,
    _: Admin,
    stores: Filled,
    parts: File,
    recorded: Recorded,
    key: Annotated[str | None, Query(min_length=1, max_length=200, description="The column that joins use.")] = None,
    replace: bool = False,
) -> Any:
    given = {"alias": alias, "search_key": key, "replaces": replace}
    return await stores.put_watchlist(workspace, parts, recorded, name=name, **given)


@data_router.delete("/watchlists", status_code=204, summary="Remove one watchlist and nothing else")
async def remove_watchlist(workspace: Workspace, alias: Alias, _: Admin, stores: Filled, recorded: Recorded) -> None:
    await stores.remove_watchlist(workspace, alias, recorded)
