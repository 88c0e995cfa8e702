"""Fetches one public page as readable text, safe against being sent elsewhere (SSRF) and against what comes back.

Each hop is judged anew: its URL, every address of its host, the scheme after a redirect. No proxy, no cookie, no
credential and no referrer is sent. A page is read within a bound of time and size, of text types only; what an error
page says is not repeated.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

import aiohttp  # noqa: TID253  # the module is about HTTP
from aiohttp import TCPConnector  # noqa: TID253  # the module is about aiohttp's connections
from aiohttp.abc import AbstractResolver, ResolveResult  # noqa: TID253  # the same
from yarl import URL

from sentinel_rag import __version__
from sentinel_rag.contracts.query_results import QueryErrorCode, QueryFailedError, invalid_argument
from sentinel_rag.tools.mcp_frame import failed
from sentinel_rag.tools.web.page_text import PageText, is_readable, page_text

_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 47}
"""`wbits` of zlib for each content coding; 47 takes both headers."""

ACCEPTED = "gzip, deflate"


class BodyTooLarge(Exception):
    """The body passes the bound."""


class Unreadable(Exception):
    """The body is packed in a way that is not known, or damaged."""


async def bounded_body(chunks: AsyncIterator[bytes], *, coding: str, limit: int) -> bytes:
    """The whole body, at most `limit` bytes both as sent and unpacked. Raises TooLarge or Unreadable."""
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        return await _plain(chunks, limit)
    if coding not in _WINDOWS:
        raise Unreadable
    unpack = zlib.decompressobj(_WINDOWS[coding])
    body = bytearray()
    sent = 0
    try:
        async for chunk in chunks:
            sent += len(chunk)
            if sent > limit:
                raise BodyTooLarge
            body += unpack.decompress(chunk, limit + 1 - len(body))
            if len(body) > limit or unpack.unconsumed_tail:
                raise BodyTooLarge
        body += unpack.flush()
    except zlib.error:
        raise Unreadable from None
    if not unpack.eof:
        raise Unreadable
    if len(body) > limit:
        raise BodyTooLarge
    return bytes(body)


async def _plain(chunks: AsyncIterator[bytes], limit: int) -> bytes:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > limit:
            raise BodyTooLarge
    return bytes(body)


# The lists follow IANA's special-purpose registries (RFC 6890 and its updates). IPv6 is allowed by what is allocated
# and not by what is forbidden, so every form that carries an IPv4 address inside (mapped, compatible, NAT64) falls out
# with the rest; 6to4 and Teredo lie inside the allocated block and are named. Python's own `is_global` is not used: its
# answer has changed between patch releases.
_CLOSED_V4 = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT; also metadata at 100.100.100.200
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's host agent, in public space but only inside Azure
        "169.254.0.0/16",  # link-local; metadata at 169.254.169.254
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments; metadata at 192.0.0.192
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
_OPEN_V6 = ip_network("2000::/3")
_CLOSED_V6 = tuple(
    ip_network(text)
    for text in (
        "2001::/23",  # protocol assignments: Teredo, ORCHID, benchmarks
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: an IPv4 address inside
        "3fff::/20",  # documentation
    )
)


def is_public(text: str) -> bool:
    """True for an address of the public internet. False for any other text, a scoped address too."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    match address:
        case IPv4Address():
            return not any(address in network for network in _CLOSED_V4)
        case IPv6Address():
            closed = any(address in network for network in _CLOSED_V6)
            return address.scope_id is None and address in _OPEN_V6 and not closed


# The parts that come out of here are what is resolved, connected to and sent: no library parses the text a second time
# in its own way. Addresses are judged later, when the name has been resolved.
DEFAULT_PORTS = {"http": 80, "https": 443}
MAX_URL_CHARACTERS = 2_000

_AUTHORITY = re.compile(r"(?:\[[^\[\]]+\]|[^\[\]:]+)(?::[0-9]{1,5})?")
_PRINTABLE = re.compile(r"[!-~]+")
_NAME = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z0-9-]{2,63}")


@dataclass(frozen=True, slots=True)
class PageAddress:
    """`host` is a DNS name in lower case or an IP address without brackets; `target` is path and query."""

    scheme: str
    host: str
    port: int
    target: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.target}"


