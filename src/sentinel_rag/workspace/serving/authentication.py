"""Who may talk to the loopback server: local hosts, tokens of its managed identity, a workspace that exists."""

from __future__ import annotations

import gzip
import hashlib
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from sentinel_rag.contracts.servers import RequestAuthenticator, bearer_token, same_secret
from sentinel_rag.workspace.serving import query_answers as answers

MAX_BODY_BYTES = 1 << 20


class BodyTooLargeError(Exception):
    """The request body is over `MAX_BODY_BYTES`."""


_THIS_MACHINE = RequestAuthenticator()


class LocalRequests:
    """ASGI wrapper that answers 403 to everything that does not come from this machine by its own name."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _THIS_MACHINE.refused(scope["headers"]) is not None:
            refusal = JSONResponse(
                {"error": {"code": "HostNotAllowed", "message": "This server answers requests of this machine only."}},
                status_code=403,
            )
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)


async def read_body(request: Request) -> bytes:
    """The body, or BodyTooLargeError as soon as it is over the limit."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > MAX_BODY_BYTES:
        raise BodyTooLargeError
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise BodyTooLargeError
    return bytes(body)


# Speaks the App Service flavour that azure-identity looks for in IDENTITY_ENDPOINT and IDENTITY_HEADER, so that the
# credential code of the cloud runs unchanged on a laptop. A token is random, bound to one audience, and kept as a hash.
API_VERSION = "2019-08-01"
LOG_ANALYTICS_AUDIENCES = frozenset({"https://api.loganalytics.io", "https://api.loganalytics.azure.com"})
MANAGEMENT_AUDIENCES = frozenset({"https://management.azure.com", "https://management.core.windows.net"})
_LIFETIME_S = 24 * 3600
_MOST_TOKENS = 10_000


class TokenVerdict(Enum):
    """What a bearer token is worth for one audience."""

    VALID = "valid"
    UNKNOWN = "unknown"
    WRONG_AUDIENCE = "wrong audience"


@dataclass(frozen=True, slots=True)
class _Issued:
    audience: str
    expires_at: float


class TokenIssuer:
    """Issues and judges tokens. Confined to the event loop, so it needs no lock."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._issued: dict[bytes, _Issued] = {}

    def issue(self, audience: str) -> tuple[str, int]:
        """A new token for `audience` and the second (Unix time) at which it expires."""
        now = self._clock()
        if len(self._issued) >= _MOST_TOKENS:
            self._issued = {key: issued for key, issued in self._issued.items() if issued.expires_at > now}
        token = secrets.token_urlsafe(48)
        expires_at = int(now) + _LIFETIME_S
        self._issued[_digest(token)] = _Issued(audience.rstrip("/"), expires_at)
        return token, expires_at

    def judge(self, token: str, audiences: frozenset[str]) -> TokenVerdict:
        """Whether `token` was issued here, still lives, and is meant for one of `audiences`."""
        issued = self._issued.get(_digest(token))
        if issued is None or issued.expires_at <= self._clock():
            return TokenVerdict.UNKNOWN
        return TokenVerdict.VALID if issued.audience in audiences else TokenVerdict.WRONG_AUDIENCE


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


class IdentityEndpoint:
    """`GET /msi/token?api-version=2019-08-01&resource=...` with the secret X-IDENTITY-HEADER."""

    def __init__(self, issuer: TokenIssuer, identity_header: str) -> None:
        self._issuer = issuer
        self._identity_header = identity_header

    async def __call__(self, request: Request) -> Response:
        if not same_secret(request.headers.get("x-identity-header", ""), self._identity_header):
            return _refusal(401, "The X-IDENTITY-HEADER is missing or wrong.")
        if request.query_params.get("api-version") != API_VERSION:
            return _refusal(400, f"The api-version must be {API_VERSION}.")
        resource = request.query_params.get("resource", "")
        if not resource.startswith("https://"):
            return _refusal(400, "The resource is missing: it names the audience of the token.")
        token, expires_at = self._issuer.issue(resource)
        return JSONResponse(
            {"access_token": token, "expires_on": str(expires_at), "resource": resource, "token_type": "Bearer"},
            headers={"cache-control": "no-store"},
        )


def _refusal(status: int, message: str) -> Response:
    return JSONResponse({"statusCode": status, "message": message}, status_code=status)


# The checks come in the service's order: a token, one issued here and for this audience, then a workspace that exists.
_COMPRESS_FROM_BYTES = 1400


class WorkspaceAuthentication:
    """Lets in whoever holds a token of `issuer` and asks for the workspace with the GUID `workspace_id`."""

    def __init__(self, issuer: TokenIssuer, workspace_id: str) -> None:
        self._issuer = issuer
        self.workspace_id = workspace_id.lower()

    def refusal(self, request: Request, correlation_id: str) -> tuple[int, bytes] | None:
        """Status and body for a request that must not pass, None for one that may; a path that names no workspace is
        judged by its token alone."""
        token = bearer_token(request.headers.get("authorization", ""))
        if not token:
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
