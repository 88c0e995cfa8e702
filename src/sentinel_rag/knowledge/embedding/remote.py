"""Embeddings from a service that speaks the OpenAI wire: its requests, answers and refusals, in paced batches.

What speaking to a service over HTTP has in common, whichever of knowledge's services it is: the session that is
opened once, the bounded body of an answer, and the sentence for a service that cannot be reached.

The ports of knowledge block, so the connections live in an event loop of their own thread; threads may share them.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import quote, urlsplit

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from sentinel_rag.contracts.closing import Closing
from sentinel_rag.contracts.errors import ConfigurationError, SentinelError, UnavailableError
from sentinel_rag.contracts.servers import LOOPBACK_NAMES
from sentinel_rag.knowledge.stores.port import Vector, VectorSpace

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession


T = TypeVar("T")

LARGEST_ANSWER = 64_000_000
"""Bytes that are read of one answer."""


class BlockingSession:
    """One HTTP session for callers that block, opened by its first request. It has no cookies; a proxy of the
    environment is used for all but this machine. `timeout_s` bounds one request."""

    def __init__(self, timeout_s: float, *, is_loopback: bool) -> None:
        self.timeout_s = timeout_s
        self._is_loopback = is_loopback
        self._stack = ExitStack()
        self._portal: BlockingPortal = self._stack.enter_context(start_blocking_portal("asyncio"))
        self._session: ClientSession | None = None

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """What `work` gives, in the loop where the session lives."""
        return self._portal.call(work)

    @property
    def http(self) -> ClientSession:
        """The session itself, for work that runs in its loop."""
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=self.timeout_s),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=not self._is_loopback,
            )
        return self._session

    def close(self) -> None:
        """Close the connections; calls after it fail."""
        session, self._session = self._session, None
        if session is not None:
            self._portal.call(session.close)
        self._stack.close()


def unreachable(service: str, error: Exception, timeout_s: float) -> UnavailableError:
    """Why `service`, such as `Azure AI Search at HOST`, did not answer; nothing of the library's own text."""
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return UnavailableError(
            f"{service} has no certificate that this machine trusts.",
            next_step="Set SSL_CERT_FILE to your organisation's certificates, or check the address.",
        )
    if isinstance(error, TimeoutError):
        return UnavailableError(
            f"{service} did not answer within {timeout_s:g} s.",
            next_step="Go on later, what is done stays; or check the address.",
        )
    return UnavailableError(
        f"{service} cannot be reached, or hangs up.",
        next_step="Check the address and the network; what is done stays.",
    )


async def bounded_body(response: ClientResponse) -> bytes:
    """The body; of one that is larger than any answer only its beginning, which is then no JSON."""
    content = bytearray()
    async for part in response.content.iter_chunked(1 << 16):
        content += part
        if len(content) > LARGEST_ANSWER:
            break
    return bytes(content)


# Azure OpenAI (its v1 endpoint, or deployment and api-version) and every compatible server speak it. An answer is
# believed only if it is one: a server that ignores `dimensions`, loses a text or sends NaN is told, since what is
# stored wrong ranks wrong for as long as it is stored.
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


_TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504, 529})


@dataclass(frozen=True, slots=True)
class EmbeddingRefusal:
    """`error` is what is raised if no further try is made. `wait_s` is what the service asks for, None if nothing.
    `too_long`: a text is longer than the model reads. `about_dimensions`: the server does not take that parameter."""

    error: SentinelError
    try_again: bool
    wait_s: float | None = None
    too_long: bool = False
    about_dimensions: bool = False


def refusal_of(
    status: int, headers: Mapping[str, str], body: bytes, *, now: datetime | None = None
) -> EmbeddingRefusal:
    """The meaning of an answer with a status other than 200. `headers` have names in lower case."""
    said, code = _said(body)
    if status in (401, 403):
        error = UnavailableError(
            f"The embedding service lets nobody in with this key or sign-in ({status}).",
            next_step="Check the key; with Entra ID the role `Cognitive Services OpenAI User` is needed.",
            code="embedding_access",
        )
        return EmbeddingRefusal(error, False)
    if status == 404:
        error = UnavailableError(
            "The embedding service knows no such model or deployment (404).",
            next_step="Check the name of the deployment and the address.",
            code="embedding_not_found",
        )
        return EmbeddingRefusal(error, False)
    wait = _wait(headers, now or datetime.now(UTC))
    if status == 429:
        if code == "insufficient_quota":
            error = UnavailableError(
                "The credit at the embedding service is used up.",
                next_step="Raise the quota, then go on: what is done stays.",
            )
            return EmbeddingRefusal(error, False)
        error = UnavailableError(
            "The embedding service takes no more requests at present (429).",
            next_step="Go on later, what is done stays; or set a lower rate, or raise the deployment's quota.",
            code="embedding_rate_limited",
        )
        return EmbeddingRefusal(error, True, wait)
    if status in _TRY_AGAIN:
        error = UnavailableError(
            f"The embedding service failed ({status}).", next_step="Go on later: what is done stays."
        )
        return EmbeddingRefusal(error, True, wait)
    words = said.casefold() if status in (400, 422) else ""
    too_long = any(each in words for each in ("maximum context", "too many tokens", "too long"))
    about_dimensions = not too_long and any(each in words for each in ("dimensions", "matryoshka"))
    detail = f": {said}" if said else ""
    error = UnavailableError(
        f"The embedding service refused the request ({status}){detail}",
        next_step="Check that the model is an embedding model and takes these dimensions.",
    )
    return EmbeddingRefusal(error, False, too_long=too_long, about_dimensions=about_dimensions)


