"""Calls that wait for a person, seen and decided with that person's own key at the gateway.

Whose conversation asked does not decide, but where the rule lets the asker confirm: the gateway sees to it, shows
whoever may not approve their own confirmations alone, and this surface says so beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

import anyio.to_thread
from fastapi import APIRouter, Path, Query, Request

from sentinel_rag.gateway.admission import unless_gone
from sentinel_rag.gateway.store import Scope
from sentinel_rag.surfaces.users import OWNER, SignIn
from sentinel_rag.surfaces.web._parts import Decider, Parts, Web
from sentinel_rag.surfaces.web._problems import RequestProblem
from sentinel_rag.surfaces.web.models import ApprovalDecision

router = APIRouter(prefix="/approvals", tags=["approvals"])

ApprovalId = Annotated[str, Path(pattern=r"^[A-Za-z0-9-]{1,64}$")]


@router.get("", summary="Calls that wait, or that were decided; with the mark of an answer, once something has changed")
async def list_all(
    sign_in: Decider,
    web: Parts,
    request: Request,
    state: Literal["pending", "approved", "denied", "used", "expired"] | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 100,
    mark: Annotated[
        str | None, Query(pattern=r"^[0-9a-f]{16}$", description="Of an earlier answer: wait for another, up to 4 s.")
    ] = None,
) -> dict[str, Any]:
    given = {"limit": limit, "state": state, "mark": mark}
    return await unless_gone(request, list_for(web, sign_in, given)) or {}  # nothing is for nobody


async def list_for(web: Web, sign_in: SignIn, given: Mapping[str, Any]) -> dict[str, Any]:
    """A page of the approvals that the gateway shows this person."""
    query = urlencode({name: value for name, value in given.items() if value is not None})
    page = await web.gateway.ask(await web.key_of(sign_in.account, Scope.APPROVE), "GET", f"/v1/approvals?{query}")
    return {**page, "approvals": await _told(web, sign_in, page["approvals"])}


@router.get("/{approval_id}", summary="One call that waits, with the story of its labels")
async def show(approval_id: ApprovalId, sign_in: Decider, web: Parts) -> dict[str, Any]:
    found = await web.gateway.ask(await web.key_of(sign_in.account, Scope.APPROVE), "GET", _path(approval_id))
    return (await _told(web, sign_in, [found]))[0]


@router.post("/{approval_id}/decision", summary="Approve or deny, once, or take a denial back")
async def decide(approval_id: ApprovalId, body: ApprovalDecision, sign_in: Decider, web: Parts) -> dict[str, Any]:
    key = await web.key_of(sign_in.account, Scope.APPROVE)
    [waiting] = await _told(web, sign_in, [await web.gateway.ask(key, "GET", _path(approval_id))])
    # The gateway refuses a decider's own key; a person whose key was made anew is still the one who asked.
    if waiting["own"]:
        raise RequestProblem(
            403,
            "own_approval",
            "You asked for this yourself, so another person decides it."
            if waiting["reader"]
            else "The agent asked this for you, so another person decides it.",
            "Ask somebody with the role approver; alone on this machine: sentinel approvals approve ID",
        )
    decided = await web.gateway.ask(key, "POST", f"{_path(approval_id)}/{body.decision}", {"comment": body.comment})
    return (await _told(web, sign_in, [decided]))[0]


def _path(approval_id: str) -> str:
    return f"/v1/approvals/{quote(approval_id, safe='')}"


async def _told(web: Web, sign_in: SignIn, approvals: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The approvals, each with `reader`, the person who asked with their own key and without the agent, or null, in
    `decision` the `name` of who decided, as far as it is known here, and `own`: whether this person asked so, or their
    own conversation did, so that another decides. Where the rule lets the asker confirm, that is as the gateway
    says."""
    sessions = [str(each["session_id"]) for each in approvals]
    owners = await anyio.to_thread.run_sync(partial(web.record.owners, sessions)) | web.looks.owners(sessions)
    names = await web.names()
    account = sign_in.account
    told: list[dict[str, Any]] = []
    for each in approvals:
        reader = names.get(str(each["key_id"]))
        asked = owners.get(str(each["session_id"])) == account.user_id or reader == account.name
        own = asked and account.user_id != OWNER and each["decided_by"] != "asker"
        ruling = each["decision"]
        if ruling is not None:
            ruling = {**ruling, "name": ruling["actor"] or names.get(str(ruling["by"]), "")}
        may = {name: each[name] and not own for name in ("may_decide", "may_lift")}
        told.append({**each, **may, "reader": reader, "own": own, "decision": ruling})
    return told
