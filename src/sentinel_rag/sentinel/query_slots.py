"""How many queries run at once: five of one identity, whatever workspaces they are of, as Log Analytics counts them.

Where several endpoints share the five, none takes the last one, so that an endpoint which never answers does not stop
the others.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

MOST_CONCURRENT_QUERIES = 5


class IdentitySlots:
    """The slots of one identity; `of_endpoint` gives an endpoint's share of them."""

    def __init__(self, most: int = MOST_CONCURRENT_QUERIES, *, _all: anyio.Semaphore | None = None) -> None:
        self._most = most
        self._own = anyio.Semaphore(most)
        self._all = _all

    def of_endpoint(self) -> IdentitySlots:
        """Slots that count in these and leave one of them to others."""
        return IdentitySlots(max(1, self._most - 1), _all=self._own)

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Wait for a slot and hold it."""
        async with self._own:
            if self._all is None:
                yield
            else:
                async with self._all:
                    yield
