"""The place of an address: it is not guessed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sentinel_rag.workspace.cells import Cell
from sentinel_rag.workspace.kql.errors import KqlError
from sentinel_rag.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("DATA-4")

Evaluate = Callable[[str], tuple[str, Cell]]


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
