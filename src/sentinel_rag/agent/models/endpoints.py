"""Where a model is and how one is let in: addresses and credentials for the providers that speak the OpenAI wire.

Plain values, made by the functions below from settings that were validated already; nothing is opened here. A key is
held where no repr, log or message shows it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import quote, urlsplit

from sentinel_rag.agent.models.failures import FailureKind, ModelError
from sentinel_rag.agent.models.wire_requests import Dialect, compatible_dialect, openai_dialect
from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.loopback import LOOPBACK_NAMES


class Admission(Protocol):
    """The headers that let a request in."""

    async def headers(self) -> Mapping[str, str]:
        """Header names in the wire's spelling, for one request. Raises ModelError."""
        ...


class NoKey:
    """A server that asks for none, such as one on this machine."""

    async def headers(self) -> Mapping[str, str]:
        return {}


class ApiKey:
    """A key: as a bearer token, or in Azure's `api-key` header. Raises ConfigurationError for what can be no key."""

    def __init__(self, key: str, *, header: str = "Authorization") -> None:
        if not key.strip() or not key.isascii() or not key.isprintable():
            problem = "is empty" if not key.strip() else "holds a character that no header can carry"
            raise ConfigurationError(f"The model's key {problem}.", next_step="Copy the key again, without quotes.")
        self._headers = {header: f"Bearer {key}" if header == "Authorization" else key}

    async def headers(self) -> Mapping[str, str]:
        return self._headers


class TokenAdmission:
    """A token of Entra ID, asked of `get_token` for each request; that object keeps and renews it."""

    def __init__(self, get_token: Callable[[], Awaitable[str]]) -> None:
        self._get_token = get_token

    async def headers(self) -> Mapping[str, str]:
        try:
            token = await self._get_token()
        except ModelError:
            raise
        except Exception:  # whatever a library of credentials raises; its text can hold tenant and client ids
            raise ModelError(
                FailureKind.ACCESS,
                "No Entra ID token for the model could be had.",
                next_step="Sign in (`az login`) or set AZURE_OPENAI_API_KEY; `sentinel doctor --model` tries it.",
            ) from None
        return {"Authorization": f"Bearer {token}"}


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
    dialect = openai_dialect(deployment)
    if api_version is None:
        return ModelEndpoint(f"{resource}/openai/v1", deployment, admission, dialect)
    path = f"{resource}/openai/deployments/{quote(deployment, safe='')}"
    return ModelEndpoint(path, deployment, admission, dialect, {"api-version": api_version})


def compatible_endpoint(base_url: str, model: str, admission: Admission) -> ModelEndpoint:
    """Any server of the chat completions wire, at its base URL (which mostly ends in `/v1`)."""
    base_url = base_url.rstrip("/").removesuffix("/chat/completions")
    dialect = openai_dialect(model) if urlsplit(base_url).hostname == "api.openai.com" else compatible_dialect(model)
    return ModelEndpoint(base_url, model, admission, dialect)
