"""The connection to Azure Resource Manager: azure-core's pipeline with our policies, and what no answer means.

One for a process; `SentinelRest` of `incident_client` is a workspace behind it. A write whose answer is lost raises
`UnclearOutcomeError`, because repeating it blindly is wrong: whoever made the write reads back what became of it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sentinel_rag.contracts.closing import AsyncClosing
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode, QueryFailedError
from sentinel_rag.sentinel.response_bodies import (
    LARGEST_BODY,
    UnusableBodyError,
    certificate_error,
    error_object,
    innermost,
    load_json,
    next_step_of_refusal,
    read_bounded,
    throttled,
    told_wait,
)

if TYPE_CHECKING:
    from azure.core import AsyncPipelineClient
    from azure.core.credentials_async import AsyncTokenCredential
    from azure.core.rest import AsyncHttpResponse, HttpRequest


_NO_WORKSPACE = frozenset(
    {
        "SubscriptionNotFound",
        "ResourceGroupNotFound",
        "ResourceNotFound",
        "InvalidResourceType",
        "InvalidSubscriptionId",
    }
)


def error_of_response(status: int, headers: Mapping[str, str], body: bytes, *, writes: bool) -> QueryError:
    """The error for an HTTP status that is no success; `body` may be anything, also empty."""
    codes, message, _, _ = innermost(error_object(body))
    said = f": {message}" if message else ""
    role = "Microsoft Sentinel Responder" if writes else "Microsoft Sentinel Reader"
    if status == 429:
        return throttled(f"Microsoft Sentinel is throttling these requests{said}", told_wait(headers))
    if status in (401, 403):
        return QueryError(
            code=QueryErrorCode.ACCESS_DENIED,
            message=f"Microsoft Sentinel refused the credential (HTTP {status}){said}",
            next_step=next_step_of_refusal(
                status, codes, f"Give the identity the role {role} on the workspace (it takes up to an hour)."
            ),
        )
    if status == 404 and not _NO_WORKSPACE.isdisjoint(codes):
        return QueryError(
            code=QueryErrorCode.WORKSPACE_NOT_FOUND,
            message=f"Azure knows no such workspace{said}",
            next_step="Check SENTINEL_WORKSPACE_RESOURCE_ID (the Resource ID on the workspace's properties page).",
        )
    if status == 404:
        return QueryError(
            code=QueryErrorCode.INVALID_ARGUMENT,
            message=f"Microsoft Sentinel has no such incident{said}",
            next_step="It may have been deleted or merged; query_incidents lists those that there are.",
            field="incident",
        )
    if status in (409, 412):
        return QueryError(
            code=QueryErrorCode.CONFLICT,
            message=f"Somebody else changed it at the same time{said}",
            next_step="Look at it as it is now, then decide again.",
        )
    if status in (408, 504):
        return QueryError(
            code=QueryErrorCode.TIMEOUT,
            message=f"Microsoft Sentinel did not answer in time{said}",
            next_step="Try again in a moment.",
        )
    if 400 <= status < 500:
        return QueryError(
            code=QueryErrorCode.QUERY_REJECTED,
            message=f"Microsoft Sentinel rejected the request{said or f' (HTTP {status})'}",
            next_step="Correct what the message names.",
        )
    return QueryError(
        code=QueryErrorCode.UNAVAILABLE,
        message=f"Microsoft Sentinel answered HTTP {status}{said}",
        next_step="Try again in a moment.",
        retry_after_s=told_wait(headers),
    )


def protocol_error(message: str) -> QueryError:
    """An answer that is no answer: empty, not JSON, without what it must hold."""
    return QueryError(
        code=QueryErrorCode.PROTOCOL,
        message=message,
        next_step="Try again; if it stays so, check that the endpoint is Azure Resource Manager.",
    )


API_VERSION = "2025-09-01"
PUBLIC_CLOUD = "https://management.azure.com"
READ_TIMEOUT_S = 60.0
CONNECT_TIMEOUT_S = 10.0


class UnclearOutcomeError(Exception):
    """The service may or may not have done what a write asked for; `error` is what was seen instead of an answer."""

    def __init__(self, error: QueryError) -> None:
        super().__init__(error.message)
        self.error = error


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    content: bytes


class ArmConnection(AsyncClosing):
    """One endpoint with one credential, which stays its maker's to close.

    `audience` is the resource that tokens are for: the endpoint itself, or the public cloud's for a server on loopback.
    Raises ConfigurationError for an endpoint that is neither https nor on this machine.
    """

    def __init__(
        self,
        credential: AsyncTokenCredential,
        *,
        endpoint: str = PUBLIC_CLOUD,
        audience: str | None = None,
        retries: int = 3,
        first_retry_delay_s: float = 0.8,
        timeout_s: float = READ_TIMEOUT_S,
        largest_body: int = LARGEST_BODY,
    ) -> None:
        from sentinel_rag.sentinel.azure_policies import is_loopback, safe_endpoint

        self.endpoint = endpoint = safe_endpoint("Resource Manager", endpoint, PUBLIC_CLOUD)
        self._timeout_s = timeout_s
        self._largest_body = largest_body
        self._client = _pipeline_client(
            credential,
            endpoint,
            audience or (PUBLIC_CLOUD if is_loopback(endpoint) else endpoint),
            retries=retries,
            first_retry_delay_s=first_retry_delay_s,
        )

    async def read(self, url: str, *, method: str = "GET") -> Mapping[str, Any]:
        """The JSON object at `url` of this endpoint. Raises QueryFailedError for every way in which there is none."""
        try:
            answer = await self._send(method, url, None, {})
        except UnclearOutcomeError as unclear:
            raise QueryFailedError(unclear.error) from unclear
        if not 200 <= answer.status < 300:
            raise QueryFailedError(error_of_response(answer.status, answer.headers, answer.content, writes=False))
        return _json_object(answer.content)

    async def write(
        self, method: str, url: str, body: Mapping[str, Any] | None, *, if_match: str | None = None
    ) -> Mapping[str, Any]:
        """The JSON object that a write answers with.

        Raises QueryFailedError if the service surely did not take it, UnclearOutcomeError if nobody can tell.
        """
        answer = await self._send(method, url, body, {} if if_match is None else {"If-Match": if_match})
        if 200 <= answer.status < 300:
            try:
                return _json_object(answer.content)
            except QueryFailedError as failure:
                raise UnclearOutcomeError(failure.error) from failure
        error = error_of_response(answer.status, answer.headers, answer.content, writes=True)
        if answer.status >= 500 or answer.status == 408:
            raise UnclearOutcomeError(error)
        raise QueryFailedError(error)

    def is_own(self, url: str) -> bool:
        """Whether `url` leads to this endpoint: a token goes nowhere else."""
        there, here = urlsplit(url), urlsplit(self.endpoint)
        return (there.scheme, there.netloc.lower()) == (here.scheme, here.netloc.lower())

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _send(self, method: str, url: str, body: Mapping[str, Any] | None, headers: Mapping[str, str]) -> _Answer:
        import aiohttp
        from azure.core.exceptions import AzureError, ClientAuthenticationError, ServiceResponseTimeoutError
        from azure.core.rest import HttpRequest

        sent = {"Accept": "application/json", **headers}
        request = HttpRequest(method, url, json=None if body is None else dict(body), headers=sent)
        try:
            response = await self._client.send_request(
                request, stream=True, connection_timeout=CONNECT_TIMEOUT_S, read_timeout=self._timeout_s
            )
            async with response:
                return _Answer(
                    response.status_code, response.headers, await read_bounded(response, most=self._largest_body)
                )
        except UnusableBodyError as error:
            raise UnclearOutcomeError(protocol_error(f"Microsoft Sentinel {error}.")) from None
        except ClientAuthenticationError as error:
            raise QueryFailedError(
                QueryError(
                    code=QueryErrorCode.ACCESS_DENIED,
                    message="No token could be had for Azure Resource Manager: no configured identity is signed in.",
                    next_step="Sign in (`az login`) or give this process a managed identity.",
                )
            ) from error
        except ServiceResponseTimeoutError as error:
            raise UnclearOutcomeError(
                QueryError(
                    code=QueryErrorCode.TIMEOUT,
                    message=f"Microsoft Sentinel did not answer within {self._timeout_s:.0f} seconds.",
                    next_step="Try again in a moment.",
                )
            ) from error
        except (AzureError, aiohttp.ClientError, OSError) as error:
            if _never_connected(error):
                raise QueryFailedError(certificate_error(error, self.endpoint) or self._unreachable()) from error
            raise UnclearOutcomeError(
                QueryError(
                    code=QueryErrorCode.UNAVAILABLE,
                    message="The connection to Microsoft Sentinel broke before the answer was whole.",
                    next_step="Try again in a moment.",
                )
            ) from error

    def _unreachable(self) -> QueryError:
        return QueryError(
            code=QueryErrorCode.UNAVAILABLE,
            message=f"Microsoft Sentinel's endpoint {self.endpoint} cannot be reached.",
            next_step="Check that the workspace server runs (`sentinel status`) or that the network lets the call out.",
        )


def _pipeline_client(
    credential: AsyncTokenCredential, endpoint: str, audience: str, *, retries: int, first_retry_delay_s: float
) -> AsyncPipelineClient[HttpRequest, AsyncHttpResponse]:
    from azure.core import AsyncPipelineClient
    from azure.core.pipeline.policies import HeadersPolicy, HttpLoggingPolicy, RequestIdPolicy, UserAgentPolicy

    from sentinel_rag.sentinel.azure_policies import LoopbackBearerPolicy, ResourceRetryPolicy, is_loopback

    return AsyncPipelineClient(
        endpoint,
        policies=[
            RequestIdPolicy(),
            HeadersPolicy(),
            UserAgentPolicy("sentinel-rag"),
            # No redirect policy: Resource Manager sends none, and a token follows no answer to another place.
            ResourceRetryPolicy(total=retries, first_delay_s=first_retry_delay_s),
            LoopbackBearerPolicy(credential, f"{audience}/.default"),
            HttpLoggingPolicy(),
        ],
        use_env_settings=not is_loopback(endpoint),  # a proxy of the environment must not see loopback traffic
    )


def _never_connected(error: Exception) -> bool:
    """True if no byte of the request left. azure-core calls a broken connection a request error too, so look below."""
    import aiohttp

    inner = getattr(error, "inner_exception", None) or error
    return isinstance(inner, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)


def _json_object(content: bytes) -> Mapping[str, Any]:
    try:
        document = load_json(content)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        what = "something that is not a JSON object" if content.strip() else "nothing"
        raise QueryFailedError(protocol_error(f"Microsoft Sentinel answered with {what}."))
    return document


# The limits are documented per subscription; going over them costs other tools of the same subscription their share. A
# sliding window is never over the limit in any five minutes, whichever way the service counts.
WINDOW_S = 300.0


class RestOperation(StrEnum):
    """What is counted; the value is how a person would name it."""

    LIST_INCIDENTS = "list incidents"
    GET_INCIDENT = "read incidents"
    PUT_INCIDENT = "update incidents"
    GET_ALERTS = "read alerts of incidents"
    GET_ENTITIES = "read entities of incidents"
    GET_COMMENTS = "read comments"
    PUT_COMMENT = "write comments"
    GET_BOOKMARKS = "read bookmarks"
    GET_RELATIONS = "read relations"


LIMITS: Mapping[RestOperation, int] = {
    RestOperation.GET_ALERTS: 100,
    RestOperation.GET_ENTITIES: 100,
    RestOperation.GET_COMMENTS: 100,
    RestOperation.GET_BOOKMARKS: 100,
    RestOperation.GET_RELATIONS: 100,
    RestOperation.PUT_INCIDENT: 75,
    RestOperation.PUT_COMMENT: 75,
}
"""Requests in five minutes and a subscription; an operation that is not here has no limit of its own."""


class RateBuckets:
    """Counts the requests of one subscription. `share` is the part of each limit that may be used here, where another
    process uses the rest."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, share: float = 1.0) -> None:
        self._clock = clock
        self._limits = {operation: max(1, int(limit * share)) for operation, limit in LIMITS.items()}
        self._taken: dict[RestOperation, deque[float]] = {operation: deque() for operation in LIMITS}

    def take(self, operation: RestOperation) -> None:
        """Count one request. Raises QueryFailedError THROTTLED, with the time to wait, at the limit."""
        taken = self._taken.get(operation)
        if taken is None:
            return
        now = self._clock()
        while taken and taken[0] <= now - WINDOW_S:
            taken.popleft()
        if len(taken) >= self._limits[operation]:
            limit = f"{self._limits[operation]} requests in 5 minutes"
            wait_s = max(1.0, taken[0] + WINDOW_S - now)
            raise QueryFailedError(throttled(f"Microsoft Sentinel's limit to {operation} is {limit}: used up.", wait_s))
        taken.append(now)
