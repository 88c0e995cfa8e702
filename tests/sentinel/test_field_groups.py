"""Each group that an answer counts can be asked for, and holds as many as the answer said.

elastic/kibana#157238: a group of alerts without the value that they are grouped by is counted, and opens empty.
"""

from __future__ import annotations

from typing import Any

import pytest
from asking import Conversation, shown
from estate_rows import alert

from sentinel_rag.contracts.query_results import QueryResult

pytestmark = pytest.mark.anyio

ALERTS = [
    alert(f"{place}", f"2024-07-02T0{place}:00:00Z", AlertName=name, DisplayName=name, ProductName=product)
    for place, (name, product) in enumerate(
        [
            ("", ""),
            ("", "Defender"),
            ("\u200b", "Defender"),
            ("Worm", ""),
            ("Worm", "Sentinel"),
            ("Phish (1)", "Sentinel"),
        ]
    )
]


@pytest.fixture(scope="module")
def estate(serving: Any) -> Any:
    return serving(SecurityAlert=ALERTS)


@pytest.mark.parametrize(("counts", "argument"), [("by_name", "name_contains"), ("by_product", "product")])
async def test_a_group_opens_to_as_many_as_were_counted(estate: Any, counts: str, argument: str) -> None:
    whole = await estate.ask("query_alerts")
    groups = whole.summary[counts]
    assert sum(groups.values()) == len(ALERTS)
    for label, count in groups.items():
        opened = await estate.ask("query_alerts", **{argument: label})
        assert isinstance(opened, QueryResult)
        assert (label, opened.coverage.rows_total) == (label, count)


async def test_alerts_without_a_name_are_asked_for_by_what_they_are_called(estate: Any) -> None:
    answer = shown(await Conversation(estate).ask('list alerts named "(unnamed alert)"'))
    assert answer.startswith("3 alerts match")
