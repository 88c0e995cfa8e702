"""The routes through which people see and decide approvals, with a key that has the scope `approve`.

An agent's key has no business here: nothing that is said in a conversation is ever read as an answer. Whoever may not
decide an approval sees that it waits and not its arguments. The webhook's answers come in through `callback`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.json_values import canonical_json
from sentinel_rag.gateway.admission import Authenticator, Refusal, read_json_body
from sentinel_rag.gateway.approvals.approval import Approval, ApprovalState, Decider, DecisionRefused, Verdict
from sentinel_rag.gateway.approvals.binding import DecidedBy
from sentinel_rag.gateway.approvals.store import ApprovalStore
from sentinel_rag.gateway.client_waits import unless_gone
from sentinel_rag.gateway.limits import Limits
from sentinel_rag.gateway.policy import Policies
from sentinel_rag.gateway.request_body import MalformedBody, parse_object
from sentinel_rag.gateway.responses import json_response, problem
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
"""Runs a call that was approved, where it runs at the yes; see `gate.at_yes`."""


def approval_routes(
    store: ApprovalStore, authenticator: Authenticator, policies: Policies, limits: Limits, run: Run
) -> list[Route]:
    """`GET /v1/approvals`, `GET /v1/approvals/{approval_id}` and `POST` to its `approve` and `deny`."""
    desk = _Desk(store, authenticator, policies, limits, run)
    one = "/v1/approvals/{approval_id}"
    return [
        Route("/v1/approvals", desk.list, methods=["GET"]),
        Route(one, desk.show, methods=["GET"]),
        Route(f"{one}/approve", desk.decision(Verdict.APPROVE), methods=["POST"]),
        Route(f"{one}/deny", desk.decision(Verdict.DENY), methods=["POST"]),
    ]


class _Desk:
    """The routes as methods, so that each sees the parts it needs."""

    def __init__(
        self, store: ApprovalStore, authenticator: Authenticator, policies: Policies, limits: Limits, run: Run
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

    def decision(self, verdict: Verdict) -> Handler:
        async def decide(request: Request) -> Response:
            decider, asker = await self._admit(request)
            comment = comment_of(await _optional_body(request, self._limits), ("comment",))
            found = None if asker is None else await self._store.find(request.path_params["approval_id"])
            if asker is not None and (found is None or not _is_theirs(found, asker)):
                return problem(Reason.NOT_FOUND, "There is no such approval.")
            try:
                approval = await self._store.decide(
                    request.path_params["approval_id"], verdict, decider, comment=comment
                )
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
        asker = None if Scope.APPROVE in principal.scopes else principal.key_id
        return Decider(principal.key_id, principal.name), asker


def _is_theirs(approval: Approval, asker: str | None) -> bool:
    """Whether a caller may see the approval at all: a person without the scope `approve` sees their own to confirm."""
    return asker is None or (approval.person == asker and approval.question.decided_by is DecidedBy.ASKER)


def shown_to(decider: Decider, approval: Approval, pending_by_tool: Mapping[str, int]) -> dict[str, Any]:
    """The approval as `decider` may see it: `may_decide`, and the arguments, with all that tells of them, only for
    those who could decide it or who asked. `more_of_tool` counts the other pending approvals of the same tool."""
    own = decider.key_id in (approval.binding.key_id, approval.person)
    named = decider.is_one_of(approval.question.approvers)
    pending = approval.state is ApprovalState.PENDING
    by_asker = approval.question.decided_by is DecidedBy.ASKER and approval.person is not None
    shown = approval.to_dict()
    confirms = by_asker and decider.key_id == approval.person
    shown["may_decide"] = pending and (confirms or (named and not own))
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
        raise Refusal(problem(Reason.MALFORMED_BODY, f"The body may hold {', '.join(fields)} and nothing else."))
    comment = body.get("comment", "")
    if not isinstance(comment, str) or len(comment) > MAX_COMMENT:
        detail = f"comment must be a text of at most {MAX_COMMENT} characters."
        raise Refusal(problem(Reason.INVALID_ARGUMENT, detail))
    return comment


async def _optional_body(request: Request, limits: Limits) -> Mapping[str, Any]:
    """The body of a decision; none at all is an empty one. Raises Refusal."""
    if "content-type" not in request.headers and request.headers.get("content-length", "0") == "0":
        return {}
    return object_of(await read_json_body(request, limits))


def object_of(body: bytes) -> Mapping[str, Any]:
    """The JSON object that `body` is; nothing is an empty one. Raises Refusal."""
    try:
        return parse_object(body) if body else {}
    except MalformedBody as fault:
        raise Refusal(problem(Reason.MALFORMED_BODY, f"The request was refused: {fault}.")) from None
