"""One service of Azure AI Search over REST: requests with another try where that can help, and answers as JSON.

Every request that is made can be repeated (documents have keys of their own), so a lost connection is tried again too.
The port's calls block, so the connections live in an event loop of their own thread; threads may share this.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import anyio

from sentinel_rag.knowledge.embedding.remote import BlockingSession, bounded_body, unreachable
from sentinel_rag_azure_search.wire import (
    API_VERSION,
    Refusal,
    SearchEndpoint,
    document_of,
    refusal_of,
)

DONE = frozenset({200, 201, 204})


class Admission(Protocol):
    """The headers that let a request in; a key, or a token that is renewed."""

    async def headers(self) -> Mapping[str, str]:
        """Header names in the wire's spelling, for one request. Raises SentinelError."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with a status that the caller takes."""

    status: int
    document: Mapping[str, Any]


class SearchConnection:
    """Requests to one service. A request is tried up to `attempts` times; waits that the service asks for are kept up
    to `longest_wait_s`, a longer one ends the call. Close it when done."""

    def __init__(
        self,
        endpoint: SearchEndpoint,
        admission: Admission,
        *,
        timeout_s: float = 60.0,
        attempts: int = 6,
        longest_wait_s: float = 60.0,
        first_wait_s: float = 0.5,
    ) -> None:
        self.endpoint = endpoint
        self._admission = admission
        self._attempts = attempts
        self._longest_wait_s = longest_wait_s
        self._first_wait_s = first_wait_s
        self._session = BlockingSession(timeout_s, is_loopback=endpoint.is_loopback)

    def close(self) -> None:
        """Close the connections; calls after it fail."""
        self._session.close()

    def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        taken: frozenset[int] = DONE,
    ) -> Answer:
        """The answer to one request, tried again where that helps. `path` begins with a slash. Raises UnavailableError
        for every status that is not among `taken`."""
        content = None if body is None else json.dumps(body).encode("ascii")
        return self._session.run(partial(self._tried, method, path, content, dict(headers or {}), taken))

    async def _tried(
        self, method: str, path: str, content: bytes | None, headers: Mapping[str, str], taken: frozenset[int]
    ) -> Answer:
        attempt = 0
        while True:
            attempt += 1
            answer = await self._asked(method, path, content, headers, taken)
            if isinstance(answer, Answer):
                return answer
            wait = self._first_wait_s * 2 ** (attempt - 1) if answer.wait_s is None else answer.wait_s
            if not answer.try_again or attempt >= self._attempts or wait > self._longest_wait_s:
                raise answer.error
            await anyio.sleep(wait)

    async def _asked(
        self, method: str, path: str, content: bytes | None, headers: Mapping[str, str], taken: frozenset[int]
    ) -> Answer | Refusal:
        """One request: its answer, or why there is none."""
        import aiohttp

        sent = {"Accept": "application/json;odata.metadata=none", **headers, **await self._admission.headers()}
        if content is not None:
            sent["Content-Type"] = "application/json"
        try:
            async with self._session.http.request(
                method,
                f"{self.endpoint.url.rstrip('/')}{path}",
                params={"api-version": API_VERSION},
                # In one piece of bytes a large batch would hold up the event loop.
                data=None if content is None else io.BytesIO(content),
                headers=sent,
                # A redirect would carry the key away.
                allow_redirects=False,
            ) as response:
                received = await bounded_body(response)
                if response.status in taken:
                    return Answer(response.status, document_of(received))
                named = {name.casefold(): value for name, value in response.headers.items()}
                return refusal_of(response.status, named, received)
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            return Refusal(
                unreachable(f"Azure AI Search at {self.endpoint.host}", error, self._session.timeout_s), True
            )
