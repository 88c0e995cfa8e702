"""The gateway's record of every call, read with the auditor's own key, and its check."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote, urlencode

import anyio.to_thread
from fastapi import APIRouter, Path, Query

from sentinel_rag.gateway.store import Scope
from sentinel_rag.surfaces.web._access import Auditor, Parts
from sentinel_rag.surfaces.web._parts import Web

router = APIRouter(prefix="/audit", tags=["audit"])

Wanted = Annotated[str | None, Query(min_length=1, max_length=128, description="With `before`: only such records")]


@router.get("", summary="The journal in pages: oldest first, or with `before` newest first and filtered")
async def page(
    sign_in: Auditor,
    web: Parts,
    after: Annotated[int, Query(ge=0, le=2**53, description="Records behind this number.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    before: Annotated[
        int | None, Query(ge=0, le=2**53, description="Records before this number, newest first; 0: from the newest on")
    ] = None,
    kind: Wanted = None,
    tool: Wanted = None,
    session: Wanted = None,
    person: Annotated[
        str | None, Query(min_length=1, max_length=64, description="An account, or the id of a key")
    ] = None,
) -> Any:
    key = await web.key_of(sign_in.account, Scope.AUDIT)
    given: dict[str, Any] = {"limit": limit, "after": after}
    if before is not None:
        key_id = None if person is None else await _key_id(web, person)
        given = {"limit": limit, "before": before}
        given |= {"kind": kind, "tool": tool, "session_id": session, "key_id": key_id}
    query = urlencode({name: value for name, value in given.items() if value is not None})
    return await web.gateway.ask(key, "GET", f"/v1/audit?{query}")


@router.post("/verify", summary="Check every record, signature and checkpoint of the journal")
async def verify(sign_in: Auditor, web: Parts) -> dict[str, Any]:
    async with web.verifying:
        return (await anyio.to_thread.run_sync(web.verify)).to_dict()


@router.get("/{audit_id}", summary="One call's records")
async def record(audit_id: Annotated[str, Path(pattern=r"^[A-Za-z0-9-]{1,64}$")], sign_in: Auditor, web: Parts) -> Any:
    key = await web.key_of(sign_in.account, Scope.AUDIT)
    return await web.gateway.ask(key, "GET", f"/v1/audit/{quote(audit_id, safe='')}")


async def _key_id(web: Web, person: str) -> str:
    """The key under which the records of a person stand; what is no account's name is the id of a key."""
    accounts = await anyio.to_thread.run_sync(web.people.list)
    named = {account.name: account.key_id for account in accounts}
    return named.get(person.strip().lower(), person)
