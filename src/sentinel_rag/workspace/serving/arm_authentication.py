"""Who may use the REST API, for which workspace, and how often, in Azure Resource Manager's order, and its answers and
refusals in that service's form."""

from __future__ import annotations

import logging
import math
import re
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from sentinel_rag.contracts.errors import SentinelError, UnavailableError
from sentinel_rag.contracts.servers import bearer_token
from sentinel_rag.workspace.incidents.bodies import BodyError
from sentinel_rag.workspace.serving.authentication import (
    MANAGEMENT_AUDIENCES,
    BodyTooLargeError,
    TokenIssuer,
    TokenVerdict,
    read_body,
)


class ArmError(Exception):
    """A refusal: HTTP status, code and sentence of the error body."""

    def __init__(self, status: int, code: str, message: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})


def error_body(code: str, message: str) -> dict[str, Any]:
    """The CloudError of ARM."""
    return {"error": {"code": code, "message": message}}


def response(status: int, body: Mapping[str, Any] | None, headers: Mapping[str, str] | None = None) -> Response:
    """A response with the ids that a support request would name; without a body for None."""
    request_id = str(uuid.uuid4())
    sent = {
        "x-ms-request-id": request_id,
        "x-ms-correlation-request-id": request_id,
        "cache-control": "no-cache",
        **(headers or {}),
    }
    if body is None:
        return Response(status_code=status, headers=sent)
    return Response(msgspec.json.encode(body), status, sent, media_type="application/json; charset=utf-8")


def refusal(error: ArmError) -> Response:
    """The response for a refusal."""
    return response(error.status, error_body(error.code, str(error)), error.headers)


def no_incident(name: str) -> ArmError:
    """404 for an incident that there is not."""
    return ArmError(404, "NotFound", f"The incident '{name}' could not be found.")


def stale(what: str, name: str, if_match: str | None) -> ArmError:
    """412 for the header's condition, 409 for the body's etag."""
    if if_match is not None:
        return ArmError(412, "PreconditionFailed", f"The {what} '{name}' has another etag than If-Match names.")
    return ArmError(409, "Conflict", f"The {what} '{name}' was changed since it was read: newer data exists.")


# The figures are the documented ones. Confined to the event loop, so it needs no lock; the clock is an argument so that
# five minutes can be tested.
WINDOW_S = 300.0
PER_WINDOW: Mapping[str, int] = {
    "GET incident alerts": 100,
    "GET incident entities": 100,
    "GET comments": 100,
    "GET bookmarks": 100,
    "GET incident bookmarks": 100,
    "GET relations": 100,
    "PUT incident": 75,
    "PUT comments": 75,
    "PUT bookmarks": 75,
    "PUT relations": 75,
}
"""Sentinel's limits by operation, in any five minutes. Other operations have ARM's buckets only."""

_READS = (250.0, 25.0)
_WRITES = (200.0, 10.0)


