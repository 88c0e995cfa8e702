"""A result that is not whole says so, with the reason, and claims no total that it does not know."""

from __future__ import annotations

from typing import Any

import pytest
from estate_rows import alert, incident

from sentinel_rag.sentinel.incidents.entity_search import MOST_CANDIDATES
from sentinel_rag.sentinel.templates.template_queries import MOST_ROWS_COUNTED
from sentinel_rag.sentinel.threat_summary import MOST_ALERTS_READ

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def estate(serving: Any) -> Any:
    """One alert more than the widest net takes, all of one address; one sign-in more than a template counts."""
    address = [{"Type": "ip", "Address": "192.0.2.1"}]
    number = max(MOST_ALERTS_READ, MOST_CANDIDATES) + 1
    return serving(
        SecurityAlert=[
            alert(f"a{n}", f"2024-07-{1 + n % 28:02d}T{n % 24:02d}:{n % 60:02d}:00Z", Entities=address)
            for n in range(number)
        ],
        SigninLogs=[
            {"TimeGenerated": "2024-08-01T00:00:00Z", "UserPrincipalName": f"u{n}@c.example", "ResultType": "0"}
            for n in range(MOST_ROWS_COUNTED + 1)
        ],
    )


@pytest.mark.requirement("TOOL-3")
async def test_a_search_that_looked_at_a_part_claims_no_total(estate: Any) -> None:
    result = await estate.ask("query_alerts", entity="192.0.2.1")
    assert result.coverage.rows_total is None
    assert result.coverage.partial
    assert str(MOST_CANDIDATES) in result.coverage.partial_reason


@pytest.mark.requirement("TOOL-3")
async def test_a_ranking_of_the_newest_alerts_only_is_partial(estate: Any) -> None:
    result = await estate.ask("get_top_entities", kind="ip")
    assert [(row["name"], row["alerts"]) for row in result.rows] == [("192.0.2.1", MOST_ALERTS_READ)]
    assert result.coverage.partial
    assert str(MOST_ALERTS_READ) in result.coverage.partial_reason


@pytest.mark.requirement("TOOL-3")
async def test_a_template_with_more_rows_than_are_counted_claims_no_total(estate: Any) -> None:
    result = await estate.ask("run_kql_query", template="raw_signins")
    assert (result.coverage.rows_returned, result.coverage.rows_total) == (20, None)
    assert any("narrow the window" in note for note in result.notes)


@pytest.mark.requirement("DATA-1")
async def test_a_result_that_the_service_cut_is_told_to_be_partial_in_every_tool(serving: Any) -> None:
    served = serving(
        limits={"max_rows": 3},
        SecurityAlert=[alert(f"a{n}", "2024-08-01T00:00:00Z", AlertName=f"name {n}") for n in range(9)],
        SecurityIncident=[incident(n, "2024-08-01T00:00:00Z", Status=f"s{n}") for n in range(1, 10)],
        SigninLogs=[{"TimeGenerated": "2024-08-01T00:00:00Z", "ResultType": str(n)} for n in range(9)],
    )
    for tool, arguments in (
        ("query_incidents", {}),
        ("query_alerts", {}),
        ("get_top_entities", {"kind": "ip"}),
        ("get_threat_summary", {}),
        ("run_kql_query", {"template": "raw_signins"}),
    ):
        result = await served.ask(tool, **arguments)
        assert result.coverage.partial, tool
        assert "E_QUERY_RESULT_SET_TOO_LARGE" in result.coverage.partial_reason
        assert result.coverage.rows_total is None, tool


async def test_what_a_narrower_window_holds_is_whole(estate: Any) -> None:
    result = await estate.ask(
        "query_alerts", entity="192.0.2.1", start_time="2024-07-01T00:00:00Z", end_time="2024-07-02T00:00:00Z"
    )
    assert not result.coverage.partial
    assert result.coverage.rows_total == -(-(max(MOST_ALERTS_READ, MOST_CANDIDATES) + 1) // 28)
