"""Which IP addresses belong to the public internet; everything else is out of bounds for what an agent asks.

The lists follow IANA's special-purpose registries (RFC 6890 and its updates). IPv6 is allowed by what is allocated and
not by what is forbidden, so every form that carries an IPv4 address inside (mapped, compatible, NAT64) falls out with
the rest; 6to4 and Teredo lie inside the allocated block and are named. Python's own `is_global` is not used: its
answer has changed between patch releases.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

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
