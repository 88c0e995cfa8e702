"""A wait with an end: what a stream puts around each thing that it waits for.

A scope of its own for every single wait, because one held open while events are given out would cancel the caller.
"""

from __future__ import annotations

from types import TracebackType

import anyio

from sentinel_rag.agent.models.failures import ModelTimedOutError

_TOO_SLOW = (
    "raise SENTINEL_MODEL_TIMEOUT_S, and SENTINEL_QUESTION_TIMEOUT_S above it, or choose a faster or smaller model."
)
_SILENT = "Ask again; if it stays, raise SENTINEL_MODEL_IDLE_TIMEOUT_S, and SENTINEL_QUESTION_TIMEOUT_S above it."


class BoundedWait:
    """A wait of at most `seconds`; raises ModelTimedOutError that says what was waited for, and for `whole_s` seconds
    in all if that was the whole answer. `begun`: a part of the answer had come before. `local`: the server is of this
    machine, where the prompt alone can take minutes to read."""

    def __init__(
        self, seconds: float, waited_for: str, whole_s: float | None = None, *, begun: bool, local: bool
    ) -> None:
        self._seconds = max(seconds, 0.0)
        self._said_s = self._seconds if whole_s is None else max(whole_s, 0.0)
        self._waited_for = waited_for
        self._begun = begun
        self._local = local

    def __enter__(self) -> None:
        self._scope = anyio.move_on_after(self._seconds)
        self._scope.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        swallowed = bool(self._scope.__exit__(kind, error, trace))
        if self._scope.cancelled_caught:
            raise self._failure()
        return swallowed

    def _failure(self) -> ModelTimedOutError:
        seconds = f"{self._said_s:.3g} seconds"
        if not self._begun:
            said = f"The model had not begun to answer after {seconds}."
            reading = (
                "A model on this machine reads the whole prompt first: " if self._local else "Ask again; if it stays, "
            )
            next_step = reading + _TOO_SLOW
        elif self._waited_for == "next_token":
            said, next_step = f"The model stopped in the middle of its answer, and nothing came for {seconds}.", _SILENT
        else:
            said = f"The model was still writing its answer after {seconds}."
            next_step = f"Ask for less, or {_TOO_SLOW}"
        return ModelTimedOutError(said, next_step=next_step, waited_for=self._waited_for)
