"""Tools that a person uses without the agent: those that only read, each call decided and recorded by the gateway
like the agent's, with the person's own key."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path

from sentinel_rag.gateway.store import Scope
from sentinel_rag.surfaces.web._access import Analyst, Parts
from sentinel_rag.surfaces.web.models import TOOL_NAME, Look, Looked

router = APIRouter(prefix="/tools", tags=["tools"])


@router.get("", summary="The tools that only read, with what each takes")
async def list_all(sign_in: Analyst, web: Parts) -> dict[str, Any]:
    found = await web.gateway.ask(await web.key_of(sign_in.account, Scope.USER), "GET", "/v1/look")
    told = ("name", "description", "parameters")
    return {"tools": [{name: tool[name] for name in told} for tool in found["tools"]]}


@router.post("/{tool}", summary="Read with a tool, in a session that is yours alone", response_model=Looked)
async def use(tool: Annotated[str, Path(pattern=TOOL_NAME)], body: Look, sign_in: Analyst, web: Parts) -> Any:
    account = sign_in.account
    return await web.looks.look(account, await web.key_of(account, Scope.USER), tool, body.arguments)
