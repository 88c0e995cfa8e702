"""IPv4 addresses and networks: `ipv4_*`, `format_ipv4*`, `parse_ipv4_mask` and the searches `has_ipv4*`.

Source: the Kusto pages "ipv4_compare()", "ipv4_is_in_any_range()", "has_any_ipv4_prefix()" and their siblings. What is
no address is null (or empty text where Kusto says so), never an error. `parse_ipv4` itself is duckdb-kql's.
"""

from __future__ import annotations

from sentinel_rag.workspace.kql.sql_forms import WrittenFunction, bound, bound_all, scalar

_OCTET = r"(?:25[0-5]|2[0-4]\d|[01]?\d?\d)"
_ADDRESS = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_PREFIX_LENGTH = r"(?:/(?:3[0-2]|[12]?\d))?"
_WITH_NETWORK = rf"^{_ADDRESS}{_PREFIX_LENGTH}$"
_PRIVATE = r"^(?:10|192\.168|172\.(?:1[6-9]|2\d|3[01]))\."
_PRIVATE_NETWORKS = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")


def _address_number(text: str) -> str:
    """The address without its network, as a BIGINT of 32 bits; null for what is no address."""
    parts = f"string_split(split_part({text}, '/', 1), '.')"
    number = " + ".join(f"CAST(_o[{place}] AS BIGINT) * {256 ** (4 - place)}" for place in range(1, 5))
    return f"(CASE WHEN regexp_matches({text}, '{_WITH_NETWORK}') THEN {bound('_o', parts, number)} END)"


def _network_length(text: str) -> str:
    return f"coalesce(TRY_CAST(nullif(split_part({text}, '/', 2), '') AS INTEGER), 32)"


def _valid_length(length: str) -> str:
    return f"CASE WHEN {length} BETWEEN 0 AND 32 THEN CAST({length} AS INTEGER) END"


def _masked(number: str, length: str) -> str:
    return f"(({number} >> (32 - {length})) << (32 - {length}))"


def _compare(left: str, right: str, length: str = "32") -> str:
    """-1, 0 or 1 under the shortest of the three network lengths; null if anything is not valid."""
    shift = "(32 - least(_ip.la, _ip.lb, _ip.lc))"
    return bound_all(
        "_ip",
        f"CASE WHEN _ip.lc IS NULL THEN NULL ELSE CAST(sign((_ip.a >> {shift}) - (_ip.b >> {shift})) AS BIGINT) END",
        a=_address_number(left),
        b=_address_number(right),
        la=_network_length(left),
        lb=_network_length(right),
        lc=_valid_length(length),
    )


def _is_match(left: str, right: str, length: str = "32") -> str:
    return f"({_compare(left, right, length)} = 0)"


def _is_in_range(address: str, network: str) -> str:
    """The address's own network length does not widen the range."""
    shift = "(32 - _ip.l)"
    return bound_all(
        "_ip",
        f"(_ip.a >> {shift}) = (_ip.n >> {shift})",
        a=_address_number(address),
        n=_address_number(network),
        l=_network_length(network),
    )


def _is_in_any_range(address: str, *networks: str) -> str:
    shift = "(32 - CAST(_n.l AS INTEGER))"
    parsed = f"struct_pack(a := {_address_number('_t')}, l := {_network_length('_t')})"
    return bound_all(
        "_any",
        "CASE WHEN _any.a IS NULL THEN NULL ELSE len(list_filter(_any.n, "
        f"lambda _n: (_any.a >> {shift}) = (_n.a >> {shift}))) > 0 END",
        a=_address_number(address),
        n=f"list_transform({_texts(*networks)}, lambda _t: {parsed})",
    )


def _is_private(address: str) -> str:
    """Two regular expressions for a bare address, since hunting asks this of each row; the long way for a network."""
    networks = " OR ".join(_is_in_range("_p", f"'{network}'") for network in _PRIVATE_NETWORKS)
    masked = bound("_p", _format(address), f"({networks})")
    return (
        f"(CASE WHEN NOT regexp_matches({address}, '{_WITH_NETWORK}') THEN NULL "
        f"WHEN contains({address}, '/') THEN {masked} ELSE regexp_matches({address}, '{_PRIVATE}') END)"
    )


