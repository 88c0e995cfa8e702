"""Fetches one public page as readable text, safe against being sent elsewhere (SSRF) and against what comes back.

Each hop is judged anew: its URL, every address of its host, the scheme after a redirect. No proxy, no cookie, no
credential and no referrer is sent. A page is read within a bound of time and size, of text types only; what an error
page says is not repeated.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from urllib.parse import urljoin

import aiohttp  # noqa: TID253  # the module is about HTTP
from yarl import URL

from sentinel_rag import __version__
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.tools.tool_answer import ToolFault, failed, wrong_argument
from sentinel_rag.tools.web.bounded_body import ACCEPTED, BodyTooLarge, Unreadable, bounded_body
from sentinel_rag.tools.web.page_address import PageAddress, page_address, refused
from sentinel_rag.tools.web.page_text import PageText, is_readable, page_text
from sentinel_rag.tools.web.pinned_connection import (
    Lookup,
    MayConnect,
    permitted_addresses,
    pinned_connector,
    system_lookup,
)
from sentinel_rag.tools.web.public_addresses import is_public

MAX_REDIRECTS = 5
MAX_PAGE_BYTES = 4 * 1024 * 1024
TIMEOUT_S = 20.0
WEB_PORTS = frozenset({80, 443})

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HEADERS: Mapping[str, str] = {
    "User-Agent": f"sentinel-rag/{__version__}",
    "Accept": "text/html, text/plain, application/json, application/xml;q=0.9, text/xml;q=0.9",
    "Accept-Encoding": ACCEPTED,
}


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """A page as it was read; `url` is where the last redirect led."""

    url: str
    content_type: str
    page: PageText


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchBounds:
    """Where pages may come from and how much of them. `hosts` empty means every public host; a name there stands for
    itself and what lies below it."""

    hosts: tuple[str, ...] = ()
    ports: Collection[int] = WEB_PORTS
    max_bytes: int = MAX_PAGE_BYTES
    timeout_s: float = TIMEOUT_S


class PageFetcher:
    """Fetches pages within `bounds`.

    `lookup`, `may_connect` and `trusted` exist for tests on loopback and are set by no setting: the shipped wiring
    leaves them alone, so that an address that is not public can be reached by no configuration.
    """

    def __init__(
        self,
        bounds: FetchBounds | None = None,
        *,
        lookup: Lookup = system_lookup,
        may_connect: MayConnect = is_public,
        trusted: Callable[[], ssl.SSLContext] = ssl.create_default_context,
    ) -> None:
        self._bounds = bounds or FetchBounds()
        self._lookup = lookup
        self._may_connect = may_connect
        self._trusted = trusted
        self._tls: ssl.SSLContext | None = None

    async def fetch(self, url: str) -> FetchedPage:
        """The page at `url`. Raises ToolFault."""
        try:
            async with asyncio.timeout(self._bounds.timeout_s):
                return await self._follow(url)
        except TimeoutError:
            raise failed(
                QueryErrorCode.TIMEOUT,
                f"The page did not arrive within {self._bounds.timeout_s:g} seconds.",
                "Try again, or fetch another page.",
            ) from None

    async def _follow(self, url: str) -> FetchedPage:
        address = self._judged(url)
        for _ in range(MAX_REDIRECTS + 1):
            found = await self._hop(address)
            if isinstance(found, FetchedPage):
                return found
            following = self._judged(urljoin(str(address), found))
            if address.scheme == "https" and following.scheme == "http":
                raise refused("it redirects from https to http")
            address = following
        raise refused(f"it redirects more than {MAX_REDIRECTS} times")

    def _judged(self, url: str) -> PageAddress:
        address = page_address(url, ports=self._bounds.ports)
        hosts = self._bounds.hosts
        if hosts and not any(address.host == host or address.host.endswith(f".{host}") for host in hosts):
            raise refused("its host is not on the list of SENTINEL_WEB_ALLOWED_HOSTS")
        return address

    async def _hop(self, address: PageAddress) -> FetchedPage | str:
        """The page, or the Location that the server names instead."""
        addresses = await permitted_addresses(address, lookup=self._lookup, may_connect=self._may_connect)
        if self._tls is None and address.scheme == "https":
            self._tls = await asyncio.to_thread(self._trusted)
        try:
            async with (
                aiohttp.ClientSession(
                    connector=pinned_connector(addresses),
                    cookie_jar=aiohttp.DummyCookieJar(),
                    trust_env=False,
                    auto_decompress=False,
                    max_line_size=8_190,
                    max_field_size=8_190,
                ) as session,
                session.get(
                    URL(str(address), encoded=True),
                    headers=_HEADERS,
                    allow_redirects=False,
                    ssl=self._tls if self._tls is not None else True,
                ) as response,
            ):
                location = response.headers.get("Location")
                if response.status in _REDIRECTS and location is not None:
                    return location
                return await self._page(address, response)
        except aiohttp.ClientSSLError:
            raise failed(
                QueryErrorCode.UNAVAILABLE,
                "The server's certificate is not valid for this address.",
                "Fetch another page; certificates are always checked.",
            ) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if isinstance(error, TimeoutError):
                raise
            raise failed(
                QueryErrorCode.UNAVAILABLE,
                "The page could not be fetched: its server cannot be reached or does not speak HTTP.",
                "Check the URL, or try again later.",
            ) from None

    async def _page(self, address: PageAddress, response: aiohttp.ClientResponse) -> FetchedPage:
        if response.status != 200:
            raise _no_page(response.status)
        content_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if not is_readable(content_type):
            raise wrong_argument(
                "url",
                "The page is not text: only HTML, plain text, JSON and XML are read.",
                "Fetch a page of one of these types.",
            )
        try:
            body = await bounded_body(
                response.content.iter_any(),
                coding=response.headers.get("Content-Encoding", ""),
                limit=self._bounds.max_bytes,
            )
        except BodyTooLarge:
            raise wrong_argument(
                "url",
                f"The page is larger than {self._bounds.max_bytes} bytes, so none of it is read.",
                "Fetch a smaller page.",
            ) from None
        except Unreadable:
            raise failed(
                QueryErrorCode.PROTOCOL, "The page arrived damaged or packed in an unknown way.", "Fetch another page."
            ) from None
        page = await asyncio.to_thread(page_text, body, content_type, response.charset)
        return FetchedPage(str(address), content_type, page)


def _no_page(status: int) -> ToolFault:
    if status in (404, 410):
        return wrong_argument("url", f"There is no such page (status {status}).", "Check the URL, or search for it.")
    if status == 429:
        return failed(QueryErrorCode.THROTTLED, "The page's server asks to wait.", "Fetch it later.")
    return failed(
        QueryErrorCode.UNAVAILABLE,
        f"The page's server answered with status {status}.",
        "Fetch another page, or try again later.",
    )
