"""One turn of a conversation: the question, what the assistant said and called, what came back, the answer.

A turn is the unit of everything above: it is kept, shortened or left out whole, so that no call is ever parted from its
result. Knows no budget. Messages are stored as JSON values; what is read back was written by an earlier version or by
somebody's editor, so anything that does not fit gives None and is left out: no conversation fails because of its past.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sentinel_rag.agent.models import (
    AssistantMessage,
    CallProblem,
    ModelMessage,
    ModelToolCall,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from sentinel_rag.agent.tokens import TokenCounter, count_message
from sentinel_rag.contracts.json_values import JsonObject

STOPPED_CALL = "This call was stopped before its result came. Nothing is known of it."
STOPPED_ANSWER = "(This question was stopped before it was answered.)"


@dataclass(frozen=True, slots=True)
class Counted:
    """A message with its tokens, counted once."""

    message: ModelMessage
    tokens: int

    @classmethod
    def of(cls, message: ModelMessage, counter: TokenCounter) -> Counted:
        return cls(message, count_message(message, counter))

    @property
    def is_result(self) -> bool:
        """True for what a tool returned."""
        return isinstance(self.message, ToolResultMessage)


@dataclass(slots=True)
class Turn:
    """The messages of one turn, in order; the first is the question."""

    messages: list[Counted] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        return sum(each.tokens for each in self.messages)

    @property
    def result_tokens(self) -> int:
        """Tokens of what the tools returned."""
        return sum(each.tokens for each in self.messages if each.is_result)

    def waiting(self) -> tuple[str, ...]:
        """The ids of the calls that have no result yet, in the model's order."""
        waiting: list[str] = []
        for each in self.messages:
            match each.message:
                case AssistantMessage(tool_calls=calls):
                    waiting = [call.call_id for call in calls]
                case ToolResultMessage(call_id=call_id):
                    waiting.remove(call_id)
                case SystemMessage() | UserMessage():
                    pass
        return tuple(waiting)

    def call_ids(self) -> Iterator[str]:
        """Every call id of the turn."""
        for each in self.messages:
            if isinstance(each.message, AssistantMessage):
                yield from (call.call_id for call in each.message.tool_calls)

    def refusal(self, message: ModelMessage) -> str:
        """Why `message` cannot come next; empty if it can."""
        waiting = self.waiting()
        match message:
            case SystemMessage():
                return "the rules are given to fitted(), not added"
            case ToolResultMessage(call_id=call_id):
                return "" if call_id in waiting else f"the result {call_id!r} answers no call that waits"
            case UserMessage() | AssistantMessage() if waiting:
                return f"the call {waiting[0]!r} has no result yet"
            case AssistantMessage(tool_calls=calls):
                ids = [call.call_id for call in calls]
                known = set(self.call_ids())
                twice = next((each for place, each in enumerate(ids) if each in known or each in ids[:place]), None)
                return "" if twice is None else f"the call id {twice!r} is used twice"
            case UserMessage():
                return ""

    @property
    def answered(self) -> bool:
        """True if the turn ends in words of the assistant."""
        last = self.messages[-1].message
        return isinstance(last, AssistantMessage) and not last.tool_calls

    def closing(self) -> tuple[ModelMessage, ...]:
        """What makes a turn that was stopped valid: a result for each call, and a word instead of the answer."""
        results = tuple(ToolResultMessage(call_id, STOPPED_CALL) for call_id in self.waiting())
        return results if self.answered else (*results, AssistantMessage(STOPPED_ANSWER))


def with_text(message: ModelMessage, text: str) -> ModelMessage:
    """The same message with another text."""
    return replace(message, text=text)


def message_to_dict(message: ModelMessage) -> JsonObject:
    """The stored form of one message."""
    match message:
        case SystemMessage(text):
            return {"role": "system", "text": text}
        case UserMessage(text):
            return {"role": "user", "text": text}
        case ToolResultMessage(call_id, text):
            return {"role": "tool", "call_id": call_id, "text": text}
        case AssistantMessage(text, calls):
            return {"role": "assistant", "text": text, "calls": [_call_to_dict(call) for call in calls]}


def message_from_dict(stored: Any) -> ModelMessage | None:
    """The message of a stored form; None if it is none."""
    try:
        text = _text(stored["text"])
        match stored["role"]:
            case "system":
                return SystemMessage(text)
            case "user":
                return UserMessage(text)
            case "tool":
                return ToolResultMessage(_text(stored["call_id"]), text)
            case "assistant":
                return AssistantMessage(text, tuple(map(_call_from_dict, stored["calls"])))
            case _:
                return None
    except (KeyError, TypeError, ValueError):
        return None


def _call_to_dict(call: ModelToolCall) -> JsonObject:
    return {
        "id": call.call_id,
        "name": call.name,
        "arguments": call.arguments,
        "text": call.arguments_text,
        "problem": None if call.problem is None else call.problem.value,
        "explanation": call.explanation,
    }


def _call_from_dict(stored: Mapping[str, Any]) -> ModelToolCall:
    arguments, problem = stored["arguments"], stored["problem"]
    if not (arguments is None or isinstance(arguments, Mapping)):
        raise TypeError("arguments are an object")
    return ModelToolCall(
        _text(stored["id"]),
        _text(stored["name"]),
        arguments,
        _text(stored["text"]),
        None if problem is None else CallProblem(problem),
        _text(stored["explanation"]),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a text is expected")
    return value