def _texts(*values: str) -> str:
    """One list of texts from arguments that are texts or dynamic arrays of them."""
    lists = [
        f"coalesce(list_transform(TRY_CAST(to_json({value}) AS JSON[]), lambda _e: _e ->> '$'), "
        f"[to_json({value}) ->> '$'])"
        for value in values
    ]
    return f"flatten([{', '.join(lists)}])"


def _dotted(number: str) -> str:
    octets = (f"CAST(({number} >> {shift}) & 255 AS VARCHAR)" for shift in (24, 16, 8, 0))
    return " || '.' || ".join(octets)


def _number_or_address(address: str) -> str:
    number = bound(
        "_n", f"TRY_CAST(CAST({address} AS VARCHAR) AS BIGINT)", "CASE WHEN _n BETWEEN 0 AND 4294967295 THEN _n END"
    )
    return f"coalesce({_address_number(f'CAST({address} AS VARCHAR)')}, {number})"


def _formatted(address: str, length: str, text: str) -> str:
    return bound_all(
        "_f",
        "CASE WHEN _f.given IS NULL OR _f.a IS NULL THEN '' ELSE "
        + bound_all("_m", text, a=_masked("_f.a", "least(_f.l, _f.given)"), l="least(_f.l, _f.given)")
        + " END",
        a=_number_or_address(address),
        l=_network_length(f"CAST({address} AS VARCHAR)"),
        given=_valid_length(length),
    )


def _format(address: str, length: str = "32") -> str:
    return _formatted(address, length, _dotted("_m.a"))


def _format_mask(address: str, length: str = "32") -> str:
    return _formatted(address, length, f"{_dotted('_m.a')} || '/' || CAST(_m.l AS VARCHAR)")


def _parse_mask(address: str, length: str) -> str:
    return bound_all(
        "_f",
        _masked("_f.a", "least(_f.l, _f.given)"),
        a=_address_number(address),
        l=_network_length(address),
        given=_valid_length(length),
    )


def _netmask_suffix(address: str) -> str:
    return (
        f"(CASE WHEN regexp_matches({address}, '{_WITH_NETWORK}') THEN CAST({_network_length(address)} AS BIGINT) END)"
    )


def _addresses_in(text: str) -> str:
    """The addresses in a text. Kusto delimits them by what is no letter or digit; an underscore is none either."""
    found = r"\b\d{1,3}(?:\.\d{1,3}){3}\b"
    candidates = f"regexp_extract_all(replace({text}, '_', ' '), '{found}')"
    return f"list_filter({candidates}, lambda _a: regexp_matches(_a, '^{_ADDRESS}$'))"


def _has_any(text: str, *addresses: str) -> str:
    return f"coalesce(list_has_any({_addresses_in(text)}, {_texts(*addresses)}), false)"


def _has_any_prefix(text: str, *prefixes: str) -> str:
    whole = rf"^{_ADDRESS}$"
    part = rf"^(?:{_OCTET}\.){{1,3}}$"
    return bound_all(
        "_has",
        "coalesce(len(list_filter(_has.p, lambda _p: len(list_filter(_has.a, lambda _a: "
        f"CASE WHEN regexp_matches(_p, '{part}') THEN starts_with(_a, _p) "
        f"ELSE regexp_matches(_p, '{whole}') AND _a = _p END)) > 0)) > 0, false)",
        a=_addresses_in(text),
        p=_texts(*prefixes),
    )


FUNCTIONS: tuple[WrittenFunction, ...] = (
    scalar("ipv4_compare", _compare, 2, 3),
    scalar("ipv4_is_match", _is_match, 2, 3),
    scalar("ipv4_is_in_range", _is_in_range, 2),
    scalar("ipv4_is_in_any_range", _is_in_any_range, *range(2, 65)),
    scalar("ipv4_is_private", _is_private, 1),
    scalar("ipv4_netmask_suffix", _netmask_suffix, 1),
    scalar("format_ipv4", _format, 1, 2),
    scalar("format_ipv4_mask", _format_mask, 1, 2),
    scalar("parse_ipv4_mask", _parse_mask, 2),
    scalar("has_ipv4", _has_any, 2),
    scalar("has_any_ipv4", _has_any, *range(2, 65)),
    scalar("has_ipv4_prefix", _has_any_prefix, 2),
    scalar("has_any_ipv4_prefix", _has_any_prefix, *range(2, 65)),
)
