"""The managed-identity endpoint, and the tokens that it gave out.

Speaks the App Service flavour that azure-identity looks for in IDENTITY_ENDPOINT and IDENTITY_HEADER, so that the
credential code of the cloud runs unchanged on a laptop. A token is random, bound to one audience, and kept as a hash.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

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


def bearer_token(request: Request) -> str | None:
    """The token of the Authorization header, or None where there is none of the Bearer scheme."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None


def same_secret(given: str, expected: str) -> bool:
    """Compare without telling by time where two secrets differ."""
    return hmac.compare_digest(given.encode(), expected.encode())


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
