"""Following `nextLink` to the end: to the same endpoint only, each page once, and no further than makes sense."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sentinel_rag.sentinel.failures import QueryFailedError
from sentinel_rag.sentinel.rest.arm_errors import protocol_error
from sentinel_rag.sentinel.rest.connection import ArmConnection

MOST_PAGES = 1_000


PAGE_SIZES = frozenset({50, 100, 200, 1_000})
"""Sizes at which services end a page, whatever was asked for."""


@dataclass(frozen=True, slots=True)
class Pages:
    """The items of the pages that were read. `complete` is False where there are more, and where nobody can tell: the
    last page is exactly as long as pages are, and names no further one."""

    items: list[Mapping[str, Any]]
    complete: bool


async def read_pages(
    connection: ArmConnection, url: str, *, most: int | None = None, page_size: int | None = None
) -> Pages:
    """The items of every page from `url` on, at most `most`; `page_size` is what was asked for. Raises
    QueryFailedError.

    A link to another host would carry the token there, and a link that was followed already would never end: both are
    errors, since a list that stops in the middle would look whole.
    """
    items: list[Mapping[str, Any]] = []
    seen: set[str] = set()
    link: str | None = url
    full_page = False
    while link is not None and (most is None or len(items) < most):
        if not connection.is_own(link):
            raise QueryFailedError(protocol_error("The list goes on at another host, where our token must not go."))
        if link in seen or len(seen) >= MOST_PAGES:
            raise QueryFailedError(protocol_error("The list's pages lead back to each other or never end."))
        seen.add(link)
        page = await connection.read(link)
        value, following = page.get("value"), page.get("nextLink")
        if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
            raise QueryFailedError(protocol_error("Microsoft Sentinel answered with something that is no list."))
        items += value
        link = following if isinstance(following, str) and following else None
        full_page = len(value) == page_size or len(value) in PAGE_SIZES
    kept = items if most is None else items[:most]
    return Pages(kept, link is None and not full_page and len(kept) == len(items))
