"""`web_search` and `web_fetch` over a provider and a fetcher. Results are documented in `contracts.web_tools`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from sentinel_rag.contracts.file_tools import BUNDLED_SAMPLE
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import invalid_argument
from sentinel_rag.contracts.web_tools import (
    BUNDLED_HOST,
    DEFAULT_PAGE_CHARACTERS,
    DEFAULT_RESULTS,
    MAX_CONTEXT_CHARACTERS,
    MAX_PAGE_CHARACTERS,
    MAX_QUERY_CHARACTERS,
    MAX_RESULTS,
    MAX_URL_CHARACTERS,
    WEB_TOOLS,
)
from sentinel_rag.tools.mcp_frame import ToolAnswer, answer_of, read_arguments
from sentinel_rag.tools.web.fetching import FetchedPage, PageFetcher
from sentinel_rag.tools.web.page_text import PageText
from sentinel_rag.tools.web.search_providers import SearchProvider, bundled_pages


class WebSearch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of web_search."""

    query: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_QUERY_CHARACTERS)]
    context: Annotated[str, msgspec.Meta(max_length=MAX_CONTEXT_CHARACTERS)] = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_RESULTS)] = DEFAULT_RESULTS


class WebFetch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of web_fetch."""

    url: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_URL_CHARACTERS)]
    offset: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGE_CHARACTERS)] = DEFAULT_PAGE_CHARACTERS


class WebTools:
    """Answers the tools of `contracts.WEB_TOOLS`."""

    def __init__(self, provider: SearchProvider, fetcher: PageFetcher) -> None:
        self._provider = provider
        self._fetcher = fetcher

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Run a tool by its name. Never raises for a bad argument or for what the web does."""
        return await answer_of(name, WEB_TOOLS, lambda: self._run(name, arguments))

    async def _run(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        if name == "web_search":
            return await self._search(read_arguments(WebSearch, name, arguments))
        return await self._fetch(read_arguments(WebFetch, name, arguments))

    async def close(self) -> None:
        """Close the connections."""
        await self._provider.close()

    async def _search(self, asked: WebSearch) -> ToolAnswer:
        hits = await self._provider.search(asked.query, limit=asked.limit)
        results: list[JsonValue] = [hit.to_dict() for hit in hits]
        return ToolAnswer({"query": asked.query, "results": results, "total": len(results)}, f"{len(results)} results.")

    async def _fetch(self, asked: WebFetch) -> ToolAnswer:
        bundled = asked.url.startswith(f"https://{BUNDLED_HOST}/")
        fetched = _bundled(asked.url) if bundled else await self._fetcher.fetch(asked.url)
        text = fetched.page.text
        if asked.offset > len(text):
            raise invalid_argument(
                "offset", f"offset {asked.offset} lies behind the end: there are {len(text)} characters.", "Start at 0."
            )
        shown = text[asked.offset : asked.offset + asked.limit]
        end = asked.offset + len(shown)
        value: dict[str, JsonValue] = {
            "url": asked.url,
            "final_url": fetched.url,
            "title": fetched.page.title,
            "content_type": fetched.content_type,
            "text": shown,
            "offset": asked.offset,
            "returned": len(shown),
            "total": len(text),
            "next_offset": end if end < len(text) else None,
        }
        mark: dict[str, JsonValue] = {"source": BUNDLED_SAMPLE} if bundled else {}
        return ToolAnswer({**value, **mark}, f"{len(shown)} of {len(text)} characters.")


def _bundled(url: str) -> FetchedPage:
    page = bundled_pages().get(url)
    if page is None:
        raise invalid_argument("url", "There is no such page among those that are shipped.", "Search for it first.")
    return FetchedPage(url, "text/markdown", PageText(page.title, page.text))
