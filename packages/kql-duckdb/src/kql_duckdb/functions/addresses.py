"""IPv4 and IPv6 addresses and networks: `ipv4_*`, `ipv6_*`, `parse_ip*`, `format_ip*` and the searches `has_ipv4*`.

Source: the Kusto pages named like the functions. What is no address is null (or the empty text where Kusto says so),
never an error. What hunting asks of each row (`ipv4_is_private`) is SQL; the rest is Python.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from kql_duckdb.expressions import Typed, json_text, literal
from kql_duckdb.functions.conversion import BOOL, LONG, STRING, convert, json_value, to_string
from kql_duckdb.functions.definitions import BoundCall, ScalarFunction, fill, function
from kql_duckdb.functions.python_functions import dynamic_function, python_function, refusal

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


def _masked(number: int, length: int) -> int:
    return number >> (_BITS - length) << (_BITS - length)


@python_function("kql_parse_ipv4", ("VARCHAR", "BIGINT"), "BIGINT")
def _parse_ipv4(text: str | None, length: int | None) -> int | None:
    found = _ipv4(text or "")
    if found is None or length is None or not 0 <= length <= _BITS:
        return None
    return _masked(found[0], min(found[1], length))


@python_function("kql_ipv4_compare", ("VARCHAR", "VARCHAR", "BIGINT"), "BIGINT")
def _ipv4_compare(left: str, right: str, length: int | None) -> int | None:
    """-1, 0 or 1 under the shortest of the three network lengths."""
    first, second = _ipv4(left), _ipv4(right)
    if first is None or second is None or length is None or not 0 <= length <= _BITS:
        return None
    shortest = min(first[1], second[1], length)
    a, b = _masked(first[0], shortest), _masked(second[0], shortest)
    return (a > b) - (a < b)


@python_function("kql_ipv4_in_range", ("VARCHAR", "VARCHAR"), "BOOLEAN")
def _ipv4_in_range(address: str, network: str) -> bool | None:
    """The address's own network length does not widen the range."""
    first, second = _ipv4(address), _ipv4(network)
    if first is None or second is None:
        return None
    return _masked(first[0], second[1]) == _masked(second[0], second[1])


@python_function("kql_ipv4_last", ("VARCHAR",), "BIGINT")
def _ipv4_last(network: str | None) -> int | None:
    found = _ipv4(network or "")
    return None if found is None else _masked(found[0], found[1]) + 2 ** (_BITS - found[1]) - 1


def _texts(values: Iterable[Any]) -> list[str]:
    """Texts, and those in arrays, as one list."""
    return [str(one) for value in values for one in (value if isinstance(value, list) else [value]) if one is not None]


def _any_range(inside: Callable[[str, str], bool | None], address: str, networks: list[Any]) -> bool | None:
    found = [inside(address, network) for network in _texts(networks)]
    if True in found:
        return True
    return False if inside(address, "::/0" if inside is _ipv6_in_range else "0.0.0.0/0") is not None else None


@dynamic_function("kql_ipv4_in_any_range", ("VARCHAR", "JSON[]"), "BOOLEAN")
def _ipv4_in_any_range(address: str, networks: list[Any]) -> bool | None:
    return _any_range(_ipv4_in_range, address, networks)


@python_function("kql_format_ipv4", ("VARCHAR", "BIGINT", "BOOLEAN"), "VARCHAR")
def _format_ipv4(text: str, length: int | None, mask: bool) -> str:
    found = _ipv4(text)
    if found is None and text.isdigit() and int(text) < 2**32:
        found = int(text), _BITS
    if found is None or length is None or not 0 <= length <= _BITS:
        return ""
    shortest = min(found[1], length)
    shown = str(ipaddress.IPv4Address(_masked(found[0], shortest)))
    return f"{shown}/{shortest}" if mask else shown


