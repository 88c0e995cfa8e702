"""Messages as JSON values, for the conversation store, and back.

What is read was written by an earlier version or by somebody's editor, so anything that does not fit gives None and is
left out by the caller; a conversation never fails because of its past.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from sentinel_rag.contracts.json_values import JsonObject


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
