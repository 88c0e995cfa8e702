"""An empty result explains itself: the window and filters that were asked, and what the table holds at all."""

from __future__ import annotations

from typing import Any

import pytest
from estate_rows import alert, incident
from sentinel_servers import Served

from sentinel_rag.contracts.query_results import parse_time
from sentinel_rag.contracts.tool_schemas import SENTINEL_TOOLS

pytestmark = pytest.mark.anyio

OLD, NEW = "2024-07-01T00:00:00Z", "2024-07-20T00:00:00Z"
NEEDED: dict[str, dict[str, Any]] = {
    "get_top_entities": {"kind": "account"},
    "run_kql_query": {"template": "signins_by_country"},
    "search_logs": {"text": "MTP", "table": "SecurityAlert"},
    "run_freeform_kql": {"kql": "SigninLogs | project Location"},
}
WINDOWED = [tool.name for tool in SENTINEL_TOOLS if "time_window" in tool.parameter_schemas()]
ROWS = [name for name in WINDOWED if name not in ("get_alert_trend", "get_threat_summary", "run_freeform_kql")]
"""The tools whose rows are what was found; a trend without alerts is rows of zero."""


@pytest.fixture(scope="module")
def filled(serving: Any) -> Served:
    served: Served = serving(
        SecurityIncident=[incident(1, OLD), incident(2, NEW)],
        SecurityAlert=[alert("a", OLD, Entities=[{"$id": "2", "Type": "account", "Name": "ana"}]), alert("b", NEW)],
        SigninLogs=[{"TimeGenerated": time, "Location": "PT"} for time in (OLD, NEW)],
    )
    return served


@pytest.fixture(scope="module")
def empty(serving: Any) -> Served:
    served: Served = serving(Heartbeat=[{"TimeGenerated": OLD, "Computer": "a"}])
    return served


@pytest.mark.requirement("CHAT-10")
@pytest.mark.parametrize("tool", [name for name in WINDOWED if name != "run_freeform_kql"])
async def test_a_window_without_rows_says_what_the_table_holds(filled: Served, tool: str) -> None:
    """Field report F1: `no results` only because of the default range; the newest row tells where they are."""
    result = await filled.ask(tool, time_window="24h", **NEEDED.get(tool, {}))
    coverage = result.coverage
    if tool in ROWS:
        assert result.rows == ()
    assert coverage.window.to_dict() == {"start": "2024-08-02T00:00:00Z", "end": "2024-08-03T00:00:00Z"}
    assert coverage.tables
    assert (coverage.table_rows, coverage.table_newest) == (2, parse_time(NEW))
    assert coverage.table_oldest == parse_time(OLD)
    wider = await filled.ask(tool, start_time=OLD, **NEEDED.get(tool, {}))
    assert wider.rows, "the rows that the empty answer pointed to are there"


@pytest.mark.requirement("CHAT-10")
@pytest.mark.parametrize("tool", [name for name in WINDOWED if name != "run_freeform_kql"])
async def test_a_table_that_nothing_was_collected_in_is_told_from_an_empty_window(empty: Served, tool: str) -> None:
    """Field report F1: no rows in the window, and no rows at all, are two answers."""
    result = await empty.ask(tool, time_window="24h", **NEEDED.get(tool, {}))
    assert (result.coverage.table_rows, result.coverage.table_newest) == (0, None)


async def test_a_filter_that_leaves_nothing_is_told_with_the_table_that_has_rows(filled: Served) -> None:
    """Field report F1: the same where a filter and not the window is the reason."""
    for tool, arguments in (
        ("query_incidents", {"title_contains": "nothing like it"}),
        ("query_alerts", {"name_contains": "nothing like it"}),
        ("query_alerts", {"entity": "nobody"}),
        ("run_kql_query", {"template": "user_signin_history", "parameters": {"user": "nobody"}}),
    ):
        result = await filled.ask(tool, **arguments)
        assert (result.rows, result.coverage.rows_total, result.coverage.table_rows) == ((), 0, 2), tool
