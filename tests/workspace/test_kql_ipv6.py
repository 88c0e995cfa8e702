"""IPv6 addresses and the place of an address: Kusto's documented answers, IPv4 among them, and what is no address."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sentinel_rag.workspace.cells import Cell
from sentinel_rag.workspace.kql.errors import KqlError
from sentinel_rag.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("DATA-4")

Evaluate = Callable[[str], tuple[str, Cell]]

ADDRESSES: list[tuple[str, str, Cell]] = [
    ("ipv6_compare('192.168.1.1', '192.168.1.1')", "long", 0),
    ("ipv6_compare('192.168.1.1/24', '192.168.1.255')", "long", 0),
    ("ipv6_compare('fe80::85d:e82c:9446:7994', 'fe80::85d:e82c:9446:7995')", "long", -1),
    ("ipv6_compare('fe80::2', 'fe80::1')", "long", 1),
    ("ipv6_compare('fe80::85d:e82c:9446:7994', 'fe80::85d:e82c:9446:7998', 120)", "long", 0),
    ("ipv6_compare('x', '::1')", "long", None),
    ("ipv6_is_match('fe80::85d:e82c:9446:7994/120', 'fe80::85d:e82c:9446:7998')", "bool", True),
    ("ipv6_is_match('192.168.1.1', '::ffff:c0a8:0101')", "bool", True),
    ("ipv6_is_match('192.168.1.1/24', '::ffff:c0a8:01ff')", "bool", True),
    ("ipv6_is_match('::1', '::2')", "bool", False),
    ("ipv6_is_match('::1', '::2', 129)", "bool", None),
    (
        "ipv6_is_in_range('a5e:f127:8a9d:146d:e102:b5d3:c755:abcd', 'a5e:f127:8a9d:146d:e102:b5d3:c755:0000/112')",
        "bool",
        True,
    ),
    ("ipv6_is_in_range('a5e:f127:8a9d:146d:e102:b5d3:c755:abcd', '0:0:0:0:0:ffff:c0a8:ac/60')", "bool", False),
    ("ipv6_is_in_range('nothing', '::/0')", "bool", None),
    ("ipv6_is_in_any_range('a5e::abcd', dynamic(['a5e::/112', '::1']))", "bool", True),
    ("ipv6_is_in_any_range('::5', '::1', '::2')", "bool", False),
    ("parse_ipv6('127.0.0.1')", "string", "0000:0000:0000:0000:0000:ffff:7f00:0001"),
    ("parse_ipv6_mask('192.168.255.255', 120)", "string", "0000:0000:0000:0000:0000:ffff:c0a8:ff00"),
    ("parse_ipv6_mask('fe80::85d:e82c:9446:7994/120', 124)", "string", "fe80:0000:0000:0000:085d:e82c:9446:7900"),
    ("parse_ipv6_mask('::192.168.255.255/24', 128)", "string", "0000:0000:0000:0000:0000:ffff:c0a8:ff00"),
    ("parse_ipv6_mask('x', 1)", "string", ""),
    ("geo_info_from_ip_address('10.0.0.1')", "dynamic", None),
    ("geo_info_from_ip_address('')", "dynamic", None),
    ("geo_info_from_ip_address('fe80::1')", "dynamic", None),
    ("tostring(geo_info_from_ip_address('192.168.7.7').country)", "string", ""),
]


@pytest.mark.parametrize(("expression", "type_", "value"), ADDRESSES)
def test_ipv6_functions_answer_as_kusto_does(evaluated: Evaluate, expression: str, type_: str, value: Cell) -> None:
    assert evaluated(expression) == (type_, value)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "172.32.0.1", "100.128.0.1"])
def test_the_place_of_a_public_address_is_not_guessed(evaluated: Evaluate, address: str) -> None:
    with pytest.raises(KqlError) as refusal:
        evaluated(f"geo_info_from_ip_address('{address}')")
    assert "geo_info_from_ip_address has no data here" in str(refusal.value)
    assert refusal.value.next_step


def test_rows_that_are_filtered_out_do_not_stop_a_query(kql_workspace: Workspace) -> None:
    answer = kql_workspace.query(
        "datatable(ip:string)['10.0.0.1', '8.8.8.8'] | where ipv4_is_private(ip) "
        "| extend g = geo_info_from_ip_address(ip) | where isempty(g.country) | count"
    )
    assert answer.rows == [(1,)]
