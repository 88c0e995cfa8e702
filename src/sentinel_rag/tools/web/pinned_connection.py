"""Connections that go where they were judged to go, and nowhere else.

A name is resolved once, every address that it has must be public, and the connection is made to one of just these.
The socket itself is the last gate: it is created for an address of that set or not at all, so a library that resolved
again, read the host differently or took a proxy would have nothing to talk through.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address
from typing import Any

from aiohttp import TCPConnector  # noqa: TID253  # the module is about aiohttp's connections
from aiohttp.abc import AbstractResolver, ResolveResult  # noqa: TID253  # the same

from sentinel_rag.tools.tool_answer import ToolFault, wrong_argument
from sentinel_rag.tools.web.page_address import PageAddress
from sentinel_rag.tools.web.public_addresses import is_public

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
    """The addresses to which a connection for `address` may be made. Raises ToolFault if there is none, or if one of
    them is not public: a name with both is an attack.

    The refusal does not tell "no such name" from "a private address", so nobody can map an internal DNS with it.
    """
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


def _out_of_bounds() -> ToolFault:
    return wrong_argument(
        "url", "The page is not fetched: its host has no public address.", "Give the URL of a page on the public web."
    )
