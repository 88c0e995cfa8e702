"""From an HTTP request to a principal and a body, or the refusal that answers instead.

Refusals for want of a key are on record, without the key, and a flood of them with its count.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from sentinel_rag.audit import AuthenticationFailed, Journal
from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.interceptor.limits import Limits
from sentinel_rag.interceptor.record_budget import RecordBudget
from sentinel_rag.interceptor.responses import problem
from sentinel_rag.interceptor.store import KeyRing, Principal, Scope

KEY_HEADER = "x-api-key"


class Refusal(Exception):
    """The request ends here, with this response."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status_code)
        self.response = response


class Doorkeeper:
    """Asks each request for its key."""

    def __init__(self, keys: KeyRing, journal: Journal, new_id: Callable[[], str], budget: RecordBudget) -> None:
        self._keys = keys
        self._budget = budget
        self._journal = journal
        self._new_id = new_id

    async def admit(self, request: Request, *scopes: Scope) -> Principal:
        """The principal of a request that has one live key with one of the scopes. Raises Refusal."""
        headers = request.headers.getlist(KEY_HEADER)
        header = headers[0] if len(headers) == 1 else None
        principal = self._keys.verify(header)
        if principal is None:
            raise await self._refusal(request, Reason.UNAUTHENTICATED, self._keys.known_id(header))
        if principal.scopes.isdisjoint(scopes):
            raise await self._refusal(request, Reason.MISSING_SCOPE, principal.key_id, scopes[0])
        return principal

    async def _refusal(
        self, request: Request, reason: Reason, key_id: str | None, scope: Scope | None = None
    ) -> Refusal:
        audit_id: str | None = None
        missed = self._budget.take()
        if missed is not None:
            audit_id = self._new_id()
            await self._journal.append(
                AuthenticationFailed(
                    audit_id=audit_id,
                    key_id=key_id,
                    route=getattr(request.scope.get("route"), "path", ""),
                    method=request.method,
                    client=request.client.host if request.client else "",
                    reason=reason,
                    not_recorded=missed,
                )
            )
        detail = f"This key lacks the scope {scope.value!r}." if scope else "A valid X-API-Key header is required."
        return Refusal(problem(reason, detail, audit_id=audit_id))


async def read_json_body(request: Request, limits: Limits) -> bytes:
    """The body of a JSON request, within the limits. Raises Refusal."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json" or request.headers.get("content-encoding", "identity") != "identity":
        detail = "Send the body as application/json without Content-Encoding."
        raise Refusal(problem(Reason.UNSUPPORTED_MEDIA_TYPE, detail))
    too_large = problem(Reason.TOO_LARGE, f"The body may have at most {limits.body_bytes} bytes.")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > limits.body_bytes:
        raise Refusal(too_large)
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limits.body_bytes:
                    raise Refusal(too_large)
    except TimeoutError:
        raise Refusal(problem(Reason.MALFORMED_BODY, "The body did not arrive in time.", status=408)) from None
    return bytes(body)
