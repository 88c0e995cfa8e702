"""A person's tokens for programs: each has the person's roles, ends by itself, and is shown once."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Annotated, Any

import anyio.to_thread
from fastapi import APIRouter, Path
from starlette.responses import Response

from sentinel_rag.surfaces.web._access import Browser, Parts
from sentinel_rag.surfaces.web._problems import not_found
from sentinel_rag.surfaces.web.models import NewToken

router = APIRouter(prefix="/tokens", tags=["tokens"])


@router.get("", summary="Your tokens, without their texts")
async def list_all(sign_in: Browser, web: Parts) -> dict[str, Any]:
    found = await anyio.to_thread.run_sync(web.people.sign_ins.tokens, sign_in.account.user_id)
    return {
        "tokens": [
            {
                "token_id": each.sign_in_id,
                "name": each.name,
                "created_at": each.created_at,
                "used_at": each.used_at,
                "ends_at": each.ends_at,
            }
            for each in found
        ]
    }


@router.post("", status_code=201, summary="Make a token; its text is shown this once")
async def create(body: NewToken, sign_in: Browser, web: Parts) -> dict[str, Any]:
    opened = await anyio.to_thread.run_sync(
        partial(
            web.people.sign_ins.begin,
            sign_in.account.user_id,
            lasts=timedelta(days=body.days),
            program=True,
            name=body.name,
        )
    )
    return {"token_id": opened.sign_in_id, "name": body.name, "token": opened.token, "ends_at": opened.ends_at}


@router.delete("/{token_id}", status_code=204, summary="End a token")
async def end(token_id: Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")], sign_in: Browser, web: Parts) -> Response:
    mine = {
        each.sign_in_id for each in await anyio.to_thread.run_sync(web.people.sign_ins.tokens, sign_in.account.user_id)
    }
    if token_id not in mine:
        raise not_found("token")
    await anyio.to_thread.run_sync(partial(web.people.sign_ins.end, sign_in.account.user_id, token_id))
    return Response(status_code=204)
