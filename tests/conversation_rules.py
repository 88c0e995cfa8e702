"""Whether a provider accepts a conversation: every call answered, in its place, under an id of its own.

Providers refuse the whole request for one orphan.
"""

from __future__ import annotations

from collections.abc import Sequence

from sentinel_rag.agent.models.port import AssistantMessage, ModelMessage, SystemMessage, ToolResultMessage


def conversation_faults(messages: Sequence[ModelMessage]) -> tuple[str, ...]:
    """What a provider would refuse, one sentence each; empty for a conversation that can be sent."""
    faults: list[str] = []
    known: set[str] = set()
    waiting: list[str] = []
    for place, message in enumerate(messages):
        if isinstance(message, ToolResultMessage):
            if message.call_id in waiting:
                waiting.remove(message.call_id)
            else:
                faults.append(f"message {place}: the result {message.call_id!r} answers no call just before it")
            continue
        faults += [f"message {place}: the call {call_id!r} before it has no result" for call_id in waiting]
        waiting = []
        if isinstance(message, SystemMessage) and place:
            faults.append(f"message {place}: the rules stand first and once")
        if isinstance(message, AssistantMessage):
            if not message.text and not message.tool_calls:
                faults.append(f"message {place}: the assistant says nothing")
            for call in message.tool_calls:
                if call.call_id in known:
                    faults.append(f"message {place}: the call id {call.call_id!r} is used twice")
                known.add(call.call_id)
                waiting.append(call.call_id)
    faults += [f"at the end: the call {call_id!r} has no result" for call_id in waiting]
    return tuple(faults)
