"""`sentinel doctor --model`: each model gets what a question sends, rules and tools, and is asked for one call.

A tiny question passes at servers where no real one can: a context that is too small, a chat template that drops the
tools, a server that cuts long prompts without a word. The server's own count of the prompt, compared with ours, tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio

from sentinel_rag.app.model_access import fitting_catalogue, model_configuration, model_resource, open_models
from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS
from sentinel_rag.contracts.tool_calls import OfferedTool
from sentinel_rag.settings import ModelSettings

if TYPE_CHECKING:
    from sentinel_rag.agent.models.port import ChatModel, Finished, ModelRequest

_ASKED_TOOLS = ("list_workspaces", "list_tables")
"""The first that is told to a model is what it is asked to call: both need no argument."""

_ANSWER_TOKENS = 400
_LEAST_ROOM = 1_000
"""Tokens for rows and the question itself, below which no question is worth asking."""

_ANSWER_SHARE = 1 / 8
_READ_OF_TOOLS = 1 / 3
_READ_OF_ALL = 0.85
_NO_TOOLS = (
    "the model's chat template drops the tools, or the server cuts the prompt",
    "start the server with a chat template that shows tools (llama.cpp: --jinja and --chat-template-file), or choose a "
    "model whose template has them; see docs/models.md",
)
_CUT = (
    "the server cuts long prompts without a word",
    "start it with a larger context (llama.cpp: --ctx-size 16384; Ollama: OLLAMA_CONTEXT_LENGTH=16384)",
)
_LARGER = (
    "start the model server with a larger context (llama.cpp: --ctx-size 16384; Ollama: OLLAMA_CONTEXT_LENGTH=16384) "
    "and set SENTINEL_MODEL_CONTEXT_TOKENS to the same number"
)
_NO_CALLS = "choose a model that calls tools; without calls no question about data can be answered"
_WRITTEN_CALLS = (
    "start the server with its parser of tool calls (llama.cpp: --jinja; vLLM: --enable-auto-tool-choice), or choose a "
    "model that calls tools"
)


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """What one model made of it. `detail` is a sentence; `next_step` mends a fault, or, where it is `ok`, says what
    could be better; empty where nothing could."""

    tier: str
    ok: bool
    detail: str
    next_step: str = ""


def check_models(settings: ModelSettings) -> tuple[ModelCheck, ...]:
    """Ask each model from this process and with this process's Azure sign-in, within SENTINEL_MODEL_TIMEOUT_S each."""
    return anyio.run(_check_models, settings)


async def _check_models(settings: ModelSettings) -> tuple[ModelCheck, ...]:
    from sentinel_rag.sentinel.credentials import azure_credential

    async with azure_credential() as credential:

        async def get_token() -> str:
            return str((await credential.get_token(f"{model_resource(settings.url)}/.default")).token)

        models = open_models(model_configuration(settings), get_token=get_token)
        try:
            checks = [await _check("large", models.large, settings)]
            if models.small is not models.large:
                checks.append(await _check("small", models.small, settings))
            return tuple(checks)
        finally:
            await models.aclose()


async def _check(tier: str, model: ChatModel, settings: ModelSettings) -> ModelCheck:
    from sentinel_rag.agent.models.port import complete
    from sentinel_rag.agent.models.retrying import RetryingModel

    sent = await _question(settings.context_tokens)
    try:
        answer = await complete(RetryingModel(model), sent.request)
    except SentinelError as error:
        return ModelCheck(tier, False, f"{model.name}: {error}", error.next_step)
    how = _called(answer, sent.tool)
    read = None if answer.usage.uncounted else answer.usage.tokens.input
    counted = "" if read is None else f", {read} + {answer.usage.tokens.output} tokens"
    detail = f"{model.name} {how.value.format(sent.tool)} in {answer.usage.seconds:.1f} s{counted}"
    unread = _unread(read, sent, settings)
    if unread is not None:
        return ModelCheck(tier, False, f"{detail} of about {sent.tokens} that were sent: {unread[0]}", unread[1])
    room = int(settings.context_tokens * (1 - _ANSWER_SHARE)) - (sent.tokens if read is None else read)
    if room < _LEAST_ROOM:
        needed = (
            f"rules, tools and an answer leave {max(room, 0)} of {settings.context_tokens} tokens, too few for rows"
        )
        return ModelCheck(tier, False, f"{detail}; {needed}", _LARGER)
    left = f"{detail}; {room} of {settings.context_tokens} tokens are left for rows and the conversation"
    match how:
        case _Called.AS_CALL:
            return ModelCheck(tier, True, left)
        case _Called.AS_TEXT:
            written = f"{left}; written calls are read, of tools that change nothing"
            return ModelCheck(tier, True, written, _WRITTEN_CALLS)
        case _Called.NOT:
            return ModelCheck(tier, False, detail, _NO_CALLS)


@dataclass(frozen=True, slots=True)
class _Sent:
    """A request as a question makes it, with our own count of its rules and of its tools. `tool` is asked for."""

    request: ModelRequest
    tool: str
    rules: int
    tools: int
    exact: bool

    @property
    def tokens(self) -> int:
        return self.rules + self.tools


async def _question(context_tokens: int) -> _Sent:
    """What a question to a model of that context begins with, and for what it asks."""
    from sentinel_rag.agent.model_analyst.tools import fixed_part
    from sentinel_rag.agent.models.port import ModelRequest, SystemMessage, UserMessage
    from sentinel_rag.agent.tokens import count_message, count_tool, load_counter

    async def offered(_: str) -> Sequence[OfferedTool]:
        return [OfferedTool(tool, reads=True) for tool in SHIPPED_TOOLS]

    told_rules, own = fixed_part(context_tokens)
    tools = [*(tool.schema for tool in await fitting_catalogue(offered, context_tokens)("")), *own]
    told = {tool.name for tool in tools}
    name = next(name for name in _ASKED_TOOLS if name in told)
    rules = SystemMessage(told_rules.text)
    question = UserMessage(f"Call the tool {name} now, without arguments. Write nothing else.")
    counter = await load_counter()
    return _Sent(
        ModelRequest([rules, question], tools, max_output_tokens=_ANSWER_TOKENS),
        name,
        count_message(rules, counter) + count_message(question, counter),
        sum(count_tool(tool, counter) for tool in tools),
        counter.exact,
    )


class _Called(Enum):
    """How a call came, as a sentence about the tool."""

    AS_CALL = "called {}"
    AS_TEXT = "wrote the call of {} as text"
    NOT = "did not call {} when asked to"


def _called(answer: Finished, tool: str) -> _Called:
    if any(call.name == tool for call in answer.message.tool_calls):
        return _Called.AS_CALL
    return _Called.AS_TEXT if tool in answer.message.text else _Called.NOT


def _unread(read: int | None, sent: _Sent, settings: ModelSettings) -> tuple[str, str] | None:
    """What is wrong if the server counted far fewer tokens than were sent, and what mends it.

    Tokenizers differ by a quarter and OpenAI writes schemas shorter than JSON, so there only what no tokenizer explains
    is told.
    """
    if read is None or not sent.exact:
        return None
    if read < sent.rules + sent.tools * _READ_OF_TOOLS:
        return _NO_TOOLS
    host = urlsplit(settings.url).hostname or ""
    as_json = settings.provider == "openai-compatible" and not host.endswith("openai.com")
    return _CUT if as_json and read < sent.tokens * _READ_OF_ALL else None
