"""The model port: one request, one stream of events, one way to end.

A stream gives any number of events and then either one `Finished`, always the last, or raises a `ModelError`. Adapters
(`openai_wire`) implement `ChatModel`; wrappers (`retrying`) take one and are one; the loop above sees only this.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from sentinel_rag.agent.models.messages import AssistantMessage, ModelMessage
from sentinel_rag.agent.models.usage import ModelUsage
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.tool_calls import ToolSchema

NO_DEADLINE = math.inf
RESPONSE_TOKENS = 4_096
"""The part of the context that is kept free for an answer (CHAT-5)."""


class ToolChoice(StrEnum):
    """Whether the model may call tools. `NONE` still sends their schemas, so that old calls stay explained."""

    AUTO = "auto"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What is asked of a model. `response_schema` is a JSON schema that the text should fit; a server that does not
    take one is asked without."""

    messages: Sequence[ModelMessage]
    tools: Sequence[ToolSchema] = ()
    tool_choice: ToolChoice = ToolChoice.AUTO
    max_output_tokens: int = RESPONSE_TOKENS
    response_schema: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the answer's text, a refusal in the model's own words included. Not checked and not sanitised yet."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """The model began to write a call: a status line can be shown. The name may still turn out to be no tool."""

    name: str


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """The try failed before anything was given out; the next one starts in `wait_s` seconds."""

    attempt: int
    wait_s: float
    code: str


class FinishReason(StrEnum):
    """Why an answer ended. Decided by what was sent: calls make it TOOL_CALLS, whatever the provider's word."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event. `message` is what to append to the conversation, unless it is empty: an answer that was cut or
    filtered before its first word says nothing. Its calls are known only here: of a stream that breaks none is run.

    `filtered` are the categories of a filter that cut the answer. `stated` is False where the provider closed the
    stream in order but gave no reason, so a careful caller can decline calls with side effects.
    """

    reason: FinishReason
    message: AssistantMessage
    usage: ModelUsage = field(default_factory=ModelUsage)
    filtered: Mapping[str, str] = field(default_factory=dict)
    stated: bool = True


ModelEvent = TextDelta | ToolCallStarted | RetryScheduled | Finished


ModelStream = AbstractAsyncContextManager[AsyncIterator[ModelEvent]]
"""An answer under way: `async with` gives the events, and leaving the block, by whatever way, closes the connection.

The next event raises ModelError if there is none, and StopAsyncIteration after `Finished`. Nothing is sent before the
first one is asked for.
"""


class ChatModel(Protocol):
    """A model that answers conversations. One object serves any number of streams at once."""

    @property
    def name(self) -> str:
        """How usage and footnotes call it."""
        ...

    def stream(self, request: ModelRequest, *, deadline: float = NO_DEADLINE) -> ModelStream:
        """Ask. `deadline` is a moment of `anyio.current_time()`."""
        ...

    async def aclose(self) -> None:
        """Close idle connections. The model may be used again afterwards."""
        ...


async def complete(
    model: ChatModel,
    request: ModelRequest,
    *,
    deadline: float = NO_DEADLINE,
    listen: Callable[[ModelEvent], None] | None = None,
) -> Finished:
    """The whole answer at once; `listen` hears each event on the way. Raises ModelError."""
    finished: Finished | None = None
    async with model.stream(request, deadline=deadline) as events:
        async for event in events:
            if listen is not None:
                listen(event)
            if isinstance(event, Finished):
                finished = event
    assert finished is not None, "a stream ends with Finished or raises"
    return finished
