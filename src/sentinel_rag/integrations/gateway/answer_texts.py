"""What a model is told of an answer: texts, for every framework the same.

A block is told in the words of the source template, with the gateway's reason code and what to do; everything else that
gave no result is `Result: SYSTEM_ERROR: ...`, so that the conversation goes on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, assert_never

from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.handles import as_text
from sentinel_rag.integrations.gateway.answers import Answer, Blocked, NotRun, Ran

MAX_CHARACTERS = 100_000
"""Of a result that a model is told, unless the caller says otherwise."""

_STEPS: Mapping[str, str] = {
    Reason.NO_RULE_MATCHED: "No rule allows these arguments. Tell the user, or ask for something that is allowed.",
    Reason.RULE_DENIES: "Calling again changes nothing. Tell the user, or ask for something that is allowed.",
    Reason.CONDITION_UNDECIDED: "An argument that the rules need is missing. Name it, or tell the user.",
    Reason.SINK_LABEL: "This conversation has read what may not leave. Tell the user that it takes a new conversation.",
    Reason.UNKNOWN_TOOL: "There is no such tool. Use one that is offered.",
    Reason.TOOL_QUARANTINED: "An administrator has to look at this tool. Tell the user.",
    Reason.TOOL_SWITCHED_OFF: "The operator has not switched this tool on. Tell the user.",
    Reason.MISSING_SCOPE: "The agent's key may not do this. Tell the user.",
}


def told_to_model(tool_name: str, answer: Answer, *, max_characters: int = MAX_CHARACTERS) -> str:
    """The text for the model. `tool_name` is the tool that was called."""
    match answer:
        case Ran(result):
            return result_text(result, max_characters)
        case Blocked():
            return f"{block_text(tool_name, answer.detail)} {block_step(answer)}"
        case NotRun():
            return f"Result: SYSTEM_ERROR: {error_text(answer)}"
        case _:
            assert_never(answer)


def block_message(tool_name: str) -> str:
    return f"Tool '{tool_name}' was blocked by a security policy."


def block_text(tool_name: str, reason: str) -> str:
    """The source template's sentence."""
    return f"{block_message(tool_name)} Reason: {reason}"


def block_step(block: Blocked) -> str:
    """What to do about a block, with its stable code."""
    code = f"[{block.reason}] " if block.reason else ""
    if block.waits_for_a_person:
        return (
            f"{code}A person has to allow exactly this call first (approval {block.approval_id}). Tell the user; once "
            "it is approved, call again with the same arguments."
        )
    step = block.note or _STEPS.get(block.reason, "Tell the user, or ask for something that is allowed.")
    return f"{code}{step}"


def error_text(answer: NotRun) -> str:
    """Why there is no result, in one line."""
    return " ".join(part for part in (answer.message, *answer.hints, answer.next_step) if part)


def result_text(result: Any, max_characters: int = MAX_CHARACTERS) -> str:
    """A result for a model: texts as they are, anything else as JSON, hidden values as placeholders."""
    value = as_text(result)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= max_characters:
        return text
    return (
        f"{text[:max_characters]}\n[Cut: the first {max_characters} of {len(text)} characters. Ask for less, or for "
        "the next part, with the tool's own arguments.]"
    )
