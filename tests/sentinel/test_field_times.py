"""Field reports E7 and I4: every time that leaves has its zone, and no answer tells an old state as the current one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from action_estate import MAIN, Estate, estate
from hypothesis import given
from hypothesis import strategies as st
from sentinel_servers import connected, managed

from sentinel_rag.contracts.query_results import QueryResult, TimeWindow, format_time, parse_time
from sentinel_rag.contracts.tool_schemas import SENTINEL_TOOLS
from sentinel_rag.sentinel.logs.log_analytics import timespan_text
from sentinel_rag.sentinel.service import SentinelService

MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Estate]:
    with estate(tmp_path) as running:
        yield running


def strings(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """(key, text) of every text in a JSON value."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from strings(item, str(name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings(item, key)
    elif isinstance(value, str):
        yield key, value


ARGUMENTS: dict[str, dict[str, Any]] = {
    "get_incident_detail": {"incident": str(MAIN), "detail": "full"},
    "get_top_entities": {"kind": "account"},
    "get_alert_trend": {"start_time": "2025-03-05T00:00:00Z", "end_time": "2025-03-13T00:00:00Z"},
    "get_threat_summary": {"start_time": "2025-03-05T00:00:00Z", "end_time": "2025-03-13T00:00:00Z"},
    "run_kql_query": {"template": "raw_signins"},
    "add_incident_comment": {"incident": str(MAIN), "message": "x"},
    "update_incident": {"incident": str(MAIN), "severity": "Low"},
    "get_alert_events": {},
    "describe_table": {"table": "SecurityIncident", "examples": True},
    "search_logs": {"text": "SecurityAlert", "table": "SecurityAlert"},
}


@pytest.mark.anyio
@pytest.mark.requirement("TOOL-3")
@pytest.mark.parametrize(
    "tool", [tool.name for tool in SENTINEL_TOOLS if tool.name not in ("get_alert_events", "run_freeform_kql")]
)
async def test_every_time_of_every_tool_has_its_zone(served: Estate, tool: str) -> None:
    """Field report E7: a time without a zone is read in somebody else's."""
    result = await served.ask(tool, **ARGUMENTS.get(tool, {}))
    typed = {column.name for column in result.columns if column.type == "datetime"}
    checked = 0
    for key, text in strings(result.to_dict()):
        is_time = key in typed or key.endswith(("_newest", "_oldest", "time", "start", "end"))
        if is_time and MOMENT.match(text):
            assert text.endswith("Z"), f"{key}: {text}"
            assert parse_time(text).tzinfo is not None
            checked += 1
    assert checked or tool in ("list_kql_templates", "list_workspaces")


@given(
    st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)),
    st.integers(min_value=-14 * 60, max_value=14 * 60),
)
def test_any_moment_is_written_in_utc_with_z_and_read_back(naive: datetime, offset: int) -> None:
    moment = naive.replace(tzinfo=timezone(timedelta(minutes=offset)))
    text = format_time(moment)
    assert text.endswith("Z")
    assert "+" not in text
    assert parse_time(text) == moment
    span = timespan_text(TimeWindow(moment, moment + timedelta(hours=1)))
    assert span is not None
    assert all(part.endswith("Z") for part in span.split("/"))


def test_a_moment_without_a_zone_is_not_written() -> None:
    with pytest.raises(ValueError, match="zone"):
        format_time(datetime(2024, 7, 2))
    for text in ("2024-07-02T09:45:00", "2024-07-02", "09:45Z"):
        with pytest.raises(ValueError, match=r"."):
            parse_time(text)


@pytest.mark.parametrize("digits", range(8))
def test_up_to_seven_digits_of_a_second_are_read(digits: int) -> None:
    fraction = "." + "1234567"[:digits] if digits else ""
    assert parse_time(f"2024-07-02T09:45:00{fraction}Z") == datetime(
        2024, 7, 2, 9, 45, 0, int("1234567"[:digits].ljust(6, "0")[:6] or 0), tzinfo=UTC
    )


@pytest.mark.anyio
@pytest.mark.requirement("TOOL-6")
async def test_a_status_that_changed_between_two_questions_is_in_the_second_answer(served: Estate) -> None:
    """Field report I4: one service, its caches warm, and a change that it did not make itself."""
    async with connected(served.url) as logs, managed(served.url) as own, managed(served.url) as portal:
        service = SentinelService({"lab": logs}, rest={"lab": own})

        async def status() -> tuple[Any, Any, Any]:
            detail = await service.call("get_incident_detail", {"incident": str(MAIN)})
            listed = await service.call("query_incidents", {"status": "Open", "limit": 100})
            summary = await service.call("get_threat_summary", {})
            assert isinstance(detail, QueryResult)
            assert isinstance(listed, QueryResult)
            assert isinstance(summary, QueryResult)
            incidents: Any = summary.summary["incidents"]
            return detail.rows[0]["status"], MAIN in [row["number"] for row in listed.rows], incidents["open"]

        before = await status()
        assert before[:2] == ("Active", True)
        (incident,) = await portal.list_incidents(odata_filter=f"properties/incidentNumber eq {MAIN}")
        await portal.update_incident(incident, {"status": "Closed", "classification": "TruePositive"})
        assert await status() == ("Closed", False, before[2] - 1)
