"""The Interceptor's record of every call, read with the auditor's own key, and its check."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import anyio.to_thread
from fastapi import APIRouter, Path, Query

from sentinel_rag.interceptor.store import Scope
from sentinel_rag.surfaces.web._access import Auditor, Parts

router = APIRouter(prefix="/audit", tags=["audit"])


@router.get("", summary="The journal in pages, oldest first")
async def page(
    sign_in: Auditor,
    web: Parts,
    after: Annotated[int, Query(ge=0, le=2**53, description="Records behind this number.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> Any:
    key = await web.key_of(sign_in.account, Scope.AUDIT)
    return await web.gateway.ask(key, "GET", f"/v1/audit?after={after}&limit={limit}")


@router.post("/verify", summary="Check every record, signature and checkpoint of the journal")
async def verify(sign_in: Auditor, web: Parts) -> dict[str, Any]:
    async with web.verifying:
        return (await anyio.to_thread.run_sync(web.verify)).to_dict()


@router.get("/{audit_id}", summary="One call's records")
async def record(audit_id: Annotated[str, Path(pattern=r"^[A-Za-z0-9-]{1,64}$")], sign_in: Auditor, web: Parts) -> Any:
    key = await web.key_of(sign_in.account, Scope.AUDIT)
    return await web.gateway.ask(key, "GET", f"/v1/audit/{quote(audit_id, safe='')}")
