"""The pages that are shipped: what answers a search while no provider is configured, without any network.

Each is a Markdown file in `pages/`: a title line, then paragraphs. Ranked by the words that a page shares with the
query, rare words counting more; a page that lacks most of the query's weight is no result, for a wrong page is worse
than none.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sentinel_rag.contracts.file_tools import BUNDLED_SAMPLE
from sentinel_rag.contracts.web_tools import BUNDLED_HOST
from sentinel_rag.tools.web.providers.port import WebHit

FOLDER = Path(__file__).resolve().parent.parent / "pages"
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
