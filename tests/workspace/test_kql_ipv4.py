"""IPv4 functions: Kusto's documented answers, prefixes of every kind, and texts that are no address."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sentinel_rag.workspace.cells import Cell

pytestmark = pytest.mark.requirement("DATA-4")

Evaluate = Callable[[str], tuple[str, Cell]]

ADDRESSES: list[tuple[str, str, Cell]] = [
    ("ipv4_compare('127.0.0.1', '127.0.0.1')", "long", 0),
    ("ipv4_compare('192.168.1.1', '192.168.1.255')", "long", -1),
    ("ipv4_compare('192.168.1.255', '192.168.1.1')", "long", 1),
    ("ipv4_compare('192.168.1.1/24', '192.168.1.255/24')", "long", 0),
    ("ipv4_compare('192.168.1.1', '192.168.1.255', 24)", "long", 0),
    ("ipv4_compare('x', '192.168.1.255')", "long", None),
    ("ipv4_compare('1.1.1.1', '1.1.1.1', 33)", "long", None),
    ("ipv4_is_match('192.168.1.1/24', '192.168.1.255')", "bool", True),
    ("ipv4_is_match('192.168.1.1/30', '192.168.1.255/24')", "bool", True),
    ("ipv4_is_match('192.168.1.1', '192.168.1.0')", "bool", False),
    ("ipv4_is_match('300.1.1.1', '192.168.1.0')", "bool", None),
    ("ipv4_is_in_range('192.168.1.77', '192.168.1.0/24')", "bool", True),
    ("ipv4_is_in_range('192.168.2.1', '192.168.1.0/24')", "bool", False),
    ("ipv4_is_in_range('1.2.3.4', '0.0.0.0/0')", "bool", True),
    ("ipv4_is_in_range('1.2.3.4', 'x')", "bool", None),
    ("ipv4_is_in_any_range('192.168.1.6', '192.168.1.1/24', '10.0.0.1/8')", "bool", True),
    ("ipv4_is_in_any_range('127.0.0.1', dynamic(['127.0.0.1', '192.168.1.1']))", "bool", True),
    ("ipv4_is_in_any_range('8.8.8.8', dynamic(['10.0.0.0/8']))", "bool", False),
    ("ipv4_is_in_any_range('nothing', '10.0.0.0/8')", "bool", None),
    ("ipv4_is_private('10.1.2.3')", "bool", True),
    ("ipv4_is_private('192.168.1.1/24')", "bool", True),
    ("ipv4_is_private('172.31.255.255')", "bool", True),
    ("ipv4_is_private('172.32.0.1')", "bool", False),
    ("ipv4_is_private('127.0.0.1')", "bool", False),
    ("ipv4_is_private('202.1.2.3/24')", "bool", False),
    ("ipv4_is_private('10.1.2')", "bool", None),
    ("ipv4_is_private('')", "bool", None),
    ("ipv4_is_private('fe80::1')", "bool", None),
    ("ipv4_is_private(tostring(dynamic('10.0.0.1')))", "bool", True),
    ("ipv4_netmask_suffix('10.1.2.3')", "long", 32),
    ("ipv4_netmask_suffix('192.168.1.1/24')", "long", 24),
    ("ipv4_netmask_suffix('192.168.1.1/33')", "long", None),
    ("format_ipv4('192.168.1.1', 24)", "string", "192.168.1.0"),
    ("format_ipv4('192.168.1.1/24', 32)", "string", "192.168.1.0"),
    ("format_ipv4(3232235777)", "string", "192.168.1.1"),
    ("format_ipv4('192.168.1.1', -1)", "string", ""),
    ("format_ipv4('x')", "string", ""),
    ("format_ipv4_mask('192.168.1.1', 24)", "string", "192.168.1.0/24"),
    ("format_ipv4_mask('192.168.1.1')", "string", "192.168.1.1/32"),
    ("parse_ipv4('127.0.0.1')", "long", 2130706433),
    ("parse_ipv4('192.1.168.1') < parse_ipv4('192.1.168.2')", "bool", True),
    ("parse_ipv4('127.0.0')", "long", None),
    ("parse_ipv4_mask('127.0.0.1', 24)", "long", 2130706432),
    ("has_ipv4('05:04:54 127.0.0.1 GET /favicon.ico 404', '127.0.0.1')", "bool", True),
    ("has_ipv4('05:04:54127.0.0.1 GET', '127.0.0.1')", "bool", False),
    ("has_ipv4('127.0.0.256', '127.0.0.256')", "bool", False),
    ("has_ipv4('src=1.1.1.1,dst=2.2.2.2', '2.2.2.2')", "bool", True),
    ("has_ipv4('x_1.1.1.1_y', '1.1.1.1')", "bool", True),
    ("has_ipv4('10.0.0.12', '10.0.0.1')", "bool", False),
    ("has_any_ipv4('GET 127.0.0.1', '127.0.0.2', '127.0.0.1')", "bool", True),
    ("has_any_ipv4('GET 127.0.0.1', dynamic(['127.0.0.2']))", "bool", False),
    ("has_ipv4_prefix('05:04:54 127.0.0.1 GET', '127.0.')", "bool", True),
    ("has_ipv4_prefix('05:04:54 127.0.0.1 GET', '127.0')", "bool", False),
    ("has_ipv4_prefix('05:04:54 127.0.0.256 GET', '127.0.')", "bool", False),
    ("has_ipv4_prefix('a 127.0.0.1', '127.0.0.1')", "bool", True),
    ("has_any_ipv4_prefix('GET 127.0.0.1', '192.168.', '127.0.')", "bool", True),
    ("has_any_ipv4_prefix('GET 127.0.0.1', dynamic(['192.168.', '127.0']))", "bool", False),
]


@pytest.mark.parametrize(("expression", "type_", "value"), ADDRESSES)
def test_ipv4_functions_answer_as_kusto_does(evaluated: Evaluate, expression: str, type_: str, value: Cell) -> None:
    assert evaluated(expression) == (type_, value)