class RequestLimits:
    """Counts requests; `admit` refuses what is too much, in the service's words."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._taken: dict[str, deque[float]] = {operation: deque() for operation in PER_WINDOW}
        self._reads = _TokenBucket(*_READS, clock())
        self._writes = _TokenBucket(*_WRITES, clock())

    def admit(self, operation: str, *, writes: bool) -> dict[str, str]:
        """The rate headers of an admitted request. Raises ArmError 429 with Retry-After."""
        now = self._clock()
        bucket = self._writes if writes else self._reads
        remaining = bucket.take(now)
        if remaining is None:
            raise _throttled("The request rate of the subscription is over its limit.", bucket.wait_s)
        taken = self._taken.get(operation)
        if taken is not None:
            while taken and taken[0] <= now - WINDOW_S:
                taken.popleft()
            if len(taken) >= PER_WINDOW[operation]:
                allowed = f"{PER_WINDOW[operation]} requests in 5 minutes"
                raise _throttled(f"{operation} is limited to {allowed}.", taken[0] + WINDOW_S - now)
            taken.append(now)
        kind = "writes" if writes else "reads"
        return {f"x-ms-ratelimit-remaining-subscription-{kind}": str(remaining)}


class _TokenBucket:
    def __init__(self, size: float, refill_per_s: float, now: float) -> None:
        self._size = size
        self._refill = refill_per_s
        self._tokens = size
        self._at = now

    def take(self, now: float) -> int | None:
        """Whole tokens left after taking one; None if there is none."""
        self._tokens = min(self._size, self._tokens + (now - self._at) * self._refill)
        self._at = now
        if self._tokens < 1:
            return None
        self._tokens -= 1
        return int(self._tokens)

    @property
    def wait_s(self) -> float:
        """Seconds until there is a token."""
        return (1 - self._tokens) / self._refill


def _throttled(message: str, wait_s: float) -> ArmError:
    return ArmError(429, "TooManyRequests", message, headers={"retry-after": str(max(1, math.ceil(wait_s)))})


# A token of this server for the management audience, a resource that exists, an api-version that is served.
API_VERSIONS = ("2025-09-01",)
_GUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ArmAnswer:
    """Status and JSON body (None: no body) of an answered request."""

    status: int
    body: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class ArmRequest:
    """What an operation may ask of a request that was let in. `url` is without its query: a nextLink leads to the host
    that was asked."""

    path: Mapping[str, str]
    parameters: dict[str, str]
    url: str
    if_match: str | None
    body: bytes

    def guid(self, key: str) -> str:
        """The GUID at `key` of the path, in lower case. Raises ArmError."""
        text = self.path[key]
        if not _GUID.fullmatch(text):
            raise ArmError(400, "BadRequest", f"The id '{text[:60]}' is not a GUID.")
        return text.lower()

    def json(self) -> Any:
        """The JSON of the body. Raises ArmError."""
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            message = "The request content was invalid and could not be read."
            raise ArmError(400, "InvalidRequestContent", message) from None


Handler = Callable[[ArmRequest], ArmAnswer]


class ArmAuthentication:
    """Lets in whoever holds a management token of `issuer` and names the workspace with the resource id given."""

    def __init__(self, issuer: TokenIssuer, resource_id: str, limits: RequestLimits) -> None:
        self._issuer = issuer
        self._parts = _named_parts(resource_id)
        self._limits = limits
        self.workspace_path = f"{resource_id}/providers/Microsoft.SecurityInsights"

    def guarded(
        self, operation: str, handler: Handler, *, writes: bool = False, api_versions: tuple[str, ...] = API_VERSIONS
    ) -> Callable[[Request], Awaitable[Response]]:
        """`handler` in a thread, behind the checks and the rate limits; `operation` names it in the limits."""

        async def endpoint(request: Request) -> Response:
            try:
                self._check(request, api_versions)
                headers = self._limits.admit(operation, writes=writes)
                answer = await to_thread.run_sync(handler, await _read(request))
                return response(answer.status, answer.body, headers)
            except ArmError as error:
                return refusal(error)
            except BodyTooLargeError:
                return refusal(ArmError(413, "RequestEntityTooLarge", "The request is too large."))
            except BodyError as error:
                return refusal(ArmError(400, "BadRequest", str(error)))
            except UnavailableError as error:
                return refusal(ArmError(503, "ServiceUnavailable", str(error), headers={"retry-after": "5"}))
            except SentinelError as error:
                return refusal(ArmError(409, "Conflict", f"{error} {error.next_step}"))
            except Exception:  # a fault of ours is answered in ARM's form, as Azure would; the log has the rest
                _log.exception("%s failed", operation)
                return refusal(ArmError(500, "InternalServerError", "Something went wrong on the server."))

        return endpoint

    def _check(self, request: Request, api_versions: tuple[str, ...]) -> None:
        token = bearer_token(request.headers.get("authorization", ""))
        if not token:
            message = "Authentication failed. The 'Authorization' header is missing."
            raise ArmError(401, "AuthenticationFailed", message, headers={"www-authenticate": "Bearer"})
        verdict = self._issuer.judge(token, MANAGEMENT_AUDIENCES)
        if verdict is TokenVerdict.UNKNOWN:
            raise ArmError(401, "InvalidAuthenticationToken", "The access token is invalid.")
        if verdict is TokenVerdict.WRONG_AUDIENCE:
            message = "The access token has been obtained for the wrong audience or resource."
            raise ArmError(401, "InvalidAuthenticationTokenAudience", message)
        version = request.query_params.get("api-version")
        if not version:
            message = "The api-version query parameter (?api-version=) is required for all requests."
            raise ArmError(400, "MissingApiVersionParameter", message)
        given = request.path_params
        for code, key in (
            ("SubscriptionNotFound", "subscription"),
            ("ResourceGroupNotFound", "group"),
            ("ResourceNotFound", "workspace"),
        ):
            if given[key].lower() != self._parts[key]:
                raise ArmError(404, code, f"The {key} '{given[key][:90]}' could not be found.")
        if version not in api_versions:
            message = f"The api-version '{version[:40]}' is not supported. Supported: {', '.join(api_versions)}."
            raise ArmError(400, "InvalidApiVersionParameter", message)


async def _read(request: Request) -> ArmRequest:
    return ArmRequest(
        path=request.path_params,
        parameters=dict(request.query_params),
        url=str(request.url.replace(query="", fragment="")),
        if_match=request.headers.get("if-match"),
        body=await read_body(request),
    )


def _named_parts(resource_id: str) -> dict[str, str]:
    parts = resource_id.lower().strip("/").split("/")
    return {"subscription": parts[1], "group": parts[3], "workspace": parts[-1]}
