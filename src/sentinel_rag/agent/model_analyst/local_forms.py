"""What models behind local servers leave in their text that belongs elsewhere: their reasoning, and calls of tools.

A server with a parser for its model takes both out; many run without one. Reasoning is no answer and is dropped. A call
is taken up only if the text is nothing but calls of tools that read: a model may quote a row, and a row must not be
able to change anything by looking like a call. Arguments are read as they stand and never repaired.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

from msgspec.structs import replace

from sentinel_rag.agent.models.port import AssistantMessage, ModelToolCall

MOST_CALLS = 16
_REASONING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_TAGGED = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)
_NAMED = re.compile(r"<function=([\w-]{1,64})>\s*(.*?)\s*</function>", re.DOTALL)
_PREFIX = re.compile(r"^(?:\[TOOL_CALLS\]|<\|python_tag\|>)\s*")
_FENCE = re.compile(r"^```(?:json)?\s*(.*?)\s*```$", re.DOTALL)


def without_reasoning(text: str, *, growing: bool = False) -> str:
    """`text` without blocks of reasoning; one that never ends takes everything behind it along. Where the text is still
    `growing`, the blank around it stays: a longer text begins with what a shorter one gave."""
    if "<" not in text:
        return text
    left = _REASONING.sub("", text)
    return left if growing else left.strip()


def with_calls(message: AssistantMessage, reading: Collection[str]) -> AssistantMessage:
    """The message with the calls that its text consists of as calls; unchanged if it has any, or is something else."""
    if message.tool_calls:
        return message
    found = _calls_in(message.text.strip())
    if not found or len(found) > MOST_CALLS or any(name not in reading for name, _ in found):
        return message
    calls = tuple(
        ModelToolCall(f"call_text_{place}", name, arguments, json.dumps(arguments))
        for place, (name, arguments) in enumerate(found, start=1)
    )
    return replace(message, text="", tool_calls=calls)


def written_call(text: str, names: Collection[str]) -> str:
    """The name of the first tool of `names` that `text` calls in writing and does nothing else; empty for any other."""
    return next((name for name, _ in _calls_in(text.strip()) if name in names), "")


def _calls_in(text: str) -> list[tuple[str, dict[str, Any]]]:
    """The calls, if `text` is nothing else."""
    if not text or text[0] not in "<[{`":
        return []
    if not _TAGGED.sub("", text).strip():
        return _read([_json(found) for found in _TAGGED.findall(text)])
    if not _NAMED.sub("", text).strip():
        return _read([{"name": name, "arguments": _json(given)} for name, given in _NAMED.findall(text)])
    text = _PREFIX.sub("", text)
    fenced = _FENCE.match(text)
    value = _json(fenced[1] if fenced else text)
    return _read(value if isinstance(value, list) else [value])


def _read(values: list[Any]) -> list[tuple[str, dict[str, Any]]]:
    """Name and arguments of each value; nothing if one of them is no call."""
    found: list[tuple[str, dict[str, Any]]] = []
    for value in values:
        if not isinstance(value, dict) or not set(value) <= {"name", "arguments", "parameters", "id", "type"}:
            return []
        name, arguments = value.get("name"), value.get("arguments", value.get("parameters"))
        if not isinstance(name, str) or not isinstance(arguments, dict):
            return []
        found.append((name, arguments))
    return found


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
