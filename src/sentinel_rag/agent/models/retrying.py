"""Another try where it can help, as a model around a model.

Only failures before anything was given out are tried again, within the stream's deadline and a budget that a whole turn
shares. A longer wait than a person would sit through is handed up at once with its time. The library below never
retries, so this is the only place that does.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import anyio

from sentinel_rag.agent.models.failures import ModelError
from sentinel_rag.agent.models.port import (
    NO_DEADLINE,
    ChatModel,
    Finished,
    ModelEvent,
    ModelRequest,
    ModelStream,
    RetryScheduled,
)
from sentinel_rag.agent.models.usage import ModelUsage


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`attempts` for one answer, the first included. Waits grow from `first_wait_s` to at most `longest_wait_s`; a
    provider that asks for more than that is not waited for. No try begins later than `patience_s` after the first.

    A failure that says its own patience (a server that loads its model) is tried again until that is over, and takes
    none of the attempts.
    """

    attempts: int = 3
    first_wait_s: float = 0.5
    longest_wait_s: float = 8.0
    patience_s: float = 30.0

    def wait(self, attempt: int, failure: ModelError, spread: float) -> float | None:
        """Seconds until try `attempt + 1`, None if there is none. `spread` of 0 to 1 keeps many clients apart."""
        if not failure.retry_possible or failure.delivered:
            return None
        if attempt >= self.attempts and failure.patience_s is None:
            return None
        if failure.retry_after_s is not None:
            return failure.retry_after_s if failure.retry_after_s <= self.longest_wait_s else None
        longest = min(self.first_wait_s * 2.0 ** min(attempt - 1, 30), self.longest_wait_s)
        return longest * (0.5 + spread / 2)


class RetryBudget:
    """How many further tries a whole turn has, over all its answers."""

    def __init__(self, tries: int = 4) -> None:
        self.left = tries

    def take(self) -> bool:
        """Use one try; False if none is left."""
        self.left -= 1
        return self.left >= 0


class RetryingModel:
    """Wraps a `ChatModel`. Make one for each turn with that turn's budget; it holds nothing else."""

    def __init__(
        self,
        model: ChatModel,
        *,
        policy: RetryPolicy | None = None,
        budget: RetryBudget | None = None,
        spread: Callable[[], float] = random.random,
    ) -> None:
        self._model = model
        self._policy = policy or RetryPolicy()
        self._budget = budget or RetryBudget()
        self._spread = spread

    @property
    def name(self) -> str:
        return self._model.name

    def stream(self, request: ModelRequest, *, deadline: float = NO_DEADLINE) -> _RetryingStream:
        """As `ChatModel.stream`, with `RetryScheduled` before each further try."""
        return _RetryingStream(
            lambda: self._model.stream(request, deadline=deadline), self._policy, self._budget, self._spread, deadline
        )

    async def aclose(self) -> None:
        await self._model.aclose()


class _RetryingStream:
    def __init__(
        self,
        open_stream: Callable[[], ModelStream],
        policy: RetryPolicy,
        budget: RetryBudget,
        spread: Callable[[], float],
        deadline: float,
    ) -> None:
        self._open_stream = open_stream
        self._policy = policy
        self._budget = budget
        self._spread = spread
        self._deadline = deadline
        self._stream: ModelStream | None = None
        self._first = 0.0
        self._attempt = 0
        self._wait = 0.0
        self._spent = ModelUsage()

    async def __aenter__(self) -> Self:
        self._first = anyio.current_time()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.__aexit__(kind, error, trace)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ModelEvent:
        try:
            if self._stream is None:
                await anyio.sleep(self._wait)
                self._attempt += 1
                stream = self._open_stream()
                await stream.__aenter__()
                self._stream = stream
            event = await anext(self._stream)
        except ModelError as failure:
            return await self._again(failure)
        if isinstance(event, Finished):
            return Finished(event.reason, event.message, self._spent + event.usage, event.filtered, event.stated)
        return event

    async def _again(self, failure: ModelError) -> RetryScheduled:
        """Announce the next try, or raise the failure with everything that was spent."""
        await self.__aexit__(None, None, None)
        self._spent += failure.usage
        wait = self._policy.wait(self._attempt, failure, self._spread())
        patience = self._policy.patience_s if failure.patience_s is None else failure.patience_s
        latest = min(self._deadline, self._first + patience)
        spends = failure.patience_s is None
        if wait is None or anyio.current_time() + wait >= latest or (spends and not self._budget.take()):
            failure.usage = self._spent
            raise failure
        self._wait = wait
        return RetryScheduled(self._attempt, wait, failure.code)
