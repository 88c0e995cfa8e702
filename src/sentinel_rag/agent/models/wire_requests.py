"""A `ModelRequest` as the body of a chat completions request: the only place that knows that form.

What a server takes differs by small optional fields. A `Dialect` says which are sent; when a server refuses one by
name, `without` gives the dialect that does without it. Never sent: `strict`, `parallel_tool_calls`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sentinel_rag.agent.models.messages import (
    AssistantMessage,
    ModelMessage,
    ModelToolCall,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from sentinel_rag.agent.models.port import ModelRequest, ToolChoice
from sentinel_rag.contracts.tool_calls import ToolSchema

_REASONING = re.compile(r"(?:^|/)(?:o\d|gpt-5)", re.IGNORECASE)
_UNREADABLE = "unreadable_arguments"


@dataclass(frozen=True, slots=True)
class Dialect:
    """Which optional fields a server takes. `output_limit` is the name of the field for the answer's length."""

    output_limit: str | None = "max_tokens"
    temperature: bool = True
    stream: bool = True
    stream_options: bool = True
    store: bool = True
    tool_choice: bool = True
    response_format: bool = True

    def without(self, parameter: str) -> Dialect | None:
        """The dialect for a server that refused `parameter`; None if that field cannot be left out."""
        if parameter in _LENGTHS:
            return replace(self, output_limit=_LENGTHS[parameter]) if parameter == self.output_limit else None
        if getattr(self, parameter, None) is not True:
            return None
        # Without a stream there are no options of one.
        left_out: dict[str, Any] = {parameter: False} | ({"stream_options": False} if parameter == "stream" else {})
        return replace(self, **left_out)


_LENGTHS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": None}
"""The next name to try of the field for the answer's length."""


def openai_dialect(model: str) -> Dialect:
    """What OpenAI and Azure take: reasoning models, told by their names, have no temperature. A deployment may have
    any name; then the server's refusal tells."""
    return Dialect(output_limit="max_completion_tokens", temperature=_REASONING.search(model) is None)


def compatible_dialect(model: str) -> Dialect:
    """What other servers take: the older name of the length field."""
    return Dialect(temperature=_REASONING.search(model) is None)


def request_body(request: ModelRequest, model: str, dialect: Dialect) -> dict[str, Any]:
    """The JSON body. Values are plain, and text is valid Unicode, whatever a log row held."""
    body: dict[str, Any] = {"model": model, "messages": [_message(message) for message in request.messages]}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        if request.tool_choice is not ToolChoice.AUTO and dialect.tool_choice:
            body["tool_choice"] = request.tool_choice.value
    if dialect.output_limit is not None:
        body[dialect.output_limit] = request.max_output_tokens
    if dialect.temperature:
        body["temperature"] = 0.0
    if dialect.store:
        body["store"] = False  # the provider keeps no copy of an analyst's question
    if request.response_schema is not None and dialect.response_format:
        schema = {"name": "answer", "schema": _plain(request.response_schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    body["stream"] = dialect.stream
    if dialect.stream and dialect.stream_options:
        body["stream_options"] = {"include_usage": True}
    return body


def _message(message: ModelMessage) -> dict[str, Any]:
    match message:
        case SystemMessage(text):
            return {"role": "system", "content": _clean(text)}
        case UserMessage(text):
            return {"role": "user", "content": _clean(text)}
        case ToolResultMessage(call_id, text):
            return {"role": "tool", "tool_call_id": call_id, "content": _clean(text)}
        case AssistantMessage(text, calls):
            said: dict[str, Any] = {"role": "assistant", "content": _clean(text)}  # "" and not null: some refuse null
            if calls:
                said["tool_calls"] = [_call(call) for call in calls]
            return said


def _call(call: ModelToolCall) -> dict[str, Any]:
    """A call as it is replayed. Many servers parse the arguments of old calls and refuse all if one is no object."""
    arguments = {_UNREADABLE: call.arguments_text[:500]} if call.arguments is None else _plain(call.arguments)
    text = json.dumps(arguments, ensure_ascii=True)
    return {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": text}}


def _tool(tool: ToolSchema) -> dict[str, Any]:
    function = {"name": tool.name, "description": _clean(tool.description), "parameters": _plain(tool.parameters)}
    return {"type": "function", "function": function}


def _plain(value: Any) -> Any:
    """`value` in dicts and lists, so that any JSON encoder takes it."""
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, Mapping):
        return {_clean(str(key)): _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, Sequence) else value


def _clean(text: str) -> str:
    """`text` without lone surrogates, which have no UTF-8 form."""
    return text.encode("utf-8", "replace").decode("utf-8")
