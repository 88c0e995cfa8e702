"""A wait with an end: what a stream puts around each thing that it waits for.

A scope of its own for every single wait, because one held open while events are given out would cancel the caller.
"""

from __future__ import annotations

from types import TracebackType

import anyio

from sentinel_rag.agent.models.failures import ModelTimedOutError


class BoundedWait:
    """A wait of at most `seconds`; raises ModelTimedOutError that says what was waited for, and for `whole_s` seconds
    in all if that was the whole answer."""

    _NEXT = "Ask again; if it stays, raise SENTINEL_MODEL_TIMEOUT_S or choose a faster model."

    def __init__(self, seconds: float, waited_for: str, whole_s: float | None = None) -> None:
        self._seconds = max(seconds, 0.0)
        self._said_s = self._seconds if whole_s is None else max(whole_s, 0.0)
        self._waited_for = waited_for

    def __enter__(self) -> None:
        self._scope = anyio.move_on_after(self._seconds)
        self._scope.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        swallowed = bool(self._scope.__exit__(kind, error, trace))
        if self._scope.cancelled_caught:
            what = {"first_token": "did not begin its answer", "next_token": "fell silent amid its answer"}
            said = what.get(self._waited_for, "did not end its answer")
            raise ModelTimedOutError(
                f"The model {said} within {self._said_s:.3g} seconds.",
                next_step=self._NEXT,
                waited_for=self._waited_for,
            )
        return swallowed
