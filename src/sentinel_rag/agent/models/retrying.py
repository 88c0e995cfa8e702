"""Another try where it can help, as a model around a model.

Only failures before anything was given out are tried again, within the stream's deadline and a budget that a whole turn
shares. A longer wait than a person would sit through is handed up at once with its time. The library below never
retries, so this is the only place that does.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import count

import anyio

from sentinel_rag.agent.models.failures import ModelError
from sentinel_rag.agent.models.port import (
    NO_DEADLINE,
    ChatModel,
    Finished,
    ModelEvent,
    ModelRequest,
    ModelStream,
    ModelUsage,
    RetryScheduled,
)


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

    def stream(self, request: ModelRequest, *, deadline: float = NO_DEADLINE) -> ModelStream:
        """As `ChatModel.stream`, with `RetryScheduled` before each further try."""
        return aclosing(self._events(request, deadline))

    async def aclose(self) -> None:
        await self._model.aclose()

    async def _events(self, request: ModelRequest, deadline: float) -> AsyncGenerator[ModelEvent, None]:
        first, spent = anyio.current_time(), ModelUsage()
        for attempt in count(1):
            try:
                async with self._model.stream(request, deadline=deadline) as events:
                    async for event in events:
                        yield replace(event, usage=spent + event.usage) if isinstance(event, Finished) else event
                return
            except ModelError as failure:
                spent += failure.usage
                wait = self._policy.wait(attempt, failure, self._spread())
                patience = self._policy.patience_s if failure.patience_s is None else failure.patience_s
                late = wait is None or anyio.current_time() + wait >= min(deadline, first + patience)
                if wait is None or late or (failure.patience_s is None and not self._budget.take()):
                    failure.usage = spent
                    raise
                scheduled = RetryScheduled(attempt, wait, failure.code)
            yield scheduled
            await anyio.sleep(wait)