def _said(body: bytes) -> tuple[str, str]:
    """The message and code of an error body; empty for HTML and the like. A message may quote what was sent, so it is
    cut short."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return "", ""
    error = document.get("error") if isinstance(document, Mapping) else None
    if isinstance(error, Mapping):
        return " ".join(str(error.get("message") or "").split())[:200], str(error.get("code") or "")
    return (" ".join(error.split())[:200], "") if isinstance(error, str) else ("", "")


def _wait(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds from `retry-after-ms` (Azure) or `Retry-After`, as a number or a date."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        try:
            seconds = float(value) * unit
        except ValueError:
            continue
        if 0 <= seconds < 86_400:
            return seconds
    try:
        moment = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, TypeError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())


# Batches of texts, at a pace, with another try where that can help; a redirect is never followed, since it would carry
# the key away. The port's calls block, so the connections live in an event loop of their own thread.
MOST_CHARACTERS = 200_000
"""Of all texts of one request."""
_SHORT_TEXT = 6_000
"""Characters that fit the models' 8,192 tokens in any language."""


class RemoteEmbedder(Closing):
    """An `Embedder` at an endpoint. Close it, or use it in a `with`.

    `tokens_per_minute` 0 sets no pace. A request is tried up to `attempts` times; waits that the service asks for are
    kept up to `longest_wait_s`, a longer one ends the call.
    """

    def __init__(
        self,
        endpoint: EmbeddingEndpoint,
        *,
        tokens_per_minute: int = 0,
        timeout_s: float = 60.0,
        attempts: int = 5,
        longest_wait_s: float = 60.0,
        first_wait_s: float = 1.0,
    ) -> None:
        self._endpoint = endpoint
        self._asks_dimensions = True
        self._pace = Pace(tokens_per_minute)
        self._attempts = attempts
        self._longest_wait_s = longest_wait_s
        self._first_wait_s = first_wait_s
        self._session = BlockingSession(timeout_s, is_loopback=endpoint.is_loopback)

    @property
    def space(self) -> VectorSpace:
        return self._endpoint.space

    @property
    def batch(self) -> int:
        return 64

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        import numpy as np

        parts = [self._session.run(partial(self._embed, part)) for part in _requests(texts, self.batch)]
        return np.concatenate(parts) if parts else np.zeros((0, self._endpoint.dimensions), dtype=np.float32)

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self.embed_documents([text])[0]
        return vector

    def close(self) -> None:
        """Close the connections; calls after it fail."""
        self._session.close()

    async def _embed(self, texts: list[str]) -> Vector:
        longest = LONGEST_TEXT
        attempt = 0
        while True:
            attempt += 1
            await anyio.sleep(self._pace.wait(estimated_tokens(texts), anyio.current_time()))
            answer = await self._asked(
                request_body(self._endpoint, texts, longest=longest, dimensions=self._asks_dimensions)
            )
            if isinstance(answer, bytes):
                return vectors_of(answer, self._endpoint, len(texts))
            if answer.too_long and longest > _SHORT_TEXT:
                longest = _SHORT_TEXT
                continue
            if answer.about_dimensions and self._asks_dimensions:
                self._asks_dimensions = False
                continue
            wait = self._first_wait_s * 2 ** (attempt - 1) if answer.wait_s is None else answer.wait_s
            if not answer.try_again or attempt >= self._attempts or wait > self._longest_wait_s:
                raise answer.error
            await anyio.sleep(wait)

    async def _asked(self, body: bytes) -> bytes | EmbeddingRefusal:
        """One request: the body of its answer, or why there is none."""
        import aiohttp

        headers = {"Content-Type": "application/json", **await self._endpoint.admission.headers()}
        try:
            async with self._session.http.post(
                f"{self._endpoint.base_url}/embeddings",
                params=self._endpoint.query,
                data=body,
                headers=headers,
                allow_redirects=False,
            ) as response:
                content = await bounded_body(response)
                if response.status == 200:
                    return content
                named = {name.casefold(): value for name, value in response.headers.items()}
                return refusal_of(response.status, named, content)
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            return EmbeddingRefusal(
                unreachable(f"The embedding service at {self._endpoint.base_url}", error, self._session.timeout_s), True
            )


def _requests(texts: Sequence[str], batch: int) -> list[list[str]]:
    """The texts in requests of at most `batch` texts and MOST_CHARACTERS characters."""
    parts: list[list[str]] = []
    characters = 0
    for text in texts:
        length = min(len(text), LONGEST_TEXT)
        if not parts or len(parts[-1]) >= batch or characters + length > MOST_CHARACTERS:
            parts.append([])
            characters = 0
        parts[-1].append(text)
        characters += length
    return parts


# A pace for requests: so many tokens a minute, spread evenly, so that a first load does not run into the quota.


_CHARACTERS_OF_A_TOKEN = 3.5
"""Of English and KQL; the service counts exactly, and says so with 429 where this was too hopeful."""


def estimated_tokens(texts: list[str]) -> int:
    """About how many tokens a request with these texts costs."""
    return max(1, round(sum(map(len, texts)) / _CHARACTERS_OF_A_TOKEN))


class Pace:
    """`tokens_per_minute` 0 sets no pace. A burst of one tenth of a minute's tokens goes at once."""

    def __init__(self, tokens_per_minute: int) -> None:
        self._rate = tokens_per_minute / 60.0
        self._burst_s = 6.0
        self._free_at = 0.0

    def wait(self, tokens: int, now: float) -> float:
        """Seconds to wait before a request of so many tokens, which counts as sent then. `now` in seconds of any clock
        that does not go back."""
        if self._rate <= 0:
            return 0.0
        self._free_at = max(self._free_at, now - self._burst_s)
        waiting = max(0.0, self._free_at - now)
        self._free_at += tokens / self._rate
        return waiting
