"""Several listeners of one journal."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel_rag.audit import AuditEvent
from sentinel_rag.audit.journal import Listener


class Listeners:
    """Tells each of `listeners`."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self._listeners = tuple(listeners)

    def written(self, event: AuditEvent, seconds: float) -> None:
        for listener in self._listeners:
            listener.written(event, seconds)

    def failed(self, event: AuditEvent) -> None:
        for listener in self._listeners:
            listener.failed(event)
