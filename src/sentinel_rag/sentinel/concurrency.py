"""Several reads at once with one failure told: anyio's task group without its exception group.

A reader of a `QueryError` wants the sentence of the query that failed, not a group of one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

import anyio

from sentinel_rag.sentinel.failures import QueryFailedError

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
