"""The models of the settings, as objects: where a model's key meets the port.

`model_configuration` is what a zone's process is handed; `open_models` makes the models there. A token of Entra ID
comes from a callable, so that the agent's process never holds an Azure credential: the agent may be hijacked, and a
credential of Azure opens Sentinel too. `identity_app` is the zone that holds it and hands out tokens for models alone.

A tiny question passes at servers where no real one can: a context that is too small, a chat template that drops the
tools, a server that cuts long prompts without a word. The server's own count of the prompt, compared with ours, tells.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio

from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.contracts.servers import LOOPBACK_NAMES, RequestAuthenticator, same_secret
from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS
from sentinel_rag.contracts.tool_calls import OfferedTool
from sentinel_rag.settings import ModelSettings

if TYPE_CHECKING:
    from azure.core.credentials_async import AsyncTokenCredential
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from sentinel_rag.agent.models.endpoints import Admission, ModelEndpoint
    from sentinel_rag.agent.models.port import ChatModel, Finished, ModelRequest
    from sentinel_rag.agent.models.retrying import Tier
    from sentinel_rag.agent.tool_runs import AgentCounts


Catalogue = Callable[[str], Awaitable[Sequence[OfferedTool]]]
GetToken = Callable[[], Awaitable[str]]
IDENTITY_PATH = "/msi/token"
_SCOPES = {".azure.us": "https://cognitiveservices.azure.us", ".azure.cn": "https://cognitiveservices.azure.cn"}


@dataclass(frozen=True, slots=True)
class Models:
    """One model for each tier; both can be the same object."""

    large: ChatModel
    small: ChatModel

    def of(self, tier: Tier) -> ChatModel:
        """The model of a tier."""
        return self.small if tier.value == "small" else self.large

    async def aclose(self) -> None:
        """Close idle connections of both."""
        await self.large.aclose()
        if self.small is not self.large:
            await self.small.aclose()


def model_configuration(settings: ModelSettings, *, identity: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What the process that asks the model is handed, as JSON values. `identity` names where tokens are had."""
    return {
        "provider": settings.provider,
        "url": settings.url,
        "key": "" if settings.key is None else settings.key.reveal(),
        "name": settings.name,
        "small_name": settings.small_name,
        "api_version": settings.api_version,
        "prices": {tier: [str(price) for price in prices] for tier, prices in settings.prices.items()},
        "timeout_s": settings.timeout_s,
        "idle_timeout_s": settings.idle_timeout_s,
        "tool_rounds": settings.tool_rounds,
        "role": settings.role,
        "identity": None if identity is None else dict(identity),
    }


def needs_identity(settings: ModelSettings) -> bool:
    """True if the model is entered with Entra ID."""
    return settings.provider == "azure" and settings.key is None


def model_resource(url: str) -> str:
    """The audience of Entra ID tokens for an Azure OpenAI resource; it follows the cloud of the address."""
    host = urlsplit(url).hostname or ""
    return next((scope for end, scope in _SCOPES.items() if host.endswith(end)), "https://cognitiveservices.azure.com")


def model_host(configuration: Mapping[str, Any]) -> str:
    """The machine that questions and rows are sent to; empty for this one."""
    host = urlsplit(configuration["url"]).hostname or ""
    return "" if host in LOOPBACK_NAMES else host


def open_models(configuration: Mapping[str, Any], *, get_token: GetToken | None = None) -> Models:
    """The models of a `model_configuration`. `get_token` is used where there is no key; without one the
    configuration's `identity` is asked. Nothing is connected before the first request."""
    from sentinel_rag.agent.models.openai_wire import OpenAIWireModel, TimeLimits
    from sentinel_rag.agent.models.port import Price

    limits = TimeLimits(
        first_token_s=configuration["timeout_s"],
        next_token_s=configuration["idle_timeout_s"],
        whole_answer_s=configuration["timeout_s"],
    )
    admission = _admission(configuration, get_token)

    def model(name: str, tier: str) -> ChatModel:
        price = configuration["prices"].get(tier)
        return OpenAIWireModel(
            _endpoint(configuration, name, admission),
            limits=limits,
            price=None if price is None else Price(Decimal(price[0]), Decimal(price[1])),
        )

    large = model(configuration["name"], "large")
    small_name = configuration["small_name"]
    return Models(large, large if small_name is None else model(small_name, "small"))


