"""What ends by itself in the sessions of a state: the one that stands for a key, after a day without use, and the
hidden values of any other, after a month.

Every gateway of a state does this, now and then; what one has ended the next one does not find. Nothing here is needed
for a call to be judged: labels stay, whatever is forgotten.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio
import anyio.to_thread

from sentinel_rag.contracts.ports import Clock
from sentinel_rag.gateway.store import HandleStore

WATCH_S = 900.0

_log = logging.getLogger(__name__)


class SessionUpkeep:
    """`end_unused` ends the standing sessions that nobody uses."""

    def __init__(self, end_unused: Callable[[], Awaitable[object]], handles: HandleStore, *, clock: Clock) -> None:
        self._end_unused = end_unused
        self._handles = handles
        self._clock = clock

    async def watch(self) -> None:
        """Look after them for as long as it is not cancelled."""
        while True:
            try:
                await self._end_unused()
                while await anyio.to_thread.run_sync(self._handles.forget_unused, self._clock()):
                    pass  # some at a time, so that calls come in between
            except Exception as error:  # a state that is away is back at the next time; nothing may end the watch
                _log.warning("sessions that nobody uses were not looked after: %s", error)
            await anyio.sleep(WATCH_S)
