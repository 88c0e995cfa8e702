"""The policy in force, read with the admin's own key, and why a call would be decided as it would.

Explaining makes no call: the text that the gateway gives is judged here, by the same functions.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio.to_thread
from fastapi import APIRouter

from sentinel_rag.contracts.labels import Integrity, Label, Sensitivity
from sentinel_rag.gateway.flow import Facts
from sentinel_rag.gateway.flow.named_values import named_in
from sentinel_rag.gateway.policy.loading import parse_policy_bytes
from sentinel_rag.gateway.policy_tools import story_of_call
from sentinel_rag.gateway.store import Scope
from sentinel_rag.surfaces.web._access import Admin, Parts
from sentinel_rag.surfaces.web._problems import Problem
from sentinel_rag.surfaces.web.models import Explain

router = APIRouter(prefix="/policy", tags=["policy"])


@router.get("", summary="The policy in force, with its text")
async def show(sign_in: Admin, web: Parts) -> Any:
    return await web.gateway.ask(await web.key_of(sign_in.account, Scope.ADMIN), "GET", "/v1/policy")


@router.post("/explain", summary="Why a call would be decided as it would")
async def explain(body: Explain, sign_in: Admin, web: Parts) -> dict[str, Any]:
    policy = await web.gateway.ask(await web.key_of(sign_in.account, Scope.ADMIN), "GET", "/v1/policy")
    if policy["text"] is None:
        raise Problem(409, "no_text", "The gateway does not give its policy's text.", "Use sentinel policy explain.")
    return await anyio.to_thread.run_sync(partial(_story, str(policy["text"]), body))


def _story(text: str, body: Explain) -> dict[str, Any]:
    policy = parse_policy_bytes(text.encode(), source="the policy in force")
    sensitivity, _, integrity = body.context.partition("/")
    context = Label(Sensitivity[sensitivity], Integrity[integrity])
    facts = Facts(context=context, handles={}, named=dict.fromkeys(named_in(body.words, policy), "user"))
    return dict(story_of_call(policy, body.tool, body.arguments, facts).to_dict())
