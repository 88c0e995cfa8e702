"""Whether a request was meant for this machine: what every server here asks first, before keys and tokens.

A web page can make a browser send requests to 127.0.0.1 (DNS rebinding, cross-site forms). Such a request carries the
page's own name in Host or in Origin. Pure checks of header values; each server refuses in the words of its own wire.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
"""The names of this machine to itself; an IPv6 address stands without its brackets."""

_AUTHORITY = re.compile(r"(?:\[(?P<address>[0-9a-fA-F:.]+)\]|(?P<name>[^\s:@/\\?#\[\]]+))(?::\d{0,5})?")


def is_own_host(hosts: Sequence[str], own: Collection[str] = LOOPBACK_NAMES) -> bool:
    """True if there is exactly one Host header and it is `name` or `name:port` with a name of `own`."""
    return len(hosts) == 1 and _host_name(hosts[0]) in own


def is_own_origin(origins: Sequence[str], own: Collection[str] = LOOPBACK_NAMES) -> bool:
    """True unless an Origin header names a page of another host. Programs that are no browser send none."""
    return all(_host_name(origin.partition("://")[2]) in own for origin in origins)


def _host_name(authority: str) -> str | None:
    """The host in lower case; None for what is more than `host[:port]` or not well formed."""
    match = _AUTHORITY.fullmatch(authority)
    return (match["address"] or match["name"]).lower() if match else None
