"""A turn that is being answered: its events so far, for any number of readers at their own pace.

Readers hold a place in one list, so a slow one holds nobody up and costs no copy; the list is bounded.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import anyio

from sentinel_rag.surfaces.web.turns.events import LAST, Event

MAX_PROGRESS = 400
"""Status lines and tool events that are kept of one turn; a question has a few rounds of a few calls."""


class LiveTurn:
    """`user_id` is whose it is. `cancel` stops it; a reader that goes away does not."""

    def __init__(self, turn_id: str, user_id: str, conversation_id: str, request_id: str | None) -> None:
        self.turn_id = turn_id
        self.user_id = user_id
        self.conversation_id = conversation_id
        self.request_id = request_id
        self.scope = anyio.CancelScope()
        self._events: list[Event] = []
        self._recorded: list[Event] = []
        self._changed = anyio.Event()

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)

    @property
    def recorded(self) -> tuple[Event, ...]:
        """The same events as they are kept: what only this person may see is not in them."""
        return tuple(self._recorded)

    @property
    def ended(self) -> bool:
        """Whether its last event is there."""
        return bool(self._events) and self._events[-1].type in LAST

    def tell(self, *events: Event, recorded: Sequence[Event] | None = None) -> None:
        """Add events; progress beyond the bound is left out, an answer never. `recorded` are they as they are kept,
        where that is another form."""
        for event, kept in zip(events, events if recorded is None else recorded, strict=True):
            if event.type in ("status", "tool.started", "tool.finished") and len(self._events) >= MAX_PROGRESS:
                continue
            self._events.append(event)
            self._recorded.append(kept)
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    def cancel(self) -> None:
        """Stop it for the person; its last event says so."""
        self.scope.cancel()

    async def follow(self, after: int, *, idle_s: float) -> AsyncIterator[tuple[int, Event] | None]:
        """Each event behind number `after` with its number, as it comes, up to the last; None whenever nothing came
        for `idle_s` seconds."""
        place = max(0, after)
        while True:
            while place < len(self._events):
                place += 1
                yield place, self._events[place - 1]
            if self.ended:
                return
            changed = self._changed
            with anyio.move_on_after(idle_s):
                await changed.wait()
            if place >= len(self._events) and not self.ended:
                yield None

    async def wait(self) -> None:
        """Until it has ended."""
        while not self.ended:
            await self._changed.wait()
