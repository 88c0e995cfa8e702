"""The query that coverage shows finds the rows and numbers of the result, also where code has chosen or joined."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from bench.reproduction import differences, records_of
from sentinel_servers import Served, workspace_app

from sentinel_rag.workspace.sample.options import EstateOptions
from sentinel_rag.workspace.workspace import Workspace
from sentinel_rag_testing.loopback import serve

pytestmark = pytest.mark.requirement("GRND-4")
END = datetime(2024, 8, 3, tzinfo=UTC)


@dataclass
class Estate:
    workspace: Workspace
    served: Served
    collision: str

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = await self.served.ask(tool, **arguments)
        return {"tool": tool, "arguments": arguments, "result": result.to_dict()}

    def differing(self, call: dict[str, Any]) -> list[Any]:
        return differences(call, records_of(self.workspace, call["result"]["coverage"]["query"]))


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    workspace = Workspace.open(tmp_path_factory.mktemp("estate"))
    try:
        guide: dict[str, Any] = workspace.generate(EstateOptions(events=500, end=END)).to_dict()
        with serve(workspace_app(workspace)) as url:
            yield Estate(workspace, Served(url, END), str(guide["defender_collision"][-1]))
    finally:
        workspace.close()


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("query_incidents", {"status": "Open", "limit": 3}),
    ("query_incidents", {"status": "Closed", "time_field": "closed", "time_window": "last_7d"}),
    ("query_alerts", {"entity": "siobhan", "limit": 2}),
    ("query_alerts", {"severity": "High", "order": "oldest", "limit": 2, "offset": 2}),
    ("get_alert_trend", {"time_window": "last_7d", "interval": "1d"}),
    ("get_top_entities", {"kind": "account", "limit": 3}),
    ("get_top_entities", {"kind": "host", "status": "Open", "time_window": "last_7d"}),
    ("get_threat_summary", {"time_window": "last_7d"}),
    ("get_threat_summary", {}),
    ("run_kql_query", {"template": "failed_signins_by_user", "limit": 2, "offset": 1}),
    ("list_tables", {}),
]


@pytest.mark.anyio
@pytest.mark.parametrize(("tool", "arguments"), CALLS, ids=lambda each: str(each))
async def test_it_gives_the_numbers_and_the_rows(estate: Estate, tool: str, arguments: dict[str, Any]) -> None:
    call = await estate.call(tool, **arguments)
    assert call["result"]["coverage"]["rows_total"] > 0
    assert estate.differing(call) == []


@pytest.mark.anyio
async def test_of_a_number_that_two_incidents_have_it_gives_the_one_that_was_meant(estate: Estate) -> None:
    call = await estate.call("get_incident_detail", incident=estate.collision)
    assert call["result"]["coverage"]["rows_total"] == 1
    assert estate.differing(call) == []


@pytest.mark.anyio
@pytest.mark.parametrize(("tool", "arguments"), CALLS, ids=lambda each: str(each))
async def test_a_number_that_is_told_wrong_is_seen(estate: Estate, tool: str, arguments: dict[str, Any]) -> None:
    call = deepcopy(await estate.call(tool, **arguments))
    summary = call["result"]["summary"]
    place, name = {
        "get_alert_trend": (summary, "total"),
        "get_top_entities": (call["result"]["rows"][0], "alerts"),
    }.get(tool, (call["result"]["coverage"], "rows_total"))
    place[name] += 1
    assert estate.differing(call)
