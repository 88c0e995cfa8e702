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


@pytest.mark.parametrize("kind", ["account", "host", "ip", "file", "url", "process", "mailbox"])
async def test_no_alert_that_a_ranking_counts_is_missing_from_the_entitys_list(real: Any, kind: str) -> None:
    """elastic/kibana#226998. A list may hold more: it also looks at CompromisedEntity, and at the host of a URL."""
    for row in (await real.ask("get_top_entities", kind=kind, limit=12)).rows:
        listed = await real.ask("query_alerts", entity=row["name"], entity_kind=kind, limit=1)
        assert listed.coverage.rows_total >= row["alerts"], row["name"]


async def test_an_account_is_found_in_alerts_that_tell_its_id_alone(serving: Any) -> None:
    sid, directory_id = "S-1-5-21-1-2-3-1104", "6374fba9-abad-5ac8-aeb2-b39b219c888e"
    entities: list[dict[str, str]] = [
        {"Type": "account", "Name": "ana", "UPNSuffix": "contoso.example", "Sid": sid, "AadUserId": directory_id},
        {"Type": "account", "Sid": sid},
        {"Type": "account", "AadUserId": directory_id, "DisplayName": "Ana R"},
        {"Type": "account", "Sid": "S-1-5-21-1-2-3-1105"},
    ]
    rows = [alert(f"{n}", f"2024-07-02T0{n}:00:00Z", Entities=[entity]) for n, entity in enumerate(entities)]
    served = serving(SecurityAlert=rows)
    for name in ("ana@contoso.example", sid, directory_id):
        found = await served.ask("query_alerts", entity=name, limit=10, order="oldest")
        assert [row["name"] for row in found.rows] == ["0", "1", "2"], name


async def test_alerts_without_a_name_are_asked_for_by_what_they_are_called(estate: Any) -> None:
    answer = shown(await Conversation(estate).ask('list alerts named "(unnamed alert)"'))
    assert answer.startswith("3 alerts match")
