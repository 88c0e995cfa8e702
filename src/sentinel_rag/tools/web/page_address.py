"""A URL that may be fetched, taken apart once; whatever could be read in two ways is refused.

The parts that come out of here are what is resolved, connected to and sent: no library parses the text a second time in
its own way. Addresses are judged later, by `public_addresses`, when the name has been resolved.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import SplitResult, urlsplit

from sentinel_rag.tools.tool_answer import ToolFault, wrong_argument

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
    """The address of an http or https page. Raises ToolFault for the argument `url`."""
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


def refused(why: str) -> ToolFault:
    """The refusal of a URL; `why` completes "because"."""
    return wrong_argument(
        "url", f"The page is not fetched: {why}.", "Give the full http or https URL of a page on the public internet."
    )
