"""IPv4 and IPv6 addresses and networks: `ipv4_*`, `ipv6_*`, `parse_ip*`, `format_ip*` and the searches `has_ipv4*`.

Source: the Kusto pages named like the functions. What is no address is null (or the empty text where Kusto says so),
never an error. What hunting asks of each row (`ipv4_is_private`) is SQL; the rest is Python.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from kql_duckdb.functions.definitions import NoAnswer, python, pythons, refusal

_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_ADDRESS = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_IPV4 = re.compile(rf"\s*({_ADDRESS})(?:/(3[0-2]|[12]?\d))?\s*")
_BITS = 32


@lru_cache(4096)
def _ipv4(text: str) -> tuple[int, int] | None:
    """The address as a number, not masked, and the length of its network; None for what is no address."""
    found = _IPV4.fullmatch(text)
    if found is None:
        return None
    first, second, third, fourth = map(int, found[1].split("."))
    return (first << 24) | (second << 16) | (third << 8) | fourth, int(found[2] or _BITS)


def _cut(number: int, length: int, bits: int = _BITS) -> int:
    return number >> (bits - length) << (bits - length)


def _texts(values: Iterable[Any]) -> list[str]:
    """Texts, and those in arrays, as one list."""
    return [str(one) for value in values for one in (value if isinstance(value, list) else [value]) if one is not None]


@python("kql_format_ipv4(ip: string, prefix: long, mask: bool): string")
def _format_ipv4(text: str, length: int, mask: bool) -> str:
    found = _ipv4(text)
    if found is None and text.isdigit() and int(text) < 2**32:
        found = int(text), _BITS
    if found is None or not 0 <= length <= _BITS:
        return ""
    shortest = min(found[1], length)
    shown = str(ipaddress.IPv4Address(_cut(found[0], shortest)))
    return f"{shown}/{shortest}" if mask else shown


@python("ipv4_range_to_cidr_list(start_ip: string, end_ip: string): dynamic")
def _range_to_networks(start: str, end: str) -> list[str] | None:
    first, last = _ipv4(start), _ipv4(end)
    if first is None or last is None or first[0] > last[0]:
        return None
    found = ipaddress.summarize_address_range(ipaddress.IPv4Address(first[0]), ipaddress.IPv4Address(last[0]))
    return [str(network) for network in found]


_IN_TEXT = re.compile(r"(?<![A-Za-z0-9])\d{1,3}(?:\.\d{1,3}){3}(?![A-Za-z0-9])")
_PREFIX = re.compile(rf"(?:{_OCTET}\.){{1,3}}")


@python("kql_has_ipv4(text: string, ips: json[], prefixes: bool): bool")
def _has_ipv4(text: str, looked_for: list[Any], prefixes: bool) -> bool:
    """Addresses in a text end where no letter or digit follows. A prefix ends in a dot, or is a whole address."""
    found = [address for address in _IN_TEXT.findall(text) if _ipv4(address) is not None]
    for one in _texts(looked_for):
        if prefixes and _PREFIX.fullmatch(one):
            if any(address.startswith(one) for address in found):
                return True
        elif one in found and _ipv4(one) is not None:
            return True
    return False


@lru_cache(4096)
def _ipv6(text: str) -> tuple[int, int] | None:
    """The address as a number of 128 bits, not masked, and the length of its network in such bits.

    An IPv4 address is the last 32 of them, behind `::ffff:`.
    """
    address, slash, suffix = re.sub(r"%[^/]*", "", text.strip().lower()).partition("/")
    dotted = "." in address
    if slash and not (suffix.isdigit() and int(suffix) <= (32 if dotted else 128)):
        return None
    length = int(suffix) + (96 if dotted else 0) if slash else 128
    if dotted and (address.count(":") == 0 or re.fullmatch(r"::\d+\.\d+\.\d+\.\d+", address)):
        address = f"::ffff:{address.removeprefix('::')}"
    try:
        return int(ipaddress.IPv6Address(address)), length
    except ValueError:
        return None


def _read(text: str, bits: int) -> tuple[int, int]:
    found = _ipv4(text) if bits == _BITS else _ipv6(text)
    if found is None:
        raise NoAnswer
    return found


def _masked(text: str, length: int, bits: int) -> int:
    found = _read(text, bits)
    if not 0 <= length <= bits:
        raise NoAnswer
    return _cut(found[0], min(found[1], length), bits)


def _last(text: str, bits: int) -> int:
    """The last address of a network."""
    number, length = _read(text, bits)
    return number | ((1 << (bits - length)) - 1)


pythons({
    "parse_ipv4_mask(ip: string, prefix: long): long": lambda text, length: _masked(text, length, _BITS),
    "kql_ipv4_last(network: string): long": lambda network: _last(network, _BITS),
    "parse_ipv6_mask(ip: string, prefix: long): string": lambda text, length: (
        ipaddress.IPv6Address(_masked(text, length, 128)).exploded
    ),
    "kql_ipv6_last(network: string): string": lambda network: ipaddress.IPv6Address(_last(network, 128)).exploded,
})  # fmt: skip


@python("kql_ip_compare(ip1: string, ip2: string, prefix: long, bits: long): long")
def _compare(left: str, right: str, length: int, bits: int) -> int:
    """-1, 0 or 1 under the shortest of the three network lengths."""
    if length > bits:
        raise NoAnswer
    shortest = min(_read(left, bits)[1], _read(right, bits)[1], length)
    a, b = _masked(left, shortest, bits), _masked(right, shortest, bits)
    return (a > b) - (a < b)


@python("kql_ip_in_range(ip: string, ip_range: string, bits: long): bool")
def _in_range(address: str, network: str, bits: int) -> bool:
    """The address's own network length does not widen the range."""
    (number, _), (first, length) = _read(address, bits), _read(network, bits)
    return _cut(number, length, bits) == _cut(first, length, bits)


@python("kql_ip_in_any_range(ip: string, ranges: json[], bits: long): bool")
def _in_any_range(address: str, networks: list[Any], bits: int) -> bool:
    _read(address, bits)
    known = _ipv4 if bits == _BITS else _ipv6
    return any(known(network) and _in_range(address, network, bits) for network in _texts(networks))


@python(
    "geo_info_from_ip_address(ip: string): dynamic",
    note="null for private and reserved addresses; a public one ends the query, as no geographic data is here",
)
def _geo_info(text: str) -> None:
    """Null for an address that is on no map. A public one ends the query: null would silently fail a condition."""
    try:
        address = ipaddress.ip_address(text.strip())
    except ValueError:
        return
    if address.is_global and not address.is_multicast:
        raise refusal("geo_info_from_ip_address has no data here about the place of public addresses")
