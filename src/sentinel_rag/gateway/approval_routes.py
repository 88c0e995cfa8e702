"""Where people decide: the routes for keys with the scope `approve`, and the webhook's answers.

An agent's key has no business here: nothing that is said in a conversation is ever read as an answer. Whoever may not
decide an approval sees that it waits and not its arguments. The webhook's receiver decides only if the operator lets
it, with the shared secret and the token of the notice; `actor` is its word for who decided, and is recorded as that.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sentinel_rag.contracts.json_values import canonical_json
from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.admission import Authenticator, GatewayLimits, json_object, read_json_body, unless_gone
from sentinel_rag.gateway.approval_webhook import DECISION, SIGNATURE_HEADER, Notifier, Webhook, is_signed
from sentinel_rag.gateway.approvals.approval import (
    WEBHOOK,
    Approval,
    ApprovalState,
    ApprovalVerdict,
    Decider,
    DecisionRefused,
)
from sentinel_rag.gateway.approvals.binding import DecidedBy
from sentinel_rag.gateway.approvals.store import ApprovalStore
from sentinel_rag.gateway.policy import Policies
from sentinel_rag.gateway.responses import Refusals, RefusedRequest, json_response, problem
from sentinel_rag.gateway.store import Scope

MAX_COMMENT = 2_000
MAX_LISTED = 200
DEFAULT_LISTED = 100
MAX_LISTED_BYTES = 16_384
LONGEST_WAIT_S = 4.0
"""Shorter than the time that a server gives its requests when it stops."""

_MARK = re.compile("[0-9a-f]{16}")

Handler = Callable[[Request], Awaitable[Response]]


Run = Callable[[Approval], Awaitable[Approval]]
"""Runs a call that was approved, where it runs at the yes; see `gate.AtYes`."""


def approval_routes(
    store: ApprovalStore, authenticator: Authenticator, policies: Policies, limits: GatewayLimits, run: Run
) -> list[Route]:
    """`GET /v1/approvals`, `GET /v1/approvals/{approval_id}` and `POST` to its `approve`, `deny` and `lift`."""
    routes = _ApprovalRoutes(store, authenticator, policies, limits, run)
    one = "/v1/approvals/{approval_id}"
    return [
        Route("/v1/approvals", routes.list, methods=["GET"]),
        Route(one, routes.show, methods=["GET"]),
        Route(f"{one}/approve", routes.decision(ApprovalVerdict.APPROVE), methods=["POST"]),
        Route(f"{one}/deny", routes.decision(ApprovalVerdict.DENY), methods=["POST"]),
        Route(f"{one}/lift", routes.decision(None), methods=["POST"]),
    ]


class _ApprovalRoutes:
    """The routes as methods, so that each sees the parts it needs."""

    def __init__(
        self, store: ApprovalStore, authenticator: Authenticator, policies: Policies, limits: GatewayLimits, run: Run
    ) -> None:
        self._run = run
        self._store = store
        self._authenticator = authenticator
        self._policies = policies
        self._limits = limits

    async def list(self, request: Request) -> Response:
        decider, asker = await self._admit(request)
        state = request.query_params.get("state", "")
        if state and state not in set(ApprovalState):
            allowed = ", ".join(ApprovalState)
            return problem(Reason.INVALID_ARGUMENT, f"state must be one of {allowed}, or be left out for all.")
        limit = request.query_params.get("limit", str(DEFAULT_LISTED))
        if not (limit.isascii() and limit.isdecimal() and len(limit) < 5 and 1 <= int(limit) <= MAX_LISTED):
            return problem(Reason.INVALID_ARGUMENT, f"limit must be a whole number from 1 to {MAX_LISTED}.")
        mark = request.query_params.get("mark", "")
        if mark and not _MARK.fullmatch(mark):
            return problem(Reason.INVALID_ARGUMENT, "mark must be that of an earlier answer.")
        if mark:
            await unless_gone(request, self._store.wait_for_change(mark, LONGEST_WAIT_S))
        page = await self._store.page(ApprovalState(state) if state else None, int(limit), asker)
        return json_response(
            {
                "approvals": [_in_short(self._shown(decider, each, page.pending_by_tool)) for each in page.approvals],
                "left_off": page.left_off,
                "pending_by_tool": page.pending_by_tool,
                "mark": page.mark,
            }
        )

    async def show(self, request: Request) -> Response:
        decider, asker = await self._admit(request)
        approval = await self._store.find(request.path_params["approval_id"])
        if approval is None or not _is_theirs(approval, asker):
            return problem(Reason.NOT_FOUND, "There is no such approval.")
        page = await self._store.page(ApprovalState.PENDING, 1)
        return json_response(self._shown(decider, approval, page.pending_by_tool))

    def decision(self, verdict: ApprovalVerdict | None) -> Handler:
        """The route that takes a verdict; None takes a no back."""

        async def decide(request: Request) -> Response:
            decider, asker = await self._admit(request)
            comment = comment_of(await _optional_body(request, self._limits), ("comment",))
            approval_id = request.path_params["approval_id"]
            found = None if asker is None else await self._store.find(approval_id)
            if asker is not None and (found is None or not _is_theirs(found, asker)):
                return problem(Reason.NOT_FOUND, "There is no such approval.")
            try:
                if verdict is None:
                    lifted = await self._store.lift(approval_id, decider, comment=comment)
                    return json_response(self._shown(decider, lifted, {}))
                approval = await self._store.decide(approval_id, verdict, decider, comment=comment)
            except DecisionRefused as refused:
                return refusal(refused)
            return json_response(self._shown(decider, await self._run(approval), {}))

        return decide

    def _shown(self, decider: Decider, approval: Approval, pending_by_tool: Mapping[str, int]) -> dict[str, Any]:
        # A call under another policy has another binding: a yes to this question would let nothing run.
        outdated = approval.binding.policy_sha256 != self._policies.current.sha256
        return {**shown_to(decider, approval, pending_by_tool), "outdated": outdated}

    async def _admit(self, request: Request) -> tuple[Decider, str | None]:
        """Who decides; and the key of a person who may do no more than confirm what was asked for them."""
        principal = await self._authenticator.admit(request, Scope.APPROVE, Scope.USER)
        only_own = Scope.APPROVE not in principal.scopes
        decider = Decider(principal.key_id, principal.name, only_own=only_own)
        return decider, principal.key_id if only_own else None


def _is_theirs(approval: Approval, asker: str | None) -> bool:
    """Whether a caller may see the approval at all: a person without the scope `approve` sees their own to confirm."""
    return asker is None or (approval.person == asker and approval.question.decided_by is DecidedBy.ASKER)


def shown_to(decider: Decider, approval: Approval, pending_by_tool: Mapping[str, int]) -> dict[str, Any]:
    """The approval as `decider` may see it: `may_decide`, `may_lift`, and the arguments, with all that tells of them,
    only for those who could decide it or who asked. `more_of_tool` counts the other pending approvals of the same
    tool."""
    own = decider.key_id in (approval.binding.key_id, approval.person)
    named = decider.is_one_of(approval.question.approvers)
    pending = approval.state is ApprovalState.PENDING
    by_asker = approval.question.decided_by is DecidedBy.ASKER and approval.person is not None
    shown = approval.to_dict()
    confirms = by_asker and decider.key_id == approval.person
    theirs = confirms or (named and not own)
    shown["may_decide"] = pending and theirs
    shown["may_lift"] = approval.state is ApprovalState.DENIED and theirs
    shown["arguments_withheld"] = not (named or own)
    if shown["arguments_withheld"]:
        shown |= {"arguments": None, "subject": None, "title": f"The agent wants to use {approval.binding.tool}"}
    shown["more_of_tool"] = max(0, pending_by_tool.get(approval.binding.tool, 0) - pending)
    return shown


def _in_short(shown: dict[str, Any]) -> dict[str, Any]:
    """For a list: arguments of more than `MAX_LISTED_BYTES` are left out with what they would change, and
    `arguments_left_out` says so."""
    told = {name: shown[name] for name in ("arguments", "subject")}
    shown["arguments_left_out"] = len(canonical_json(told)) > MAX_LISTED_BYTES
    if shown["arguments_left_out"]:
        shown |= dict.fromkeys(told)
    return shown


def refusal(refused: DecisionRefused) -> Response:
    """The answer to a verdict that was not taken."""
    detail = f"{refused} {refused.next_step}".strip()
    return problem(refused.reason, detail)


def comment_of(body: Mapping[str, Any], fields: tuple[str, ...]) -> str:
    """The comment in a body that may have `fields` and nothing else. Raises Refusal."""
    if set(body) - set(fields):
        raise RefusedRequest(problem(Reason.MALFORMED_BODY, f"The body may hold {', '.join(fields)} and nothing else."))
    comment = body.get("comment", "")
    if not isinstance(comment, str) or len(comment) > MAX_COMMENT:
        detail = f"comment must be a text of at most {MAX_COMMENT} characters."
        raise RefusedRequest(problem(Reason.INVALID_ARGUMENT, detail))
    return comment


async def _optional_body(request: Request, limits: GatewayLimits) -> Mapping[str, Any]:
    """The body of a decision; none at all is an empty one. Raises Refusal."""
    if "content-type" not in request.headers and request.headers.get("content-length", "0") == "0":
        return {}
    content = await read_json_body(request, limits)
    return json_object(content) if content else {}


MAX_BODY_BYTES = 16_384
MAX_ACTOR = 200
FIELDS = ("approval_id", "decision", "token", "actor", "comment")
VERDICTS = {"approve": ApprovalVerdict.APPROVE, "deny": ApprovalVerdict.DENY}


class Callback:
    """Takes signed decisions for `store`."""

    def __init__(
        self,
        store: ApprovalStore,
        webhook: Webhook,
        *,
        refusals: Refusals,
        limits: GatewayLimits,
        clock: Clock,
        run: Run,
    ) -> None:
        self._run = run
        self._store = store
        self._webhook = webhook
        self._refusals = refusals
        self._limits = replace(limits, body_bytes=min(limits.body_bytes, MAX_BODY_BYTES))
        self._clock = clock

    def route(self) -> Route:
        return Route("/v1/approvals/{approval_id}/decision", self._decide, methods=["POST"])

    async def _decide(self, request: Request) -> Response:
        content = await read_json_body(request, self._limits)
        headers = request.headers.getlist(SIGNATURE_HEADER)
        header = headers[0] if len(headers) == 1 else ""
        if not is_signed(self._webhook.secret, DECISION, content, header, self._clock()):
            detail = f"A valid {SIGNATURE_HEADER} header is required."
            return (await self._refusals.no_signature(request, detail)).response
        body = json_object(content) if content else {}
        comment = comment_of(body, FIELDS)
        verdict = VERDICTS.get(_text(body, "decision"))
        if verdict is None:
            return problem(Reason.INVALID_ARGUMENT, f"decision must be {' or '.join(VERDICTS)}.")
        approval_id = request.path_params["approval_id"]
        if _text(body, "approval_id") != approval_id:
            return problem(Reason.INVALID_ARGUMENT, "approval_id must be the one of the path.")
        actor = _text(body, "actor")
        if len(actor) > MAX_ACTOR:
            return problem(Reason.INVALID_ARGUMENT, f"actor must be a text of at most {MAX_ACTOR} characters.")
        decider = Decider(WEBHOOK, via=WEBHOOK, actor=actor)
        try:
            decided = await self._store.decide(
                approval_id, verdict, decider, comment=comment, token=_text(body, "token")
            )
        except DecisionRefused as refused:
            return refusal(refused)
        ended = await self._run(decided)
        return json_response({"approval_id": approval_id, "state": ended.state.value})


def _text(body: Any, name: str) -> str:
    """The text of a field, empty if it is left out. Raises Refusal for another type."""
    value = body.get(name, "")
    if not isinstance(value, str):
        raise RefusedRequest(problem(Reason.INVALID_ARGUMENT, f"{name} must be a text."))
    return value


def served_routes(
    store: ApprovalStore,
    webhook: Webhook | None,
    *,
    authenticator: Authenticator,
    refusals: Refusals,
    policies: Policies,
    limits: GatewayLimits,
    run: Run,
) -> list[Route]:
    """The routes of approvals; the signed one only if the webhook's receiver may decide. `run` runs what was approved,
    where it runs at the yes."""
    routes = approval_routes(store, authenticator, policies, limits, run)
    if webhook is not None and webhook.decides:
        signed = Callback(store, webhook, refusals=refusals, limits=limits, clock=utc_now, run=run)
        routes.append(signed.route())
    return routes


@asynccontextmanager
async def notifying(store: ApprovalStore, webhook: Webhook | None) -> AsyncIterator[None]:
    """Tell the webhook's receiver of questions for as long as the block runs."""
    async with anyio.create_task_group() as background:
        if webhook is not None:
            background.start_soon(Notifier(store, webhook).run)
        yield
        background.cancel_scope.cancel()