@python_function("kql_ipv4_range", ("VARCHAR", "VARCHAR"), "JSON")
def _range_to_networks(start: str, end: str) -> str | None:
    first, last = _ipv4(start), _ipv4(end)
    if first is None or last is None or first[0] > last[0]:
        return None
    found = ipaddress.summarize_address_range(ipaddress.IPv4Address(first[0]), ipaddress.IPv4Address(last[0]))
    return json_text([str(network) for network in found])


_PRIVATE = r"^(?:10|192\.168|172\.(?:1[6-9]|2\d|3[01]))\."
_NETWORK_FORM = rf"^{_ADDRESS}(?:/(?:3[0-2]|[12]?\d))?$"
_IS_PRIVATE = (
    f"CASE WHEN NOT regexp_matches({{0}}, {{1}}) THEN NULL WHEN contains({{0}}, '/') THEN kql_ipv4_private({{0}}) "
    f"ELSE regexp_matches({{0}}, '{_PRIVATE}') END"
)


def _is_private(call: BoundCall) -> Typed:
    return fill(_IS_PRIVATE, BOOL, call.arguments[0], literal(_NETWORK_FORM, STRING))


@python_function("kql_ipv4_private", ("VARCHAR",), "BOOLEAN")
def _ipv4_private(text: str) -> bool | None:
    masked = _format_ipv4(text, _BITS, False)
    return re.match(_PRIVATE, masked) is not None if masked else None


_IN_TEXT = re.compile(r"(?<![A-Za-z0-9])\d{1,3}(?:\.\d{1,3}){3}(?![A-Za-z0-9])")
_PREFIX = re.compile(rf"(?:{_OCTET}\.){{1,3}}")


@dynamic_function("kql_has_ipv4", ("VARCHAR", "JSON[]", "BOOLEAN"), "BOOLEAN")
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


def _cut(number: int, length: int) -> int:
    return number >> (128 - length) << (128 - length)


@python_function("kql_parse_ipv6", ("VARCHAR", "BIGINT"), "VARCHAR")
def _parse_ipv6(text: str, length: int | None) -> str:
    found = _ipv6(text)
    if found is None or length is None or not 0 <= length <= 128:
        return ""
    return ipaddress.IPv6Address(_cut(found[0], min(found[1], length))).exploded


@python_function("kql_ipv6_compare", ("VARCHAR", "VARCHAR", "BIGINT"), "BIGINT")
def _ipv6_compare(left: str, right: str, length: int | None) -> int | None:
    first, second = _ipv6(left), _ipv6(right)
    if first is None or second is None or length is None or not 0 <= length <= 128:
        return None
    shortest = min(first[1], second[1], length)
    a, b = _cut(first[0], shortest), _cut(second[0], shortest)
    return (a > b) - (a < b)


@python_function("kql_ipv6_in_range", ("VARCHAR", "VARCHAR"), "BOOLEAN")
def _ipv6_in_range(address: str, network: str) -> bool | None:
    first, second = _ipv6(address), _ipv6(network)
    if first is None or second is None:
        return None
    return _cut(first[0], second[1]) == _cut(second[0], second[1])


@python_function("kql_ipv6_last", ("VARCHAR",), "VARCHAR")
def _ipv6_last(network: str | None) -> str | None:
    found = _ipv6(network or "")
    return None if found is None else ipaddress.IPv6Address(found[0] | (2 ** (128 - found[1]) - 1)).exploded


@dynamic_function("kql_ipv6_in_any_range", ("VARCHAR", "JSON[]"), "BOOLEAN")
def _ipv6_in_any_range(address: str, networks: list[Any]) -> bool | None:
    return _any_range(_ipv6_in_range, address, networks)


@python_function("kql_geo_info", ("VARCHAR",), "JSON")
def _geo_info(text: str) -> None:
    """Null for an address that is on no map. A public one ends the query: null would silently fail a condition."""
    try:
        address = ipaddress.ip_address(text.strip())
    except ValueError:
        return
    if address.is_global and not address.is_multicast:
        raise refusal("geo_info_from_ip_address has no data here about the place of public addresses")


