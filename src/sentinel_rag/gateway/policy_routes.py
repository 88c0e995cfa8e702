"""The routes about the policy itself, for people and CI with an admin key: what is in force, and load the file now."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.gateway.admission import Authenticator
from sentinel_rag.gateway.policy import Policies
from sentinel_rag.gateway.policy.book import PolicyBook, Refused
from sentinel_rag.gateway.responses import json_response, problem_body
from sentinel_rag.gateway.store import Scope


def policy_routes(policies: Policies, authenticator: Authenticator) -> list[Route]:
    """`GET /v1/policy` and `POST /v1/policy/reload`, both for the scope `admin`. Fixed policies are never reloaded."""

    async def show(request: Request) -> Response:
        await authenticator.admit(request, Scope.ADMIN)
        text = policies.text if isinstance(policies, PolicyBook) else None
        return json_response({**_state(policies), "text": text})

    async def reload(request: Request) -> Response:
        principal = await authenticator.admit(request, Scope.ADMIN)
        if not isinstance(policies, PolicyBook):
            return json_response({"status": "unchanged", **_state(policies)})
        done = await policies.reload(principal.key_id)
        if done.refused is not None:
            detail = "The policy file was not loaded; the last good policy stays in force."
            return json_response({**problem_body(Reason.INVALID_ARGUMENT, detail), **_state(policies)}, 422)
        return json_response({"status": "loaded" if done.changed else "unchanged", **_state(policies)})

    return [
        Route("/v1/policy", show, methods=["GET"]),
        Route("/v1/policy/reload", reload, methods=["POST"]),
    ]


def _state(policies: Policies) -> dict[str, Any]:
    book = policies if isinstance(policies, PolicyBook) else None
    refused = None if book is None else book.refused
    return {
        "policy": policies.current.sha256,
        "source": policies.current.source,
        "loaded_at": None if book is None else format_time(book.loaded_at),
        "refused": None if refused is None else _refused(refused),
    }


def _refused(refused: Refused) -> dict[str, Any]:
    return {"sha256": refused.sha256, "problems": list(refused.problems), "at": format_time(refused.at)}
