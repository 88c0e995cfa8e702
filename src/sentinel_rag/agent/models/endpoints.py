"""Where a model is, how one is let in, and what it is sent: the providers that speak the chat completions wire.

Plain values, made by the functions below from settings that were validated already; nothing is opened here. A key is
held where no repr, log or message shows it. What a server takes differs by small optional fields: a `Dialect` says
which are sent, and when a server refuses one by name, `without` gives the dialect that does without it. Never sent:
`strict`, `parallel_tool_calls`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, urlsplit

from sentinel_rag.agent.models.failures import FailureKind, ModelError
from sentinel_rag.agent.models.port import (
    AssistantMessage,
    ModelMessage,
    ModelRequest,
    ModelToolCall,
    SystemMessage,
    ToolChoice,
    ToolResultMessage,
    UserMessage,
)
from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.servers import LOOPBACK_NAMES
from sentinel_rag.contracts.tool_calls import ToolSchema

Admission = Callable[[], Awaitable[Mapping[str, str]]]
"""The headers that let one request in, in the wire's spelling. Raises ModelError."""
_REASONING = re.compile(r"(?:^|/)(?:o\d|gpt-5)", re.IGNORECASE)
_LENGTHS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": None}
"""The next name to try of the field for the answer's length."""


async def no_key() -> Mapping[str, str]:
    """A server that asks for none, such as one on this machine."""
    return {}


def api_key(key: str, *, header: str = "Authorization") -> Admission:
    """A key: as a bearer token, or in Azure's `api-key` header. Raises ConfigurationError for what can be no key."""
    if not key.strip() or not key.isascii() or not key.isprintable():
        problem = "is empty" if not key.strip() else "holds a character that no header can carry"
        raise ConfigurationError(f"The model's key {problem}.", next_step="Copy the key again, without quotes.")
    fixed = {header: f"Bearer {key}" if header == "Authorization" else key}

    async def headers() -> Mapping[str, str]:
        return fixed

    return headers


def entra_token(get_token: Callable[[], Awaitable[str]]) -> Admission:
    """A token of Entra ID, asked of `get_token` for each request; that object keeps and renews it."""

    async def headers() -> Mapping[str, str]:
        try:
            return {"Authorization": f"Bearer {await get_token()}"}
        except ModelError:
            raise
        except Exception:  # whatever a library of credentials raises; its text can hold tenant and client ids
            raise ModelError(FailureKind.ACCESS, "no_token") from None

    return headers


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
        left_out: dict[str, Any] = {parameter: False}
        return replace(self, **left_out)


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """One model at one address. `base_url` is what `chat/completions` is appended to."""

    base_url: str
    model: str
    admission: Admission = field(repr=False)
    dialect: Dialect
    query: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise ConfigurationError(
                "The model's address is not an http or https URL without a user name.",
                next_step="Set it in the form https://host/v1.",
            )
        if parts.scheme == "http" and not self.is_loopback:
            raise ConfigurationError(
                "The model's address is plain http to another machine, which shows keys and questions to the network.",
                next_step="Use https; plain http is for this machine only.",
            )

    @property
    def is_loopback(self) -> bool:
        """True if the address is this machine: plain http is fine there, and no proxy is asked."""
        return urlsplit(self.base_url).hostname in LOOPBACK_NAMES


def azure_endpoint(
    address: str, deployment: str, admission: Admission, *, api_version: str | None = None
) -> ModelEndpoint:
    """A deployment of Azure OpenAI at `https://NAME.openai.azure.com`: through its v1 endpoint, or through the path
    with deployment and api-version if one is given. The portal's longer addresses are cut to the resource."""
    parts = urlsplit(address)
    resource = f"{parts.scheme}://{parts.netloc}" + parts.path.partition("/openai")[0].rstrip("/")
    dialect = _dialect(deployment, openai=True)
    if api_version is None:
        return ModelEndpoint(f"{resource}/openai/v1", deployment, admission, dialect)
    path = f"{resource}/openai/deployments/{quote(deployment, safe='')}"
    return ModelEndpoint(path, deployment, admission, dialect, {"api-version": api_version})


def compatible_endpoint(base_url: str, model: str, admission: Admission) -> ModelEndpoint:
    """Any server of the chat completions wire, at its base URL (which mostly ends in `/v1`)."""
    base_url = base_url.rstrip("/").removesuffix("/chat/completions")
    dialect = _dialect(model, openai=urlsplit(base_url).hostname == "api.openai.com")
    return ModelEndpoint(base_url, model, admission, dialect)


def _dialect(model: str, *, openai: bool) -> Dialect:
    """Reasoning models, told by their names, have no temperature; a deployment may have any name, then the server's
    refusal tells. OpenAI and Azure take the newer name of the length field, other servers the older one."""
    limit = "max_completion_tokens" if openai else "max_tokens"
    return Dialect(limit, temperature=_REASONING.search(model) is None)


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
    arguments = (
        {"unreadable_arguments": call.arguments_text[:500]} if call.arguments is None else _plain(call.arguments)
    )
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
