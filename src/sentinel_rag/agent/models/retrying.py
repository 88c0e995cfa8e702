"""Models around models: another try where it can help, and a rule that decides which model answers a question.

Only failures before anything was given out are tried again, within the stream's deadline and a budget that a whole turn
shares. A longer wait than a person would sit through is handed up at once with its time. The library below never
retries, so this is the only place that does.

The rule is a list of reasons for the large model, in order; the first that holds is kept and shown. No reason: the
small one. Pure functions over the question's words and what the conversation knows of itself; docs/models.md states
the same list, and a test keeps the two equal.
"""

from __future__ import annotations

import random
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from enum import StrEnum
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
from sentinel_rag.language.frames.orders import Act, read_order
from sentinel_rag.language.text import phrases, says


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


class Tier(StrEnum):
    """Two models, by what they are for."""

    SMALL = "small"
    LARGE = "large"


class TierReason(StrEnum):
    """Why the large model was chosen; the values are the sentences that a footnote shows."""

    CONTESTED = "the last answer was contested"
    LAST_FAILED = "the last answer held claims without evidence, or failed"
    MANY_ROUNDS = "the question has taken several rounds of tool calls"
    LONG_CONTEXT = "the conversation is long"
    ACTION = "the question asks for a change"
    REASONING = "the question asks for an explanation or a judgement"
    SEVERAL_PARTS = "the question has several parts"
    LONG_QUESTION = "the question is long"
    FOLLOW_UP = "it follows up on an answer of the large model"
    SIMPLE = "nothing asks for the large model"


@dataclass(frozen=True, slots=True)
class QuestionFeatures:
    """What the rule reads of a question."""

    words: int
    parts: int
    reasons: bool
    acts: bool
    contests: bool
    refers_back: bool


@dataclass(frozen=True, slots=True)
class TierChoice:
    """The decision and its one reason."""

    tier: Tier
    reason: TierReason


LONG_QUESTION_WORDS = 60
LONG_CONTEXT_TOKENS = 32_000
MANY_ROUNDS = 3

_LINE = re.compile(r"\[\d{1,3}\]")
_SPLIT = re.compile("|".join((r"\?|;|\n+", *(each.pattern for each in phrases("questions", "goes_on")))), re.IGNORECASE)


def features_of(question: str) -> QuestionFeatures:
    """Read a question, which is at most `contracts.ports.MAX_QUESTION_CHARACTERS` long."""
    order = read_order(question)
    contests = says(question, "questions", "contests") and not says(question, "questions", "counts")
    return QuestionFeatures(
        words=len(question.split()),
        parts=sum(1 for part in _SPLIT.split(question) if len(part.split()) >= 2) or 1,
        reasons=says(question, "questions", "reasons"),
        acts=order is not None and order.act not in (Act.HOW, Act.REFUSED),
        contests=contests,
        refers_back=says(question, "questions", "refers_back") or _LINE.search(question) is not None,
    )


def choose_tier(
    question: QuestionFeatures,
    *,
    last_tier: Tier | None = None,
    last_failed: bool = False,
    rounds: int = 0,
    context_tokens: int = 0,
) -> TierChoice:
    """The tier for the next request, by the question and what the conversation knows of itself: `rounds` of tool calls
    of this turn so far, `context_tokens` that would be sent. Total and monotonic: a further reason never leads back to
    the small model."""
    reasons = {
        TierReason.CONTESTED: question.contests and last_tier is not None,
        TierReason.LAST_FAILED: last_failed,
        TierReason.MANY_ROUNDS: rounds >= MANY_ROUNDS,
        TierReason.LONG_CONTEXT: context_tokens > LONG_CONTEXT_TOKENS,
        TierReason.ACTION: question.acts,
        TierReason.REASONING: question.reasons,
        TierReason.SEVERAL_PARTS: question.parts > 1,
        TierReason.LONG_QUESTION: question.words > LONG_QUESTION_WORDS,
        TierReason.FOLLOW_UP: question.refers_back and last_tier is Tier.LARGE,
    }
    reason = next((reason for reason, holds in reasons.items() if holds), None)
    return TierChoice(Tier.SMALL, TierReason.SIMPLE) if reason is None else TierChoice(Tier.LARGE, reason)
