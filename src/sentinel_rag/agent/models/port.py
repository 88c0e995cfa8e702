"""The model port: what is said to a model, one stream of events back, one way to end, and what it cost.

A conversation is a sequence of frozen messages without a wire: `endpoints` writes them for a provider. A stream gives
any number of events and then either one `Finished`, always the last, or raises a `ModelError`. Adapters (`openai_wire`)
implement `ChatModel`; wrappers (`retrying`) take one and are one; the loop above sees only this.

Rules and all tools take more than a context under SMALL_CONTEXT_TOKENS can spare beside rows and an answer, and a small
model fills in every optional argument that it sees. What is left out here cannot be asked of such a model; changes are
among it. Pure.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct

from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS
from sentinel_rag.contracts.tool_calls import OfferedTool, ToolSchema
from sentinel_rag.language.text import toml_beside

NO_DEADLINE = math.inf
RESPONSE_TOKENS = 4_096
"""The part of the context that is kept free for an answer (CHAT-5)."""
MAX_ARGUMENTS_CHARACTERS = 100_000
"""The longest arguments text of one call that is read; a longer one is a broken answer."""


class CallProblem(StrEnum):
    """Why a call that a model made must not run. Each is answered to the model, never repaired by guessing."""

    NO_ARGUMENTS_OBJECT = "no_arguments_object"
    CUT_OFF = "cut_off"
    UNKNOWN_TOOL = "unknown_tool"


# Messages are structs, so that msgspec reads and writes their stored form; the names in it are older than these.
class ModelToolCall(Struct, frozen=True, rename={"call_id": "id", "arguments_text": "text"}):
    """One tool call of a model, safe to be replayed: `call_id` is unique in the conversation and `name` is legal on
    the wire, whatever the provider sent."""

    call_id: str
    name: str
    arguments: Mapping[str, Any] | None
    """The parsed object; None exactly if `problem` says why."""
    arguments_text: str
    """What the model wrote, at most MAX_ARGUMENTS_CHARACTERS long."""
    problem: CallProblem | None = None
    explanation: str = ""
    """The tool result of a call with a `problem`, which is not run."""


class SystemMessage(Struct, frozen=True, tag_field="role", tag="system"):
    """The rules of the conversation; the first message, and the only one of its kind."""

    text: str


class UserMessage(Struct, frozen=True, tag_field="role", tag="user"):
    """What a person asked."""

    text: str


class AssistantMessage(Struct, frozen=True, tag_field="role", tag="assistant", rename={"tool_calls": "calls"}):
    """What the model said: text, tool calls, or both."""

    text: str = ""
    tool_calls: tuple[ModelToolCall, ...] = ()


class ToolResultMessage(Struct, frozen=True, tag_field="role", tag="tool"):
    """The answer to one tool call of the assistant message before it."""

    call_id: str
    text: str


ModelMessage = SystemMessage | UserMessage | AssistantMessage | ToolResultMessage


class ToolChoice(StrEnum):
    """Whether the model may call tools. `NONE` still sends their schemas, so that old calls stay explained."""

    AUTO = "auto"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What is asked of a model."""

    messages: Sequence[ModelMessage]
    tools: Sequence[ToolSchema] = ()
    tool_choice: ToolChoice = ToolChoice.AUTO
    max_output_tokens: int = RESPONSE_TOKENS
    response_schema: JsonObject | None = None
    """A JSON schema that the text should fit; a server that does not take one is asked without."""

    def call_ids(self) -> frozenset[str]:
        """Every call id of the conversation, so that new ones differ."""
        said = [message for message in self.messages if isinstance(message, AssistantMessage)]
        return frozenset(call.call_id for message in said for call in message.tool_calls)


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Tokens of one request as the provider billed them. `cached_input` is part of `input`, `reasoning` of `output`."""

    input: int = 0
    output: int = 0
    cached_input: int = 0
    reasoning: int = 0

    def __add__(self, other: TokenCounts) -> TokenCounts:
        return TokenCounts(
            self.input + other.input,
            self.output + other.output,
            self.cached_input + other.cached_input,
            self.reasoning + other.reasoning,
        )


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens. Cached input counts in full, so a cost is never too low."""

    input_per_million: Decimal
    output_per_million: Decimal

    def cost(self, tokens: TokenCounts) -> Decimal:
        """US dollars, exact."""
        return (tokens.input * self.input_per_million + tokens.output * self.output_per_million) / 1_000_000


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """What one request, or a sum of requests, took. Adding is associative, and `ModelUsage()` adds nothing."""

    requests: int = 0
    tokens: TokenCounts = TokenCounts()
    cost: Decimal = Decimal(0)
    seconds: float = 0.0
    """Time spent waiting for models, retries included."""
    uncounted: int = 0
    """Requests that came without token counts: `tokens` leaves them out."""
    unpriced: int = 0
    """Requests without a price: `cost` leaves them out."""
    models: tuple[str, ...] = ()
    """In order of first use."""

    @classmethod
    def of_request(cls, model: str, tokens: TokenCounts | None, price: Price | None, seconds: float) -> ModelUsage:
        """The usage of one request, whatever the provider left out."""
        usage = cls(1, tokens or TokenCounts(), seconds=seconds, uncounted=int(tokens is None), models=(model,))
        cost = None if tokens is None or price is None else price.cost(tokens)
        return replace(usage, unpriced=1) if cost is None else replace(usage, cost=cost)

    def __add__(self, other: ModelUsage) -> ModelUsage:
        return ModelUsage(
            requests=self.requests + other.requests,
            tokens=self.tokens + other.tokens,
            cost=self.cost + other.cost,
            seconds=self.seconds + other.seconds,
            uncounted=self.uncounted + other.uncounted,
            unpriced=self.unpriced + other.unpriced,
            models=tuple(dict.fromkeys(self.models + other.models)),
        )

    def to_dict(self) -> JsonObject:
        """The form for `--json` and logs; the cost as decimal text, None where no request was priced."""
        return {
            "requests": self.requests,
            "input_tokens": self.tokens.input,
            "output_tokens": self.tokens.output,
            "cached_input_tokens": self.tokens.cached_input,
            "reasoning_tokens": self.tokens.reasoning,
            "uncounted_requests": self.uncounted,
            "cost_usd": None if self.unpriced == self.requests else format(self.cost.normalize(), "f"),
            "cost_is_whole": self.unpriced == 0,
            "seconds": round(self.seconds, 3),
            "models": list(self.models),
        }


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
    filtered before its first word says nothing. Its calls are known only here: of a stream that breaks none is run."""

    reason: FinishReason
    message: AssistantMessage
    usage: ModelUsage = field(default_factory=ModelUsage)
    filtered: Mapping[str, str] = field(default_factory=dict)
    """The categories of a filter that cut the answer."""
    stated: bool = True
    """False where the provider closed the stream in order but gave no reason, so that a careful caller can decline
    calls with side effects."""


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
    listen: Callable[[ModelEvent], None] = lambda _: None,
) -> Finished:
    """The whole answer at once; `listen` hears each event on the way. Raises ModelError."""
    finished = None
    async with model.stream(request, deadline=deadline) as events:
        async for event in events:
            listen(event)
            finished = event if isinstance(event, Finished) else finished
    assert finished is not None, "a stream ends with Finished or raises"
    return finished


SMALL_CONTEXT_TOKENS = 16_384
"""Contexts below this get the small profile."""

MOST_TOOLS = 10
_KEPT = ("type", "enum", "items")
_SHIPPED = frozenset(tool.name for tool in SHIPPED_TOOLS)


def small_profile(tools: Sequence[OfferedTool]) -> tuple[OfferedTool, ...]:
    """The offered tools as a small context is told of them: those of the table in its order, with no argument that the
    gateway does not offer, then other makers' tools that only read, with the first sentence of their description.

    At most MOST_TOOLS. Each has the name of an offered tool, and a call that fits it fits the offered one.
    """
    offered = {tool.schema.name: tool for tool in tools}
    told = toml_beside(__package__, "small_profile.toml")
    chosen = [_told(offered[name], **each) for name, each in told.items() if name in offered]
    others = [tool for name, tool in offered.items() if name not in _SHIPPED and tool.reads]
    chosen += [_told(tool, _first_sentence(tool.schema.description), None) for tool in others]
    return tuple(chosen[:MOST_TOOLS])


def _told(tool: OfferedTool, line: str, arguments: Sequence[str] | None) -> OfferedTool:
    schema = tool.schema
    required = schema.required()
    properties: dict[str, JsonValue] = {
        name: {key: part[key] for key in _KEPT if key in part}
        for name, part in schema.parameter_schemas().items()
        if arguments is None or name in arguments or name in required
    }
    parameters: JsonObject = {"type": "object", "properties": properties}
    if required:
        parameters = {**parameters, "required": [name for name in properties if name in required]}
    return replace(tool, schema=replace(schema, description=line, parameters=parameters))


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].partition("\n")[0][:120].rstrip(".") + "."
