"""The zone that holds the Azure credential for models: it hands out tokens for models, and for nothing else.

The agent may be hijacked, and a credential of Azure opens Sentinel too. So the agent's process gets an address and a
header instead, in the form of App Service's identity endpoint, and this process refuses every other resource.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sentinel_rag.app.model_access import IDENTITY_PATH
from sentinel_rag.contracts.loopback import is_own_host, is_own_origin

if TYPE_CHECKING:
    from azure.core.credentials_async import AsyncTokenCredential


def create_app(credential: AsyncTokenCredential, *, resource: str, header: str) -> Starlette:
    """Serves `GET /msi/token` for `resource` to who brings `header` in X-IDENTITY-HEADER."""

    async def token(request: Request) -> Response:
        if not is_own_host(request.headers.getlist("host")) or not is_own_origin(request.headers.getlist("origin")):
            return _refusal(403, "this address is for the agent of this machine")
        if not hmac.compare_digest(request.headers.get("x-identity-header", "").encode(), header.encode()):
            return _refusal(401, "the identity header is missing or wrong")
        if request.query_params.get("resource") != resource:
            return _refusal(400, "only tokens for models are handed out")
        try:
            found = await credential.get_token(f"{resource}/.default")
        except Exception:  # whatever a library of credentials raises; its text can hold tenant and client ids
            return _refusal(400, "no token could be had: sign in to Azure, or set a key")
        return JSONResponse(
            {
                "access_token": found.token,
                "expires_on": str(found.expires_on),
                "resource": resource,
                "token_type": "Bearer",
            },
            headers={"Cache-Control": "no-store"},
        )

    async def alive(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    return Starlette(routes=[Route(IDENTITY_PATH, token), Route("/healthz", alive)])


def _refusal(status: int, message: str) -> JSONResponse:
    return JSONResponse({"statusCode": status, "message": message}, status)
