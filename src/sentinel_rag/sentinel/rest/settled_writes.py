"""A write that takes effect at most once, and an answer to whether it did.

If the service's answer is lost, the resource is read back. It is written once more only if it was not written, and
under the same guard (an etag that the first write would have changed, an id that it would have taken), so that of two
writes one at most counts. What stays unclear is told as unclear.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.sentinel.failures import QueryFailedError
from sentinel_rag.sentinel.rest.connection import UnclearOutcomeError

T = TypeVar("T")


async def write_once(
    write: Callable[[], Awaitable[T]], written: Callable[[], Awaitable[T | None]], *, guarded: bool
) -> T:
    """The resource after `write`, which raises UnclearOutcomeError for a lost answer; `written` reads it back, None if
    the write is not in it. Without a guard nothing is sent twice.

    Raises QueryFailedError: as `write` does, or OUTCOME_UNKNOWN.
    """
    try:
        return await write()
    except UnclearOutcomeError as unclear:
        seen = unclear.error
    except QueryFailedError as failure:
        return await _ours_after_all(failure, written)
    found = await _read_back(written, seen)
    if found is not None:
        return found
    if not guarded:
        raise QueryFailedError(_unknown(seen))
    try:
        return await write()
    except UnclearOutcomeError as unclear:
        found = await _read_back(written, unclear.error)
        if found is None:
            raise QueryFailedError(_unknown(unclear.error)) from unclear
        return found
    except QueryFailedError as failure:
        if failure.error.code is QueryErrorCode.CONFLICT:
            return await _ours_after_all(failure, written)
        raise QueryFailedError(_unknown(failure.error)) from failure


async def _ours_after_all(failure: QueryFailedError, written: Callable[[], Awaitable[T | None]]) -> T:
    """After a conflict: the transport may have sent a PUT again on a connection that closed, so that the first one has
    won against it. Then the resource shows what was asked for; else the failure stands."""
    if failure.error.code is not QueryErrorCode.CONFLICT:
        raise failure
    try:
        found = await written()
    except QueryFailedError:
        raise failure from None
    if found is None:
        raise failure
    return found


async def _read_back(written: Callable[[], Awaitable[T | None]], seen: QueryError) -> T | None:
    try:
        return await written()
    except QueryFailedError as failure:
        raise QueryFailedError(_unknown(seen)) from failure


def _unknown(seen: QueryError) -> QueryError:
    return QueryError(
        code=QueryErrorCode.OUTCOME_UNKNOWN,
        message=f"It is not known whether the change was made: {seen.message}",
        next_step="Look at the incident before you try again.",
    )


def understood(read: Callable[[Mapping[str, Any]], T], answer: Mapping[str, Any]) -> T:
    """The resource in a write's answer. Raises UnclearOutcomeError for none: that tells nothing of the write."""
    try:
        return read(answer)
    except QueryFailedError as failure:
        raise UnclearOutcomeError(failure.error) from failure