def traced_models(models: Models, configuration: Mapping[str, Any], counts: AgentCounts | None) -> Models:
    """The same models, with each request told as a span and counted. `provider` is what OpenTelemetry calls it."""
    from sentinel_rag.agent.tool_runs import TracedModel

    provider = "azure.ai.openai" if configuration["provider"] == "azure" else "openai"
    host = urlsplit(configuration["url"]).hostname or ""

    def told(model: ChatModel) -> ChatModel:
        return TracedModel(model, counts, provider=provider, host=host)

    large = told(models.large)
    return Models(large, large if models.small is models.large else told(models.small))


def _endpoint(configuration: Mapping[str, Any], name: str, admission: Admission) -> ModelEndpoint:
    from sentinel_rag.agent.models.endpoints import azure_endpoint, compatible_endpoint

    if configuration["provider"] == "azure":
        return azure_endpoint(configuration["url"], name, admission, api_version=configuration["api_version"])
    return compatible_endpoint(configuration["url"], name, admission)


def _admission(configuration: Mapping[str, Any], get_token: GetToken | None) -> Admission:
    from sentinel_rag.agent.models.endpoints import api_key, entra_token, no_key

    azure = configuration["provider"] == "azure"
    if configuration["key"]:
        return api_key(configuration["key"], header="api-key" if azure else "Authorization")
    if not azure:
        return no_key
    if get_token is None:
        get_token = _token_from(configuration["identity"], model_resource(configuration["url"]))
    return entra_token(get_token)


def _token_from(identity: Mapping[str, str], resource: str) -> GetToken:
    from sentinel_rag.sentinel.credentials import IdentityEndpointCredential

    credential = IdentityEndpointCredential(identity["endpoint"], identity["header"])

    async def get_token() -> str:
        return (await credential.get_token(f"{resource}/.default")).token

    return get_token


def fitting_catalogue(catalogue: Catalogue, context_tokens: int) -> Catalogue:
    """The offered tools as a model of that context is told of them."""
    from sentinel_rag.agent.models.port import SMALL_CONTEXT_TOKENS, small_profile

    if context_tokens >= SMALL_CONTEXT_TOKENS:
        return catalogue

    async def small(session_id: str) -> Sequence[OfferedTool]:
        return small_profile(await catalogue(session_id))

    return small


def identity_app(credential: AsyncTokenCredential, *, resource: str, header: str) -> Starlette:
    """Serves `GET /msi/token` for `resource`, as App Service does, to who brings `header` in X-IDENTITY-HEADER."""
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    authenticator = RequestAuthenticator()

    def refusal(status: int, message: str) -> Response:
        return JSONResponse({"statusCode": status, "message": message}, status)

    async def token(request: Request) -> Response:
        if authenticator.refused(request.headers.raw) is not None:
            return refusal(403, "this address is for the agent of this machine")
        if not same_secret(request.headers.get("x-identity-header", ""), header):
            return refusal(401, "the identity header is missing or wrong")
        if request.query_params.get("resource") != resource:
            return refusal(400, "only tokens for models are handed out")
        try:
            found = await credential.get_token(f"{resource}/.default")
        except Exception:  # whatever a library of credentials raises; its text can hold tenant and client ids
            return refusal(400, "no token could be had: sign in to Azure, or set a key")
        return JSONResponse(
            {
                "access_token": found.token,
                "expires_on": str(found.expires_on),
                "resource": resource,
                "token_type": "Bearer",
            },
            headers={"Cache-Control": "no-store"},
        )

    async def alive(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    return Starlette(routes=[Route(IDENTITY_PATH, token), Route("/healthz", alive)])


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
