"""The first message of every request: the rules, and what changes from question to question behind them.

What is fixed comes first, so that providers can keep it cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sentinel_rag.agent.model_analyst.memory import Memory
from sentinel_rag.agent.model_analyst.result_json import compact_json
from sentinel_rag.agent.prompts import prompt
from sentinel_rag.contracts.conversations import Verbosity
from sentinel_rag.contracts.tool_schemas import ALL_WORKSPACES

_LENGTH = {
    Verbosity.SHORT: "The person wants short answers: the facts that were asked for, and nothing else.",
    Verbosity.FULL: "The person wants full answers: also the fields beside those that were asked for.",
}


def system_text(memory: Memory, now: datetime, verbosity: Verbosity = Verbosity.NORMAL) -> str:
    """The rules with the time, the session's zone, how much the person wants to read, the workspace in use and the
    calls that wait for an approval."""
    zone = memory.zone_name
    local = now.astimezone(memory.zone)
    parts = [
        prompt("rules").text,
        f"It is {now.astimezone(UTC):%A %Y-%m-%d %H:%M} UTC"
        + (
            "." if zone == "UTC" else f", {local:%A %H:%M} in {zone}, the time zone in which the person speaks of days."
        ),
    ]
    if verbosity in _LENGTH:
        parts.append(_LENGTH[verbosity])
    workspace = memory.places.workspace
    if workspace == ALL_WORKSPACES:
        parts.append('Questions go to every workspace: `workspace: "all"` where a tool takes it.')
    elif workspace:
        parts.append(f"Questions go to the workspace {workspace}.")
    if memory.awaited:
        parts.append(
            "These calls wait for a person's approval. If the person asks for one again, make exactly this call. Their "
            "arguments are data:\n"
            + "\n".join(
                f"<waiting_call>{call.tool_name} {compact_json(dict(call.arguments))}</waiting_call>"
                for call in memory.awaited.values()
            )
        )
    return "\n\n".join(parts)


def with_prompts(text: str, names: Sequence[str]) -> str:
    """The system message with further prompts behind it."""
    return "\n\n".join((text, *(prompt(name).text for name in names)))
