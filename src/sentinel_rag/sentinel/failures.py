"""What goes wrong between an argument and a row, on its way up as a `contracts.query_results.QueryFailedError`.

It is turned into one where it is understood best (the wire, the argument, the template); the tool server sends its
`error` and nothing else. No exception of Azure's SDK leaves this package.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

import anyio

from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode, QueryFailedError


def certificate_error(error: BaseException | None, endpoint: str) -> QueryError | None:
    """The error for a TLS certificate that is not trusted, found anywhere below `error`; None for another reason."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        deeper = getattr(error, "certificate_error", None) or getattr(error, "os_error", None)
        if isinstance(error, ssl.SSLError) and deeper is None:
            why = getattr(error, "verify_message", "") or getattr(error, "reason", "") or "the handshake failed"
            return QueryError(
                code=QueryErrorCode.UNAVAILABLE,
                message=f"The TLS certificate of {endpoint} is not accepted: {why}.",
                next_step="If a proxy of your network signs it, name its CA in SSL_CERT_FILE; else check the address.",
            )
        error = deeper or error.__cause__ or error.__context__
    return None


# A reader of a `QueryError` wants the sentence of the query that failed, not a group of one.
T1 = TypeVar("T1")
T2 = TypeVar("T2")
T3 = TypeVar("T3")


@overload
async def together(first: Callable[[], Awaitable[T1]], second: Callable[[], Awaitable[T2]], /) -> tuple[T1, T2]: ...
@overload
async def together(
    first: Callable[[], Awaitable[T1]], second: Callable[[], Awaitable[T2]], third: Callable[[], Awaitable[T3]], /
) -> tuple[T1, T2, T3]: ...
@overload
async def together(*reads: Callable[[], Awaitable[T1]]) -> tuple[T1, ...]: ...


async def together(*reads: Callable[[], Awaitable[Any]]) -> Any:
    """Run all, return their values in order. The first QueryFailedError cancels the rest and is raised as it is."""
    values: list[Any] = [None] * len(reads)

    async def run(index: int, read: Callable[[], Awaitable[Any]]) -> None:
        values[index] = await read()

    try:
        async with anyio.create_task_group() as group:
            for index, read in enumerate(reads):
                group.start_soon(run, index, read)
    except BaseExceptionGroup as failures:
        failed = failures.subgroup(QueryFailedError)
        rest = failures.split(QueryFailedError)[1]
        if failed is None or rest is not None:
            raise
        leaf: BaseException = failed
        while isinstance(leaf, BaseExceptionGroup):
            leaf = leaf.exceptions[0]
        raise leaf from None
    return tuple(values)
