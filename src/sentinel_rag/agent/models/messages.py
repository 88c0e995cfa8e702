"""What is said between the agent and a model: four kinds of message, in our own words.

Frozen values without a wire: `wire_requests` writes them for a provider, `answer_parts` builds the assistant's out of
what a provider sends. A conversation is a sequence of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sentinel_rag.contracts.json_values import JsonObject


class CallProblem(StrEnum):
    """Why a call that a model made must not run. Each is answered to the model, never repaired by guessing."""

    NO_ARGUMENTS_OBJECT = "no_arguments_object"
    CUT_OFF = "cut_off"
    UNKNOWN_TOOL = "unknown_tool"


@dataclass(frozen=True, slots=True)
class ModelToolCall:
    """One tool call of a model, safe to be replayed: `call_id` is unique in the conversation and `name` is legal on
    the wire, whatever the provider sent.

    `arguments` is the parsed object, None exactly if `problem` says so. `arguments_text` is what the model wrote, at
    most MAX_ARGUMENTS_CHARACTERS long. With a `problem` the call is not run: `explanation` is its tool result.
    """

    call_id: str
    name: str
    arguments: JsonObject | None
    arguments_text: str
    problem: CallProblem | None = None
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class SystemMessage:
    """The rules of the conversation; the first message, and the only one of its kind."""

    text: str


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What a person asked."""

    text: str


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """What the model said: text, tool calls, or both."""

    text: str = ""
    tool_calls: tuple[ModelToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolResultMessage:
    """The answer to one tool call of the assistant message before it."""

    call_id: str
    text: str


ModelMessage = SystemMessage | UserMessage | AssistantMessage | ToolResultMessage

MAX_ARGUMENTS_CHARACTERS = 100_000
"""The longest arguments text of one call that is read; a longer one is a broken answer."""


def call_ids(messages: Sequence[ModelMessage]) -> frozenset[str]:
    """Every call id that a conversation holds, so that new ones differ."""
    return frozenset(
        call.call_id for message in messages if isinstance(message, AssistantMessage) for call in message.tool_calls
    )