def page_address(text: str, *, ports: Collection[int]) -> PageAddress:
    """The address of an http or https page. Raises QueryFailedError for the argument `url`."""
    if len(text) > MAX_URL_CHARACTERS:
        raise refused(f"it is longer than {MAX_URL_CHARACTERS} characters")
    if not _PRINTABLE.fullmatch(text) or "\\" in text:
        raise refused("it holds a blank, a backslash or a character outside ASCII")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise refused("it is not well formed") from None
    scheme = parts.scheme.lower()
    if scheme not in DEFAULT_PORTS:
        raise refused("it is neither http nor https")
    if not text[len(scheme) :].startswith("://"):
        raise refused("it is not well formed")
    if "@" in parts.netloc:
        raise refused("it holds a user name")
    if not _AUTHORITY.fullmatch(parts.netloc):
        raise refused("its host is not well formed")
    host = _host(parts)
    port = DEFAULT_PORTS[scheme] if port is None else port
    if port not in ports:
        raise refused(f"port {port} is not one that pages are fetched from")
    query = f"?{parts.query}" if parts.query else ""
    return PageAddress(scheme, host, port, (parts.path or "/") + query)


def _host(parts: SplitResult) -> str:
    host = (parts.hostname or "").lower()
    if parts.netloc.startswith("["):
        try:
            address = IPv6Address(host)
        except ValueError:
            raise refused("its host is not an IPv6 address") from None
        if address.scope_id is not None:
            raise refused("its host is an address with a zone")
        return str(address)
    last = host.rpartition(".")[2]
    if last.isdigit() or re.fullmatch(r"0x[0-9a-f]*", last):
        # The standard for URLs reads such a host as a number; 127.1, 0x7f.1 and 2130706433 all are loopback.
        try:
            return str(IPv4Address(host))
        except ValueError:
            raise refused("its host is a number in another form than four decimal parts") from None
    if len(host) > 253 or not _NAME.fullmatch(host):
        raise refused("its host is not a full domain name")
    return host


def refused(why: str) -> QueryFailedError:
    """The refusal of a URL; `why` completes "because"."""
    return invalid_argument(
        "url", f"The page is not fetched: {why}.", "Give the full http or https URL of a page on the public internet."
    )


# A name is resolved once, every address that it has must be public, and the connection is made to one of just these.
# The socket itself is the last gate: it is created for an address of that set or not at all, so a library that resolved
# again, read the host differently or took a proxy would have nothing to talk through.
Lookup = Callable[[str], Awaitable[Sequence[str]]]
"""All IP addresses of a DNS name. Raises OSError if it has none."""
MayConnect = Callable[[str], bool]


async def system_lookup(name: str) -> Sequence[str]:
    """The system's resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def permitted_addresses(
    address: PageAddress, *, lookup: Lookup, may_connect: MayConnect = is_public
) -> frozenset[str]:
    """The addresses to which a connection for `address` may be made. Raises QueryFailedError if there is none, or if
    one of them is not public: a name with both is an attack.

    The refusal does not tell "no such name" from "a private address", so nobody can map an internal DNS with it."""
    try:
        found = [str(ip_address(address.host))]
    except ValueError:
        try:
            found = list(await lookup(address.host))
        except (OSError, UnicodeError):
            found = []
    if not found or not all(may_connect(each) for each in found):
        raise _out_of_bounds()
    return frozenset(found)


def pinned_connector(addresses: frozenset[str], *, limit_per_host: int = 1) -> TCPConnector:
    """A connector whose sockets reach `addresses` and nothing else."""

    def open_socket(info: Any) -> socket.socket:
        family, kind, protocol, _, target = info
        if target[0] not in addresses:
            raise OSError("not an address that was judged")
        opened = socket.socket(family, kind, protocol)
        opened.setblocking(False)
        return opened

    return TCPConnector(
        resolver=_Pinned(addresses),
        use_dns_cache=False,
        force_close=True,
        limit_per_host=limit_per_host,
        socket_factory=open_socket,
    )


class _Pinned(AbstractResolver):
    """Answers every name with the addresses that were judged."""

    def __init__(self, addresses: frozenset[str]) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in sorted(self._addresses)
        ]

    async def close(self) -> None:
        return None


def _out_of_bounds() -> QueryFailedError:
    return invalid_argument(
        "url", "The page is not fetched: its host has no public address.", "Give the URL of a page on the public web."
    )


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
        """The page at `url`. Raises QueryFailedError."""
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
            raise invalid_argument(
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
            raise invalid_argument(
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


def _no_page(status: int) -> QueryFailedError:
    if status in (404, 410):
        return invalid_argument("url", f"There is no such page (status {status}).", "Check the URL, or search for it.")
    if status == 429:
        return failed(QueryErrorCode.THROTTLED, "The page's server asks to wait.", "Fetch it later.")
    return failed(
        QueryErrorCode.UNAVAILABLE,
        f"The page's server answered with status {status}.",
        "Fetch another page, or try again later.",
    )
