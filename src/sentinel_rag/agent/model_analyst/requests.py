"""One request to a model, as a turn needs it: the conversation fitted, the tier chosen, the usage counted.

Asks once more where another request can be answered: with the rows defanged if the provider's filter stopped them, with
fewer turns if the context was too long. Never after a call that may have changed something.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sentinel_rag.agent.history.fitting import Budget
from sentinel_rag.agent.model_analyst.defanging import defanged_messages
from sentinel_rag.agent.model_analyst.turn import Turn
from sentinel_rag.agent.models.failures import ContextOverflowError, ModelError, PromptFilteredError
from sentinel_rag.agent.models.port import (
    ChatModel,
    Finished,
    FinishReason,
    ModelEvent,
    ModelMessage,
    ModelRequest,
    ModelUsage,
    SystemMessage,
    ToolChoice,
    ToolResultMessage,
    UserMessage,
    complete,
)
from sentinel_rag.agent.models.retrying import RetryingModel
from sentinel_rag.agent.models.tiers import Tier, TierHistory, choose_tier
from sentinel_rag.agent.prompts import prompt
from sentinel_rag.agent.tokens import count_message, count_tool
from sentinel_rag.contracts.errors import ConfigurationError

OVERFLOW_SHARE = 0.5
"""What is left of a conversation that was too long for the model, where the provider did not say what it reads."""
_MARGIN = 0.9


class TieredModels(Protocol):
    """A model for each tier; both can be the same."""

    def of(self, tier: Tier) -> ChatModel: ...


async def ask(
    models: TieredModels,
    turn: Turn,
    *,
    tool_choice: ToolChoice = ToolChoice.AUTO,
    extra: Sequence[ModelMessage] = (),
    shown: bool = True,
) -> Finished:
    """The model's answer to the conversation so far. `extra` stands behind it for this request alone. With `shown` the
    text is shown as it comes, in the place of what was shown before.

    Raises ModelError; what was spent is counted in `turn` in any case.
    """
    while True:
        messages, tokens = _messages(turn, extra)
        turn.tier = choose_tier(
            turn.features,
            TierHistory(turn.memory.last_tier, turn.memory.last_failed, turn.rounds, tokens),
        )
        model = RetryingModel(models.of(turn.tier.tier), budget=turn.retries)
        request = ModelRequest(messages, turn.tools, tool_choice, turn.memory.history.budget.response)
        if shown:
            turn.begin_text()
        try:
            listen = turn.hear if shown else _unheard
            finished = await complete(model, request, deadline=turn.deadline, listen=listen)
        except ModelError as failure:
            turn.usage += failure.usage
            if _another_way(turn, failure, messages):
                continue
            raise
        _count(turn, finished.usage, messages, finished.message.text)
        if finished.reason is FinishReason.CONTENT_FILTER and _can_defang(turn, messages):
            _defang(turn)
            continue
        return finished


def _messages(turn: Turn, extra: Sequence[ModelMessage]) -> tuple[tuple[ModelMessage, ...], int]:
    memory = turn.memory
    if memory.defanged:
        extra = (*extra, UserMessage(prompt("rows_shortened").text))
    fitted = memory.history.fitted(SystemMessage(turn.rules.text), turn.tools)
    turn.warning = fitted.warning or turn.warning
    messages = (*fitted.messages, *extra)
    more = sum(count_message(message, memory.history.counter) for message in extra)
    return defanged_messages(messages) if memory.defanged else messages, fitted.tokens + more


def _unheard(event: ModelEvent) -> None:
    """Hear nothing of what is written: it is no answer to show."""


def _another_way(turn: Turn, failure: ModelError, messages: Sequence[ModelMessage]) -> bool:
    """Change what is sent next, if that can help; False if it cannot."""
    match failure:
        case PromptFilteredError() if _can_defang(turn, messages):
            _defang(turn)
            return True
        case ContextOverflowError() if not turn.acted and not turn.shortened:
            turn.shortened = True
            return _shorten(turn, failure)
        case _:
            # The adapter gives up once text came. Here what was shown of it is taken back, so nothing is said twice.
            return failure.delivered and failure.retry_possible and not turn.acted and turn.retries.take()


def _can_defang(turn: Turn, messages: Sequence[ModelMessage]) -> bool:
    """True if rows were sent as they are, so that they can be what the filter stopped."""
    rows = any(isinstance(message, ToolResultMessage) for message in messages)
    return rows and not turn.memory.defanged and not turn.acted


def _defang(turn: Turn) -> None:
    turn.memory.defanged = turn.defanged = True
    turn.say("The provider's filter stopped texts of the rows; asking again without them...")


def _shorten(turn: Turn, failure: ContextOverflowError) -> bool:
    """Let the conversation be only as long as the model reads; it stays so."""
    history = turn.memory.history
    total = int((failure.limit_tokens or history.budget.total * OVERFLOW_SHARE) * _MARGIN)
    if total >= history.budget.total:  # it counts other than we do
        total = int(history.budget.total * OVERFLOW_SHARE)
    before = history.budget
    try:
        history.budget = Budget.of_context(total, turns=before.turns)
        history.fitted(SystemMessage(turn.rules.text), turn.tools)
    except (ValueError, ConfigurationError):  # not even rules and tools fit: the model is too small for this work
        history.budget = before
        return False
    turn.say("The conversation is too long for the model; asking again with less of it...")
    return True


def _count(turn: Turn, usage: ModelUsage, messages: Sequence[ModelMessage], said: str) -> None:
    """Add the usage of an answer; where the provider counted nothing, count here."""
    turn.usage += usage
    if usage.uncounted:
        counter = turn.memory.history.counter
        sent = sum(count_message(message, counter) for message in messages)
        sent += sum(count_tool(tool, counter) for tool in turn.tools)
        turn.uncounted_tokens += sent + counter.count(said)
