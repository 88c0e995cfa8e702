"""Waiting on behalf of whoever asked, and not longer than they do.

For routes that answer once something happens; everything else is short enough to be done for nobody.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

import anyio
from starlette.requests import Request

T = TypeVar("T")


async def unless_gone(request: Request, work: Awaitable[T]) -> T | None:
    """What `work` gives; None if the connection ended before, which cancels it. The request must have no body that is
    still to be read."""
    found: T | None = None
    fault: Exception | None = None

    async def listen() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        try:
            found = await work
        except Exception as error:  # on its own it leaves the group; a group would wrap it
            fault = error
        group.cancel_scope.cancel()
    if fault is not None:
        raise fault
    return found
