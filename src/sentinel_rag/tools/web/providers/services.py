"""Three search services, each by its public wire format.

SearXNG: GET {base}/search?q=...&format=json, results[].{title, url, content} (docs.searxng.org, Search API).
Brave:   GET {base}/res/v1/web/search?q=...&count=..., header X-Subscription-Token, web.results[].{title, url,
         description} (api-dashboard.search.brave.com, Web Search API).
Tavily:  POST {base}/search {query, max_results}, bearer key, results[].{title, url, content} (docs.tavily.com).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sentinel_rag.tools.web.providers.exchange import SearchService
from sentinel_rag.tools.web.providers.port import WebHit, hit_of

BRAVE_URL = "https://api.search.brave.com"
TAVILY_URL = "https://api.tavily.com"

_MARKUP = re.compile(r"</?strong>")


class SearXng:
    """A SearXNG instance; `url` is its base address."""

    def __init__(self, url: str) -> None:
        self._service = SearchService("SearXNG", f"{url.rstrip('/')}/search", headers={})

    async def search(self, query: str, *, limit: int) -> list[WebHit]:
        found = await self._service.get({"q": query, "format": "json"})
        return _hits(self._service.entries(found.get("results")), "content", limit)

    async def close(self) -> None:
        await self._service.close()


class Brave:
    """Brave's Web Search API."""

    def __init__(self, key: str, url: str = BRAVE_URL) -> None:
        self._service = SearchService(
            "Brave Search", f"{url.rstrip('/')}/res/v1/web/search", headers={"X-Subscription-Token": key}
        )

    async def search(self, query: str, *, limit: int) -> list[WebHit]:
        found = await self._service.get({"q": query, "count": str(limit), "text_decorations": "false"})
        web = found.get("web", {"results": []})  # a search without web results has no such part
        entries = self._service.entries(web.get("results") if isinstance(web, dict) else None)
        # Brave marks the words that were found and escapes the rest as HTML; a snippet is plain text.
        return [
            replace(hit, title=_unmarked(hit.title), snippet=_unmarked(hit.snippet))
            for hit in _hits(entries, "description", limit)
        ]

    async def close(self) -> None:
        await self._service.close()


class Tavily:
    """Tavily's search API."""

    def __init__(self, key: str, url: str = TAVILY_URL) -> None:
        self._service = SearchService("Tavily", f"{url.rstrip('/')}/search", headers={"Authorization": f"Bearer {key}"})

    async def search(self, query: str, *, limit: int) -> list[WebHit]:
        found = await self._service.post({"query": query, "max_results": limit})
        return _hits(self._service.entries(found.get("results")), "content", limit)

    async def close(self) -> None:
        await self._service.close()


def _hits(entries: Iterable[Any], snippet: str, limit: int) -> list[WebHit]:
    hits = (hit_of(entry, snippet=snippet) for entry in entries)
    return [hit for hit in hits if hit is not None][:limit]


def _unmarked(text: str) -> str:
    return html.unescape(_MARKUP.sub("", text))
