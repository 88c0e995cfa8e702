"""Search of the web: the port, the services that offer it, and the bundled pages for who has none."""

from __future__ import annotations

import html
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import aiohttp  # noqa: TID253  # the module is about HTTP

from sentinel_rag import __version__
from sentinel_rag.contracts.file_tools import BUNDLED_SAMPLE
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import QueryErrorCode, QueryFailedError
from sentinel_rag.contracts.web_tools import BUNDLED_HOST
from sentinel_rag.tools.mcp_frame import failed
from sentinel_rag.tools.web.fetching import BodyTooLarge, Unreadable, bounded_body

MAX_TITLE = 300
MAX_SNIPPET = 1_000
MAX_URL = 2_000


@dataclass(frozen=True, slots=True)
class WebHit:
    """One result. `source` is empty for the web, and names what else the page comes from."""

    title: str
    url: str
    snippet: str
    source: str = ""

    def to_dict(self) -> dict[str, JsonValue]:
        found: dict[str, JsonValue] = {"title": self.title, "url": self.url, "snippet": self.snippet}
        return {**found, "source": self.source} if self.source else found


class SearchProvider(Protocol):
    """Finds pages."""

    async def search(self, query: str, *, limit: int) -> list[WebHit]:
        """At most `limit` results, best first. Raises QueryFailedError."""
        ...

    async def close(self) -> None: ...


def hit_of(entry: Any, *, snippet: str) -> WebHit | None:
    """A provider's entry with `title`, `url` and a snippet under the key `snippet`; None if it has no usable URL."""
    if not isinstance(entry, Mapping):
        return None
    url = entry.get("url")
    if not isinstance(url, str) or len(url) > MAX_URL or not url.startswith(("http://", "https://")):
        return None
    return WebHit(_line(entry.get("title"), MAX_TITLE) or url, url, _line(entry.get(snippet), MAX_SNIPPET))


def _line(value: Any, longest: int) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return text if len(text) <= longest else text[: longest - 1] + "…"


# The address of a service is the operator's own setting, so it may lie on a private network; nothing that an agent
# sends chooses where it goes. What a service answers in an error stays here: its body may quote the key.
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
        """The JSON object that the service answers to a GET. Raises QueryFailedError."""
        return await self._exchange("GET", params=parameters)

    async def post(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The JSON object that the service answers to a POST of a JSON body. Raises QueryFailedError."""
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
        """`value` as the list of results that it must be. Raises QueryFailedError."""
        if not isinstance(value, list):
            raise self._not_understood()
        return value

    def _not_understood(self) -> QueryFailedError:
        return failed(
            QueryErrorCode.PROTOCOL,
            f"The answer of {self._name} is not in its documented form.",
            "Check SENTINEL_SEARCH_PROVIDER and SENTINEL_SEARCH_URL.",
        )

    def _refusal(self, status: int, retry_after: str) -> QueryFailedError:
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


# SearXNG: GET {base}/search?q=...&format=json, results[].{title, url, content} (docs.searxng.org, Search API). Brave:
# GET {base}/res/v1/web/search?q=...&count=..., header X-Subscription-Token, web.results[].{title, url, description}
# (api-dashboard.search.brave.com, Web Search API). Tavily: POST {base}/search {query, max_results}, bearer key,
# results[].{title, url, content} (docs.tavily.com).
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


# The pages that are shipped: what answers a search while no provider is configured, without any network. Each is a
# Markdown file in `pages/`: a title line, then paragraphs. Ranked by the words that a page shares with the query, rare
# words counting more; a page that lacks most of the query's weight is no result, for a wrong page is worse than none.
FOLDER = Path(__file__).resolve().parent / "pages"
MIN_SHARE = 0.5
"""How much of a query's weight a page must hold."""
TITLE_WEIGHT = 3

_WORD = re.compile(r"[a-z0-9]+")
_STOP = frozenset(
    _WORD.findall(
        "a about an and are be by can do does explain for from how i in into is it know learn me mean means meaning of "
        "on or please search tell that the this to us want was web what whats when which who why with would you your"
    )
)


@dataclass(frozen=True, slots=True)
class BundledPage:
    """One page; `text` is its paragraphs without the title."""

    name: str
    title: str
    text: str

    @property
    def url(self) -> str:
        return f"https://{BUNDLED_HOST}/{self.name}"

    @property
    def snippet(self) -> str:
        """The first paragraph, on one line."""
        return " ".join(self.text.partition("\n\n")[0].split())


@cache
def bundled_pages() -> Mapping[str, BundledPage]:
    """The shipped pages by URL."""
    pages = (_page(file) for file in sorted(FOLDER.glob("*.md")))
    return {page.url: page for page in pages}


class BundledPages:
    """`SearchProvider` over the shipped pages."""

    async def search(self, query: str, *, limit: int) -> list[WebHit]:
        pages = tuple(bundled_pages().values())
        words = {page.url: _weights(page) for page in pages}
        wanted = set(_words(query))
        weight = {word: _rarity(word, words) for word in wanted}
        whole = sum(weight.values())
        scored = []
        for page in pages:
            held = words[page.url]
            share = sum(weight[word] for word in wanted if word in held)
            if wanted and share >= MIN_SHARE * whole:
                scored.append((-sum(weight[word] * math.sqrt(held[word]) for word in wanted), page))
        scored.sort(key=lambda each: (each[0], each[1].name))
        return [WebHit(page.title, page.url, page.snippet, BUNDLED_SAMPLE) for _, page in scored[:limit]]

    async def close(self) -> None:
        return None


def _page(file: Path) -> BundledPage:
    title, _, text = file.read_text(encoding="utf-8").partition("\n")
    return BundledPage(file.stem, title.removeprefix("# ").strip(), text.strip())


def _words(text: str) -> list[str]:
    """Words in lower case without accents, plural s and the words that every question has."""
    folded = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return [
        word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
        for word in _WORD.findall(folded)
        if word not in _STOP
    ]


def _weights(page: BundledPage) -> Counter[str]:
    counts = Counter(_words(page.text))
    for word in _words(page.title):
        counts[word] += TITLE_WEIGHT
    return counts


def _rarity(word: str, words: Mapping[str, Counter[str]]) -> float:
    holding = sum(word in held for held in words.values())
    return math.log(1 + (len(words) - holding + 0.5) / (holding + 0.5))
