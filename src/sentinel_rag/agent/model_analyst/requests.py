"""One request to a model, as a turn needs it: the conversation fitted, the tier chosen, the usage counted.

Asks once more where another request can be answered: with the rows defanged if the provider's filter stopped them, with
fewer turns if the context was too long. Never after a call that may have changed something.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from msgspec.structs import replace

from sentinel_rag.agent.history import Budget
from sentinel_rag.agent.instruction_text import reads_like_instruction
from sentinel_rag.agent.model_analyst.turn import Turn
from sentinel_rag.agent.models.failures import ContextOverflowError, ModelError, PromptFilteredError
from sentinel_rag.agent.models.port import (
    ChatModel,
    Finished,
    FinishReason,
    ModelMessage,
    ModelRequest,
    SystemMessage,
    ToolChoice,
    ToolResultMessage,
    UserMessage,
    complete,
)
from sentinel_rag.agent.models.retrying import RetryingModel
from sentinel_rag.agent.models.tiers import Tier, choose_tier
from sentinel_rag.agent.prompts import prompt
from sentinel_rag.agent.tokens import count_message, count_tool
from sentinel_rag.contracts.errors import ConfigurationError

OVERFLOW_SHARE = 0.5
"""What is left of a conversation that was too long for the model, where the provider did not say what it reads."""
_MARGIN = 0.9
LONGEST_KEPT = 80
"""Characters of a text with spaces that are kept: titles and names are shorter, command lines and scripts longer."""
_CELL = re.compile(r"^(\s*(?:\[c\d+(?:\.\d+)?\]\s|[\w ]{1,40}(?:: |=))?)(.*)$")
"""What stands before a value: the number of its row, or its column."""
_ENCODED = re.compile(r"[A-Za-z0-9+/=_-]{64,}")
_HASH_OR_PATH = re.compile(r"[0-9a-fA-F]{64}|[0-9a-fA-F]{128}|/subscriptions/\S*", re.IGNORECASE)
_COMMAND = re.compile(
    r"(?:powershell|cmd(?:\.exe)?\s|/c\s|wscript|mshta|rundll32|regsvr32|certutil|bash\s+-|curl\s|wget\s|<script|"
    r"javascript:|\bunion\s+select\b|\bdrop\s+table\b|\$\(|\|\||&&|invoke-|iex\b|-enc\b|mimikatz)",
    re.IGNORECASE,
)


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
        memory = turn.memory
        messages, tokens = _messages(turn, extra)
        turn.tier = choose_tier(
            turn.features,
            last_tier=memory.last_tier,
            last_failed=memory.last_failed,
            rounds=turn.rounds,
            context_tokens=tokens,
        )
        model = RetryingModel(models.of(turn.tier.tier), budget=turn.retries)
        request = ModelRequest(messages, turn.tools, tool_choice, memory.history.budget.response)
        if shown:
            turn.begin_text()
        try:
            listen = turn.hear if shown else lambda _: None
            finished = await complete(model, request, deadline=turn.deadline, listen=listen)
        except ModelError as failure:
            turn.usage += failure.usage
            if _another_way(turn, failure, messages):
                continue
            raise
        _count(turn, finished, messages)
        if finished.reason is FinishReason.CONTENT_FILTER and _defang(turn, messages):
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
    return _defanged_messages(messages) if memory.defanged else messages, fitted.tokens + more


def _another_way(turn: Turn, failure: ModelError, messages: Sequence[ModelMessage]) -> bool:
    """Change what is sent next, if that can help; False if it cannot."""
    if isinstance(failure, PromptFilteredError) and _defang(turn, messages):
        return True
    if isinstance(failure, ContextOverflowError) and not turn.acted and not turn.shortened:
        turn.shortened = True
        return _shorten(turn, failure)
    # The adapter gives up once text came. Here what was shown of it is taken back, so nothing is said twice.
    return failure.delivered and failure.retry_possible and not turn.acted and turn.retries.take()


def _defang(turn: Turn, messages: Sequence[ModelMessage]) -> bool:
    """Send rows defanged from now on; False if none were sent as they are, so that they are not what the filter
    stopped."""
    rows = any(isinstance(message, ToolResultMessage) for message in messages)
    if not rows or turn.memory.defanged or turn.acted:
        return False
    turn.memory.defanged = True
    turn.say("The provider's filter stopped texts of the rows; asking again without them...")
    return True


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


def _count(turn: Turn, finished: Finished, messages: Sequence[ModelMessage]) -> None:
    """Add the usage of an answer; where the provider counted nothing, count here."""
    turn.usage += finished.usage
    if finished.usage.uncounted:
        counter = turn.memory.history.counter
        sent = sum(count_message(message, counter) for message in messages)
        sent += sum(count_tool(tool, counter) for tool in turn.tools)
        turn.uncounted_tokens += sent + counter.count(finished.message.text)


def _defanged_messages(messages: Sequence[ModelMessage]) -> tuple[ModelMessage, ...]:
    return tuple(
        replace(message, text=defanged(message.text)) if isinstance(message, ToolResultMessage) else message
        for message in messages
    )


def defanged(text: str) -> str:
    """A result as `answers.view` writes it, whole or cut, without what trips a provider's content filter: attack text,
    encoded payloads, long free text. Each such value is replaced by its length. Ids, numbers, times, addresses and
    short names stay: an answer can still be checked against the rows."""
    return "\n".join(" | ".join(map(_defanged_cell, line.split(" | "))) for line in text.split("\n"))


def _defanged_cell(cell: str) -> str:
    found = _CELL.match(cell)
    before, value = (found[1], found[2]) if found else ("", cell)
    dangerous = (
        (len(value) > LONGEST_KEPT and " " in value)
        or (_ENCODED.search(value) and not _HASH_OR_PATH.fullmatch(value))
        or _COMMAND.search(value)
        or reads_like_instruction(value)
    )
    return f"{before}[text of {len(value)} characters left out]" if dangerous else cell
