"""`POST /v1/approvals/{approval_id}/decision`: the webhook's receiver answers without an API key.

Served only if the operator lets the receiver decide. It takes the shared secret and the token of the notice: whoever
has one of both decides nothing. The decision is the receiver's (`webhook` in the policy's `approvers` and in the
record); `actor` is its word for who decided, and is recorded as that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.gateway.admission import read_json_body
from sentinel_rag.gateway.approval_routes.routes import Run, comment_of, object_of, refusal
from sentinel_rag.gateway.approval_routes.webhook import DECISION, SIGNATURE_HEADER, Webhook, is_signed
from sentinel_rag.gateway.approvals.approval import WEBHOOK, Decider, DecisionRefused, Verdict
from sentinel_rag.gateway.approvals.store import ApprovalStore
from sentinel_rag.gateway.limits import Limits
from sentinel_rag.gateway.refusals import Refusal, Refusals
from sentinel_rag.gateway.responses import json_response, problem

MAX_BODY_BYTES = 16_384
MAX_ACTOR = 200
FIELDS = ("approval_id", "decision", "token", "actor", "comment")
VERDICTS = {"approve": Verdict.APPROVE, "deny": Verdict.DENY}


class Callback:
    """Takes signed decisions for `store`."""

    def __init__(
        self,
        store: ApprovalStore,
        webhook: Webhook,
        *,
        refusals: Refusals,
        limits: Limits,
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
        body = object_of(content)
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
        raise Refusal(problem(Reason.INVALID_ARGUMENT, f"{name} must be a text."))
    return value
