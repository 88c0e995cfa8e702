"""Embeddings from a service that speaks the OpenAI wire: Azure OpenAI, or any compatible server.

Batches of texts, at a pace, with another try where that can help; a redirect is never followed, since it would carry
the key away. The port's calls block, so the connections live in an event loop of their own thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import TracebackType
from typing import Self

import anyio

from sentinel_rag.knowledge.embedding.refusals import EmbeddingRefusal, refusal_of
from sentinel_rag.knowledge.embedding.wire import LONGEST_TEXT, EmbeddingEndpoint, request_body, vectors_of
from sentinel_rag.knowledge.service_exchange import BlockingSession, bounded_body, unreachable
from sentinel_rag.knowledge.stores.port import Vector, VectorSpace

MOST_CHARACTERS = 200_000
"""Of all texts of one request."""
_SHORT_TEXT = 6_000
"""Characters that fit the models' 8,192 tokens in any language."""


class RemoteEmbedder:
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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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
