"""Which session of the gateway belongs to which conversation of the caller, for as long as this process lives.

A session's labels rise with what was read in it, so two conversations must not share one and one conversation must not
change it. Safe for threads. The gateway does not trust this: a session that a key opens anew starts at what the key has
seen of late.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

MAX_KEPT = 10_000
"""Conversations whose session is kept; the one used longest ago is forgotten first."""


class Conversations:
    """The kept sessions by conversation."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def session_of(self, conversation: str) -> str | None:
        """The kept session; None if the conversation has none yet."""
        with self._lock:
            if conversation in self._sessions:
                self._sessions.move_to_end(conversation)
            return self._sessions.get(conversation)

    def keep(self, conversation: str, session_id: str) -> str:
        """The session to use: this one, unless another call of the conversation has brought one meanwhile."""
        with self._lock:
            kept = self._sessions.setdefault(conversation, session_id)
            while len(self._sessions) > MAX_KEPT:
                self._sessions.popitem(last=False)
            return kept

    def forget(self, conversation: str, session_id: str) -> None:
        """Keep it no longer, if it is still the one."""
        with self._lock:
            if self._sessions.get(conversation) == session_id:
                del self._sessions[conversation]

    def take_all(self) -> tuple[str, ...]:
        """Every kept session; none is kept afterwards."""
        with self._lock:
            sessions = tuple(self._sessions.values())
            self._sessions.clear()
            return sessions
