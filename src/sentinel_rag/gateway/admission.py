"""From an HTTP request to a principal and a body, or the refusal that answers instead."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.servers import bearer_token
from sentinel_rag.gateway.limits import GatewayLimits, RateLimiter
from sentinel_rag.gateway.policy.model import Rate
from sentinel_rag.gateway.request_body import MalformedBody, parse_object
from sentinel_rag.gateway.responses import KEY_ID, Refusals, RefusedRequest, Unread, problem
from sentinel_rag.gateway.store import KeyJournal, KeyRing, KeyState, Principal, RefusedKey, Scope

Body = TypeVar("Body", bound=msgspec.Struct)

KEY_HEADER = "x-api-key"
UNCOUNTED = "sentinel.uncounted"
"""Where admission leaves the principal of a request that somebody else counts, in its scope."""

_WANTED = "A valid X-API-Key header is required."

_SENTENCES = {
    KeyState.EXPIRED: "This key has expired; rotating does not bring it back, a new one is needed.",
    KeyState.REVOKED: "This key was revoked.",
    KeyState.SUPERSEDED: "This key was rotated; use its new text.",
}
"""Said only to somebody who holds the secret; everybody else learns nothing about which keys there are."""


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Asks each request for its key, and how often that key has asked already."""

    keys: KeyRing
    refusals: Refusals
    rates: RateLimiter
    key_journal: KeyJournal

    async def admit(self, request: Request, *scopes: Scope, counts: bool = True, bearer: bool = False) -> Principal:
        """The principal of a request that has one live key with one of the scopes and room in its rate. Raises Refusal.

        With `counts=False` the request is only let through where there is room, and the gate counts it, or `count`, or
        `answer` where neither comes to see it. With `bearer` the key may come as a bearer token instead, as clients of
        MCP send it; two keys are none.
        """
        headers = request.headers.getlist(KEY_HEADER)
        if bearer:
            headers += [bearer_token(text).strip() for text in request.headers.getlist("authorization")]
        principal = self.keys.check(headers[0] if len(headers) == 1 else None)
        await self.key_journal.catch_up()  # a change of a key is on record before the first use that shows it
        if isinstance(principal, RefusedKey):
            wanted = "A valid key is required, as a bearer token or in X-API-Key." if bearer else _WANTED
            detail = _SENTENCES.get(principal.state, wanted)
            raise await self.refusals.no_entry(request, principal, detail)
        request.scope[KEY_ID] = principal.key_id
        if principal.scopes.isdisjoint(scopes):
            raise await self.refusals.no_scope(request, principal.key_id, scopes[0])
        self._within_rate(self.rates.take if counts else self.rates.wait, principal)
        if not counts:
            request.scope[UNCOUNTED] = principal
        return principal

    def count(self, request: Request, principal: Principal) -> None:
        """Count a request that was admitted with `counts=False` and does not reach the gate. Raises Refusal."""
        request.scope.pop(UNCOUNTED, None)
        self._within_rate(self.rates.take, principal)

    def _count_unread(self, request: Request) -> None:
        """Count a request that ends before anybody has counted it; one that has no room in its rate counts for
        nothing, as everywhere."""
        principal = request.scope.pop(UNCOUNTED, None)
        if principal is not None:
            self.rates.take(principal.key_id, principal.rate)

    async def answer(self, request: Request, refusal: Exception) -> Response:
        """The answer to a refusal. One of a request that was not read is on record only now, and counts for its key."""
        assert isinstance(refusal, RefusedRequest)
        if not isinstance(refusal, Unread):
            return refusal.response
        self._count_unread(request)
        return await self.refusals.unread(request, refusal)

    def _within_rate(self, ask: Callable[[str, Rate | None], float | None], principal: Principal) -> None:
        wait = ask(principal.key_id, principal.rate)
        if wait is not None:
            detail = "This key has asked as often as its rate allows."
            raise Unread(Reason.RATE_LIMITED, detail, retry_after_s=max(1, math.ceil(wait)))


async def read_json_body(request: Request, limits: GatewayLimits) -> bytes:
    """The body of a JSON request, within the limits. Raises Refusal."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json" or request.headers.get("content-encoding", "identity") != "identity":
        raise Unread(Reason.UNSUPPORTED_MEDIA_TYPE, "Send the body as application/json without Content-Encoding.")
    too_large = f"The body may have at most {limits.body_bytes} bytes."
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > limits.body_bytes:
        raise Unread(Reason.TOO_LARGE, too_large)
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            more = True
            while more:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise Unread(Reason.MALFORMED_BODY, "The connection ended before the body did.", status=400)
                body += message.get("body", b"")
                if len(body) > limits.body_bytes:
                    raise Unread(Reason.TOO_LARGE, too_large)
                more = message.get("more_body", False)
    except TimeoutError:
        raise Unread(Reason.MALFORMED_BODY, "The body did not arrive in time.", status=408) from None
    return bytes(body)


def json_object(content: bytes) -> dict[str, Any]:
    """The JSON object that a body is. Raises Refusal."""
    try:
        return parse_object(content)
    except MalformedBody as fault:
        raise RefusedRequest(problem(Reason.MALFORMED_BODY, f"The request was refused: {fault}.")) from None


async def read_body(request: Request, limits: GatewayLimits, kind: type[Body]) -> Body:
    """The body of a JSON request as `kind`, a struct that forbids other fields. Raises Refusal."""
    document = json_object(await read_json_body(request, limits))
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError:
        detail = f"The body must hold {', '.join(kind.__struct_fields__)}, as the OpenAPI document has them."
        raise RefusedRequest(problem(Reason.MALFORMED_BODY, detail)) from None
