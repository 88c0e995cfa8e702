"""What the real services refuse in a request for a chat completion or for embeddings, so that the fake refuses it too.

Returns the sentence of the refusal, None for a request that is fine. Also what this product has promised never to send
(`strict`, `parallel_tool_calls`), which a service would take.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_FIELDS = frozenset(
    {
        "model",
        "messages",
        "tools",
        "tool_choice",
        "response_format",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "store",
        "stream",
        "stream_options",
    }
)


def request_fault(body: Any, *, of_others: bool = False) -> str | None:
    """The first thing that is wrong with a request body. With `of_others` what services take and this product never
    sends is fine: no text beside tool calls, parameters of other clients."""
    if not isinstance(body, Mapping):
        return "We could not parse the JSON body of your request."
    return next(_faults(body, of_others), None)


def embedding_fault(body: Any) -> str | None:
    """The first thing that is wrong with the body of an embeddings request."""
    if not isinstance(body, Mapping):
        return "We could not parse the JSON body of your request."
    for name in sorted(set(body) - {"model", "input", "dimensions", "encoding_format"}):
        return f"Unknown parameter: '{name}'."
    texts = body.get("input")
    if not isinstance(texts, list) or not 1 <= len(texts) <= 2_048:
        return "'input' must be an array of 1 to 2048 texts."
    if not all(isinstance(text, str) and text for text in texts):
        return "'$.input' is invalid: an empty text."
    return None


def _faults(body: Mapping[str, Any], of_others: bool) -> Iterator[str]:
    for name in sorted(set(body) - _FIELDS) if not of_others else ():
        yield f"Unknown parameter: '{name}'."
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "you must provide a model parameter"
    if body.get("stream_options") is not None and not body.get("stream"):
        yield "The 'stream_options' parameter is only allowed when 'stream' is enabled."
    if "max_tokens" in body and "max_completion_tokens" in body:
        yield "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
    if body.get("tool_choice") is not None and not body.get("tools"):
        yield "'tool_choice' is only allowed when 'tools' are specified."
    for tool in body.get("tools") or ():
        function = tool.get("function", {})
        if not of_others and ("strict" in function or "strict" in tool):
            yield "strict is never sent"
        if not _NAME.fullmatch(str(function.get("name"))):
            yield "Invalid 'tools[0].function.name': string does not match pattern."
        if function.get("parameters", {}).get("type") != "object":
            yield "Invalid schema for function: schema must be a JSON Schema of 'type: \"object\"'."
    yield from _message_faults(body.get("messages"), of_others)


def _message_faults(messages: Any, of_others: bool) -> Iterator[str]:
    if not isinstance(messages, list) or not messages:
        yield "Invalid 'messages': empty array. Expected an array with minimum length 1."
        return
    waiting: set[str] = set()
    seen: set[str] = set()
    for message in messages:
        role = message.get("role")
        wordless = of_others and message.get("content") is None and message.get("tool_calls")
        if not wordless and not isinstance(message.get("content"), str):
            yield "Invalid value for 'content': expected a string, got null."
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                yield "Invalid parameter: messages with role 'tool' must be a response to a preceding message."
            waiting.discard(message.get("tool_call_id"))
            continue
        if waiting:
            yield "An assistant message with 'tool_calls' must be followed by tool messages responding to each id."
        if role not in ("system", "user", "assistant"):
            yield f"Invalid value: {role!r}."
        for call in message.get("tool_calls") or ():
            function = call.get("function", {})
            if not _NAME.fullmatch(str(function.get("name"))):
                yield "Invalid 'messages.tool_calls.function.name': string does not match pattern."
            if not isinstance(function.get("arguments"), str):
                yield "Invalid type for 'messages.tool_calls.function.arguments': expected a string."
            if not call.get("id") or call["id"] in seen:
                yield "Duplicate or empty tool call id."
            seen.add(call.get("id"))
            waiting.add(call.get("id"))
    if waiting:
        yield "An assistant message with 'tool_calls' must be followed by tool messages responding to each id."
