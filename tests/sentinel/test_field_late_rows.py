"""Rows that come late: a short window tells the delay of its table, as measured or as Microsoft tells it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from action_estate import Estate, estate
from asking import Conversation, shown

from sentinel_rag.contracts.query_results import format_time

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("DATA-1")]

NOW = datetime(2025, 3, 12, 15, tzinfo=UTC)
MEASURED = "half of its rows of the last week took 7 min, 95 % up to 7 min (ingestion_time())"
TOLD = "20 seconds to 3 minutes on average, says Microsoft"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    with estate(tmp_path_factory.mktemp("late")) as running:
        running.now = NOW
        yield running


CALLS: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("query_alerts", {}, "SecurityAlert"),
    ("query_incidents", {}, "SecurityIncident"),
    ("get_alert_trend", {"interval": "1h"}, "SecurityAlert"),
    ("get_top_entities", {"kind": "account"}, "SecurityAlert"),
    ("get_threat_summary", {}, "SecurityAlert"),
    ("run_kql_query", {"template": "signins_by_day"}, "SigninLogs"),
)


@pytest.mark.parametrize(("tool", "arguments", "table"), CALLS)
async def test_a_window_that_ends_now_tells_the_delay_of_its_table(
    served: Estate, tool: str, arguments: dict[str, Any], table: str
) -> None:
    served.faults({"kind": "late_rows", "times": None, "delay_s": 420})
    notes = (await served.ask(tool, **arguments, time_window="last_10m")).notes
    assert (
        f"Rows reach {table} with a delay: {MEASURED}. The newest ones may be missing from so short a window." in notes
    )
    served.faults()
    (note,) = (note for note in (await served.ask(tool, **arguments, time_window="PT10M")).notes if "delay" in note)
    told = "up to 5 minutes after the Defender portal" if table == "SecurityIncident" else TOLD
    assert f"Rows reach {table} with a delay: {told}" in note
    assert "tells no ingestion_time() of its own" in note


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (timedelta(days=1), timedelta()),
        (timedelta(hours=3), timedelta(hours=2)),
        (-timedelta(hours=1), -timedelta(hours=2)),
    ],
    ids=["long", "past", "future"],
)
async def test_a_window_that_does_not_hinge_on_the_last_minutes_tells_none(
    served: Estate, start: timedelta, end: timedelta
) -> None:
    served.faults()
    window = {"start_time": format_time(NOW - start), "end_time": format_time(NOW - end)}
    assert not any("delay" in note for note in (await served.ask("query_alerts", **window)).notes)


@pytest.mark.requirement("AGENT-1")
async def test_an_answer_tells_the_delay(served: Estate) -> None:
    served.faults({"kind": "late_rows", "times": None, "delay_s": 420})
    answer = shown(await Conversation(served).ask("alerts in the last 10 minutes"))
    served.faults()
    assert "Rows reach SecurityAlert with a delay" in answer
    assert "7 min" in answer
