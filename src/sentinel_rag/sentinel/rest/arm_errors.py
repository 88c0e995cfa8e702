"""What a failing answer of Azure Resource Manager means, as a `QueryError`. Pure; bodies are read by `error_bodies`."""

from __future__ import annotations

from collections.abc import Mapping

from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.sentinel.error_bodies import error_object, innermost, next_step_of_refusal, throttled, told_wait

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
