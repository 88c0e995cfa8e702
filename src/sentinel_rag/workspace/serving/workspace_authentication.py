"""Who may ask the workspace, and how its answers travel: the part that all endpoints of the wire share.

The checks come in the service's order: a token, one issued here and for this audience, then a workspace that exists.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from typing import Any

import msgspec
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from sentinel_rag.workspace.serving import query_answers as answers
from sentinel_rag.workspace.serving.identity import LOG_ANALYTICS_AUDIENCES, TokenIssuer, TokenVerdict, bearer_token

_COMPRESS_FROM_BYTES = 1400


class WorkspaceAuthentication:
    """Lets in whoever holds a token of `issuer` and asks for the workspace with the GUID `workspace_id`."""

    def __init__(self, issuer: TokenIssuer, workspace_id: str) -> None:
        self._issuer = issuer
        self.workspace_id = workspace_id.lower()

    def refusal(self, request: Request, correlation_id: str) -> tuple[int, bytes] | None:
        """Status and body for a request that must not pass, None for one that may; a path that names no workspace is
        judged by its token alone."""
        token = bearer_token(request)
        if token is None:
            message = "Authentication failed. The 'Authorization' header is missing."
            return encoded(401, answers.plain_error("AuthenticationFailed", message, correlation_id))
        verdict = self._issuer.judge(token, LOG_ANALYTICS_AUDIENCES)
        if verdict is TokenVerdict.UNKNOWN:
            message = "The provided authentication is not valid for this resource."
            return encoded(403, answers.plain_error("InvalidAuthenticationToken", message, correlation_id))
        if verdict is TokenVerdict.WRONG_AUDIENCE:
            message = "The token was issued for another audience."
            return encoded(403, answers.plain_error("InvalidAuthenticationTokenAudience", message, correlation_id))
        guid = request.path_params.get("workspace_id")
        if guid is not None and guid.lower() != self.workspace_id:
            return encoded(400, answers.unknown_workspace(correlation_id))
        resource = request.path_params.get("resource_id")
        if resource is not None and not _names_workspace(resource):
            return encoded(404, answers.unknown_path(correlation_id))
        return None


async def wire_response(
    request: Request, status: int, body: bytes, correlation_id: str, headers: Mapping[str, str] | None = None
) -> Response:
    """The response with the service's headers, compressed if the client takes gzip and it is worth it."""
    sent = {"x-ms-request-id": correlation_id, "cache-control": "no-store", **(headers or {})}
    if status == 401:
        sent["www-authenticate"] = "Bearer"
    wants_gzip = "gzip" in request.headers.get("accept-encoding", "")
    if wants_gzip and len(body) >= _COMPRESS_FROM_BYTES:
        body = await to_thread.run_sync(gzip.compress, body, 1)
        sent |= {"content-encoding": "gzip", "vary": "Accept-Encoding"}
    return Response(body, status, sent, media_type="application/json; charset=utf-8")


def encoded(status: int, body: Mapping[str, Any]) -> tuple[int, bytes]:
    """Status and JSON text of an answer."""
    return status, msgspec.json.encode(body)


def _names_workspace(resource_id: str) -> bool:
    parts = [part.lower() for part in resource_id.strip("/").split("/")]
    return parts[:1] == ["subscriptions"] and parts[-3:-1] == ["microsoft.operationalinsights", "workspaces"]
