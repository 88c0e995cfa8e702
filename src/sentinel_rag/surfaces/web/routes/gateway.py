"""Routes to what the gateway keeps and does for a person: its record, its policy, its state, and tools that only read.

The gateway decides and records each request with the person's own key.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import anyio.to_thread
from fastapi import APIRouter, Path, Query

from sentinel_rag import __version__
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.labels import Integrity, Label, Sensitivity
from sentinel_rag.gateway.flow import CallFacts
from sentinel_rag.gateway.flow.named_values import named_in
from sentinel_rag.gateway.policy import TaintRule
from sentinel_rag.gateway.policy.loading import parse_policy_bytes
from sentinel_rag.gateway.policy_tools import story_of_call
from sentinel_rag.gateway.store import Scope
from sentinel_rag.surfaces.web._parts import Admin, Analyst, Auditor, Lead, Parts
from sentinel_rag.surfaces.web._problems import RequestProblem
from sentinel_rag.surfaces.web.models import TOOL_NAME, Explain, Look, Looked

audit_router = APIRouter(prefix="/audit", tags=["audit"])

Wanted = Annotated[str | None, Query(min_length=1, max_length=128, description="With `before`: only such records")]


@audit_router.get("", summary="The journal in pages: oldest first, or with `before` newest first and filtered")
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
    incident: Wanted = None,
    person: Annotated[
        str | None, Query(min_length=1, max_length=64, description="An account or the id of a key, with its sessions")
    ] = None,
) -> Any:
    key = await web.key_of(sign_in.account, Scope.AUDIT)
    given: dict[str, Any] = {"limit": limit, "after": after}
    if before is not None:
        given = {"limit": limit, "before": before, "incident": incident}
        given |= {"kind": kind, "tool": tool, "session_id": session, "person": person and person.strip().lower()}
    query = urlencode({name: value for name, value in given.items() if value is not None})
    return await web.gateway.ask(key, "GET", f"/v1/audit?{query}")


@audit_router.post("/verify", summary="Check every record, signature and checkpoint of the journal")
async def verify(sign_in: Auditor, web: Parts) -> dict[str, Any]:
    async with web.verifying:
        return (await anyio.to_thread.run_sync(web.verify)).to_dict()


@audit_router.get("/{audit_id}", summary="One call's records")
async def record(audit_id: Annotated[str, Path(pattern=r"^[A-Za-z0-9-]{1,64}$")], sign_in: Auditor, web: Parts) -> Any:
    key = await web.key_of(sign_in.account, Scope.AUDIT)
    return await web.gateway.ask(key, "GET", f"/v1/audit/{quote(audit_id, safe='')}")


policy_router = APIRouter(prefix="/policy", tags=["policy"])


@policy_router.get("", summary="The policy in force, with its text and what each rule lets happen")
async def show(sign_in: Admin, web: Parts) -> dict[str, Any]:
    found = await web.gateway.ask(await web.key_of(sign_in.account, Scope.ADMIN), "GET", "/v1/policy")
    return {**found, "tools": await anyio.to_thread.run_sync(_tools_of, found["text"])}


def _tools_of(text: str | None) -> list[dict[str, Any]]:
    """Each tool with its rules in their order; none where the gateway does not give its policy's text."""
    tools = () if text is None else parse_policy_bytes(text.encode(), source="the policy in force").tools.values()
    return [
        {
            "name": tool.name,
            "effect": tool.effect.value,
            "approvers": list(tool.approvers),
            "rules": [{"rule_id": rule.rule_id, "when": rule.condition, "then": _then(rule)} for rule in tool.rules],
        }
        for tool in tools
    ]


def _then(rule: TaintRule) -> str:
    """`never`, `asker` or `other` (whose yes it needs), `runs_or_asks`, `runs`."""
    if rule.deny:
        return "never"
    if rule.requires_approval:
        return "asker" if rule.asks_the_asker else "other"
    return "runs_or_asks" if rule.offers_approval else "runs"


@policy_router.post("/explain", summary="Why a call would be decided as it would")
async def explain(body: Explain, sign_in: Admin, web: Parts) -> dict[str, Any]:
    policy = await web.gateway.ask(await web.key_of(sign_in.account, Scope.ADMIN), "GET", "/v1/policy")
    if policy["text"] is None:
        raise RequestProblem(
            409, "no_text", "The gateway does not give its policy's text.", "Use sentinel policy explain."
        )
    return await anyio.to_thread.run_sync(partial(_story, str(policy["text"]), body))


def _story(text: str, body: Explain) -> dict[str, Any]:
    policy = parse_policy_bytes(text.encode(), source="the policy in force")
    sensitivity, _, integrity = body.context.partition("/")
    context = Label(Sensitivity[sensitivity], Integrity[integrity])
    facts = CallFacts(context=context, handles={}, named=dict.fromkeys(named_in(body.words, policy), "user"))
    return dict(story_of_call(policy, body.tool, body.arguments, facts).to_dict())


state_router = APIRouter(tags=["state"])


@state_router.get("/state", summary="What runs here, and whether it answers")
async def state(_: Lead, web: Parts) -> dict[str, Any]:
    parts: dict[str, str] = {"gateway": "ok", "agent": "ok"}
    agent: dict[str, str] = {}
    try:
        parts |= await web.gateway.readiness()
    except UnavailableError as error:
        parts["gateway"] = str(error)
    try:
        agent = await web.agent.about()
    except UnavailableError as error:
        parts["agent"] = str(error)
    return {
        "parts": parts,
        "versions": {"page": __version__, "agent": agent.get("version")},
        "model": agent.get("model"),
        "workspaces": web.workspaces,
        "keep_days": web.record.keep_days,
    }


tools_router = APIRouter(prefix="/tools", tags=["tools"])


@tools_router.get("", summary="The tools that only read, with what each takes")
async def list_all(sign_in: Analyst, web: Parts) -> dict[str, Any]:
    found = await web.gateway.ask(await web.key_of(sign_in.account, Scope.USER), "GET", "/v1/look")
    told = ("name", "description", "parameters")
    return {"tools": [{name: tool[name] for name in told} for tool in found["tools"]]}


@tools_router.post("/{tool}", summary="Read with a tool, in a session that is yours alone", response_model=Looked)
async def use(tool: Annotated[str, Path(pattern=TOOL_NAME)], body: Look, sign_in: Analyst, web: Parts) -> Any:
    account = sign_in.account
    return await web.looks.look(account, await web.key_of(account, Scope.USER), tool, body.arguments)
