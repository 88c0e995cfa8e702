"""One HTTP exchange with a search service: bounded in time and size, without redirects, cookies or a proxy.

The address of a service is the operator's own setting, so it may lie on a private network; nothing that an agent sends
chooses where it goes. What a service answers in an error stays here: its body may quote the key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import aiohttp  # noqa: TID253  # the module is about HTTP

from sentinel_rag import __version__
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.tools.tool_answer import ToolFault, failed
from sentinel_rag.tools.web.bounded_body import BodyTooLarge, Unreadable, bounded_body

TIMEOUT_S = 15.0
MAX_ANSWER_BYTES = 2_000_000
MAX_RETRY_AFTER_S = 3_600.0


class SearchService:
    """A search service at `url`. `headers` carry its key and are sent to it alone."""

    def __init__(self, name: str, url: str, *, headers: Mapping[str, str], timeout_s: float = TIMEOUT_S) -> None:
        self._name = name
        self._url = url
        self._headers = {"Accept": "application/json", "User-Agent": f"sentinel-rag/{__version__}", **headers}
        self._timeout_s = timeout_s
        self._session: aiohttp.ClientSession | None = None

    async def get(self, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        """The JSON object that the service answers to a GET. Raises ToolFault."""
        return await self._exchange("GET", params=parameters)

    async def post(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The JSON object that the service answers to a POST of a JSON body. Raises ToolFault."""
        return await self._exchange("POST", json=dict(body))

    async def close(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _exchange(self, method: str, **arguments: Any) -> Mapping[str, Any]:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=self._timeout_s),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                auto_decompress=False,
            )
        headers = {**self._headers, "Accept-Encoding": "gzip, deflate"}
        try:
            async with self._session.request(
                method, self._url, headers=headers, allow_redirects=False, **arguments
            ) as response:
                if response.status != 200:
                    raise self._refusal(response.status, response.headers.get("Retry-After", ""))
                body = await bounded_body(
                    response.content.iter_any(),
                    coding=response.headers.get("Content-Encoding", ""),
                    limit=MAX_ANSWER_BYTES,
                )
        except TimeoutError:
            raise failed(
                QueryErrorCode.TIMEOUT, f"{self._name} did not answer in time.", "Search again in a moment."
            ) from None
        except (aiohttp.ClientError, OSError, ValueError):
            raise failed(
                QueryErrorCode.UNAVAILABLE,
                f"{self._name} cannot be reached.",
                "Check SENTINEL_SEARCH_URL and the network of the web server's process.",
            ) from None
        except (BodyTooLarge, Unreadable):
            raise self._not_understood() from None
        return self._object(body)

    def _object(self, body: bytes) -> Mapping[str, Any]:
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise self._not_understood()
        return found

    def entries(self, value: Any) -> list[Any]:
        """`value` as the list of results that it must be. Raises ToolFault."""
        if not isinstance(value, list):
            raise self._not_understood()
        return value

    def _not_understood(self) -> ToolFault:
        return failed(
            QueryErrorCode.PROTOCOL,
            f"The answer of {self._name} is not in its documented form.",
            "Check SENTINEL_SEARCH_PROVIDER and SENTINEL_SEARCH_URL.",
        )

    def _refusal(self, status: int, retry_after: str) -> ToolFault:
        match status:
            case 401 | 403:
                step = "Check SENTINEL_SEARCH_API_KEY. SearXNG needs `json` among its search.formats."
                return failed(QueryErrorCode.ACCESS_DENIED, f"{self._name} does not accept this client.", step)
            case 400 | 422:  # Brave's word for a key that it does not know, too
                step = "Check SENTINEL_SEARCH_API_KEY, or search with fewer words."
                return failed(QueryErrorCode.ACCESS_DENIED, f"{self._name} does not accept this request.", step)
            case 429 | 432 | 433:  # the last two are Tavily's, for a plan's limits
                wait = float(retry_after) if retry_after.isascii() and retry_after[:9].isdigit() else None
                return failed(
                    QueryErrorCode.THROTTLED,
                    f"{self._name} is asked too often, or its quota is used up.",
                    "Search again later.",
                    retry_after_s=None if wait is None else min(wait, MAX_RETRY_AFTER_S),
                )
            case _:
                return failed(
                    QueryErrorCode.UNAVAILABLE,
                    f"{self._name} answered with status {status}.",
                    "Search again in a moment; if it stays, check SENTINEL_SEARCH_URL.",
                )
