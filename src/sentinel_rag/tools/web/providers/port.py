"""The port of a search provider and what its answers become."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sentinel_rag.contracts.json_values import JsonValue

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
        """At most `limit` results, best first. Raises ToolFault."""
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
