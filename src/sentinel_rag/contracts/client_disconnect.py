"""How an HTTP server tells the application above it that the caller has gone, without a task that waits for it.

The server puts one object for each connection into the ASGI scope; whoever works for that caller is called back. It
belongs to one event loop, and knows neither the server nor the application.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any

_EXTENSION = "sentinel_rag.departure"


class ClientDisconnect:
    """The end of one connection, which comes once."""

    __slots__ = ("_gone", "_listeners")

    def __init__(self) -> None:
        self._gone = False
        self._listeners: list[Callable[[], None]] = []

    def tell(self) -> None:
        """The connection has ended: call back whoever listens. Further listeners are called at once."""
        self._gone = True
        for listener in self._listeners:
            listener()

    @contextmanager
    def heard_by(self, listener: Callable[[], None]) -> Iterator[None]:
        """`listener` is called if the connection ends within the block, or has ended before."""
        self._listeners.append(listener)
        if self._gone:
            listener()
        try:
            yield
        finally:
            self._listeners.remove(listener)

    def put_into(self, scope: MutableMapping[str, Any]) -> None:
        """Offer this to the application that answers a request of the connection."""
        scope.setdefault("extensions", {})[_EXTENSION] = self


def departure_of(scope: Mapping[str, Any]) -> ClientDisconnect | None:
    """What the server of an ASGI scope offers; None from one that offers nothing."""
    found: ClientDisconnect | None = (scope.get("extensions") or {}).get(_EXTENSION)
    return found
