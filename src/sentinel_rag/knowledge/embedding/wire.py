"""The OpenAI wire for embeddings: where a model is, the body of a request, and an answer as an array.

Azure OpenAI (its v1 endpoint, or deployment and api-version) and every compatible server speak it. Plain values and
pure functions; nothing here opens a connection. An answer is believed only if it is one: a server that ignores
`dimensions`, loses a text or sends NaN is told, since what is stored wrong ranks wrong for as long as it is stored.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from sentinel_rag.contracts.errors import ConfigurationError, UnavailableError
from sentinel_rag.contracts.loopback import LOOPBACK_NAMES
from sentinel_rag.knowledge.stores.port import Vector, VectorSpace

DIMENSIONS = 1024
"""What text-embedding-3-large is asked for: a third of its full size, nearly its full quality."""
LONGEST_TEXT = 20_000
"""Characters of a text that are sent: some 6,000 tokens of English or KQL, below the 8,192 that the models take."""


class Admission(Protocol):
    """The headers that let a request in; a key, or a token that is renewed."""

    async def headers(self) -> Mapping[str, str]:
        """Header names in the wire's spelling, for one request. Raises SentinelError."""
        ...


@dataclass(frozen=True, slots=True)
class EmbeddingEndpoint:
    """One model at one address; `base_url` is what `/embeddings` is appended to. `dimensions` are asked for, and
    checked: a server that does not take the parameter must have them by nature."""

    base_url: str
    model: str
    dimensions: int
    admission: Admission = field(repr=False)
    query: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise ConfigurationError(
                "The embedding model's address is not an http or https URL without a user name.",
                next_step="Set it in the form https://host/v1.",
            )
        if parts.scheme == "http" and not self.is_loopback:
            raise ConfigurationError(
                "The embedding model's address is plain http to another machine, which shows keys and incidents to "
                "the network.",
                next_step="Use https; plain http is for this machine only.",
            )
        if not 1 <= self.dimensions <= 8_192:
            raise ConfigurationError(
                f"{self.dimensions} is no number of dimensions.", next_step="Name 1 to 8192; 1024 is usual."
            )

    @property
    def is_loopback(self) -> bool:
        """True if the address is this machine: no proxy is asked."""
        return urlsplit(self.base_url).hostname in LOOPBACK_NAMES

    @property
    def space(self) -> VectorSpace:
        """The space of its vectors. The address is no part of it: one model has one space wherever it runs."""
        return VectorSpace(self.model, self.dimensions)


def azure_embeddings(
    address: str, deployment: str, admission: Admission, *, dimensions: int = DIMENSIONS, api_version: str | None = None
) -> EmbeddingEndpoint:
    """A deployment of Azure OpenAI at `https://NAME.openai.azure.com`, through the v1 endpoint, or through the path
    with deployment and api-version where one is given."""
    parts = urlsplit(address)
    resource = f"{parts.scheme}://{parts.netloc}" + parts.path.partition("/openai")[0].rstrip("/")
    if api_version is None:
        return EmbeddingEndpoint(f"{resource}/openai/v1", deployment, dimensions, admission)
    path = f"{resource}/openai/deployments/{quote(deployment, safe='')}"
    return EmbeddingEndpoint(path, deployment, dimensions, admission, {"api-version": api_version})


def request_body(
    endpoint: EmbeddingEndpoint, texts: Sequence[str], *, longest: int = LONGEST_TEXT, dimensions: bool = True
) -> bytes:
    """The JSON of one request. Blank texts are refused by the services, so a dash stands for them."""
    body: dict[str, Any] = {
        "model": endpoint.model,
        "input": [text[:longest] if text.strip() else "-" for text in texts],
        "encoding_format": "base64",
    }
    if dimensions:
        body["dimensions"] = endpoint.dimensions
    return json.dumps(body).encode("ascii")


def vectors_of(content: bytes, endpoint: EmbeddingEndpoint, count: int) -> Vector:
    """The vectors of an answer, in the order of the texts. Raises UnavailableError for an answer that is none."""
    import numpy as np

    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise _no_answer("is not JSON") from None
    data = document.get("data") if isinstance(document, Mapping) else None
    if not isinstance(data, list):
        raise _no_answer(f"says {_error_text(document)}" if _error_text(document) else "holds no vectors")
    rows: dict[int, Vector] = {}
    for place, item in enumerate(data):
        index = item.get("index", place) if isinstance(item, Mapping) else None
        if isinstance(index, int) and 0 <= index < count:
            rows[index] = _vector(item.get("embedding"), endpoint)
    if len(rows) != count or len(data) != count:
        raise _no_answer(f"holds {len(data)} vectors for {count} texts")
    return (
        np.stack([rows[index] for index in range(count)]) if count else np.zeros((0, endpoint.dimensions), np.float32)
    )


def _vector(value: Any, endpoint: EmbeddingEndpoint) -> Vector:
    import numpy as np

    try:
        if isinstance(value, str):
            found = np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4").astype(np.float32)
        else:
            found = np.asarray(value, dtype=np.float32)
    except (ValueError, TypeError, binascii.Error):
        raise _no_answer("holds a vector that is none") from None
    if found.ndim != 1 or not np.isfinite(found).all():
        raise _no_answer("holds a vector that is none")
    if len(found) != endpoint.dimensions:
        raise UnavailableError(
            f"{endpoint.model} answers with {len(found)} dimensions and not {endpoint.dimensions}.",
            next_step=f"Set the dimensions to {len(found)}, or use a model that can give {endpoint.dimensions}.",
        )
    return found


def _error_text(document: Any) -> str:
    """What an error document says, cut; servers send one with status 200 too."""
    error = document.get("error") if isinstance(document, Mapping) else None
    message = error.get("message") if isinstance(error, Mapping) else error
    return " ".join(message.split())[:200] if isinstance(message, str) else ""


def _no_answer(what: str) -> UnavailableError:
    return UnavailableError(
        f"The embedding model's answer {what}.", next_step="Check its address and whether it is an embedding model."
    )