def _with_length(template: str, result: Any, bits: int) -> Callable[[BoundCall], Typed]:
    """A function whose last argument, the length of the network, may be left out."""

    def build(call: BoundCall) -> Typed:
        texts = [to_string(argument) for argument in call.arguments[: template.count("{") - 1]]
        given = call.arguments[len(texts) :]
        length = convert(given[0], LONG) if given else literal(bits, LONG)
        return fill(template, result, *texts, length)

    return build


def _among(python: str, extra: str = "") -> Callable[[BoundCall], Typed]:
    """A function of a text and of others, as arguments or in arrays."""

    def build(call: BoundCall) -> Typed:
        text, *others = call.arguments
        values = [json_value(other) for other in others]
        listed = ", ".join(f"{{{place + 1}}}" for place in range(len(values)))
        return fill(f"{python}({{0}}, [{listed}]{extra})", BOOL, text, *values)

    return build


FUNCTIONS: tuple[ScalarFunction, ...] = (
    function("parse_ipv4(ip: string): long", "kql_parse_ipv4({0}, 32)"),
    function("parse_ipv4_mask(ip: string, prefix: long): long", "kql_parse_ipv4({0}, {1})"),
    function(
        "ipv4_compare(ip1: string, ip2: string, prefix?: long)",
        _with_length("kql_ipv4_compare({0}, {1}, {2})", LONG, _BITS),
    ),
    function(
        "ipv4_is_match(ip1: string, ip2: string, prefix?: long)",
        _with_length("kql_ipv4_compare({0}, {1}, {2}) = 0", BOOL, _BITS),
    ),
    function("ipv4_is_in_range(ip: string, ip_range: string): bool", "kql_ipv4_in_range({0}, {1})"),
    function("ipv4_is_in_any_range(ip: string, ranges: any...)", _among("kql_ipv4_in_any_range")),
    function("ipv4_is_private(ip: string)", _is_private),
    function(
        "ipv4_netmask_suffix(ip: string): long",
        "CASE WHEN kql_parse_ipv4({0}, 32) IS NOT NULL "
        "THEN coalesce(TRY_CAST(nullif(split_part({0}, '/', 2), '') AS BIGINT), 32) END",
    ),
    function("ipv4_range_to_cidr_list(start_ip: string, end_ip: string): dynamic", "kql_ipv4_range({0}, {1})"),
    function("format_ipv4(ip: any, prefix?: long)", _with_length("kql_format_ipv4({0}, {1}, FALSE)", STRING, _BITS)),
    function(
        "format_ipv4_mask(ip: any, prefix?: long)", _with_length("kql_format_ipv4({0}, {1}, TRUE)", STRING, _BITS)
    ),
    *(
        function(f"{name}(source: string, ips: any...)", _among("kql_has_ipv4", f", {prefixes}"))
        for name, prefixes in (
            ("has_ipv4", "FALSE"),
            ("has_any_ipv4", "FALSE"),
            ("has_ipv4_prefix", "TRUE"),
            ("has_any_ipv4_prefix", "TRUE"),
        )
    ),
    function("parse_ipv6(ip: string): string", "kql_parse_ipv6({0}, 128)"),
    function("parse_ipv6_mask(ip: string, prefix: long): string", "kql_parse_ipv6({0}, {1})"),
    function(
        "ipv6_compare(ip1: string, ip2: string, prefix?: long)",
        _with_length("kql_ipv6_compare({0}, {1}, {2})", LONG, 128),
    ),
    function(
        "ipv6_is_match(ip1: string, ip2: string, prefix?: long)",
        _with_length("kql_ipv6_compare({0}, {1}, {2}) = 0", BOOL, 128),
    ),
    function("ipv6_is_in_range(ip: string, ip_range: string): bool", "kql_ipv6_in_range({0}, {1})"),
    function("ipv6_is_in_any_range(ip: string, ranges: any...)", _among("kql_ipv6_in_any_range")),
    function(
        "geo_info_from_ip_address(ip: string): dynamic",
        "kql_geo_info({0})",
        status="partly",
        note="null for private and reserved addresses; a public one ends the query, as no geographic data is here",
    ),
)
