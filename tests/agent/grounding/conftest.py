"""The evidence of a conversation that has read all of the small estate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from sentinel_rag.agent.grounding import EvidenceIndex, Grounded, ground
from sentinel_rag.agent.tool_runs import ToolRun, run_calls
from sentinel_rag.contracts.tool_calls import Succeeded, ToolCall
from sentinel_rag.testing.scripted_gateway import rows_result
from sentinel_rag.testing.small_estate import small_estate

Check = Callable[..., Grounded]
_CALLS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("query_incidents", {"limit": 100}),
    ("query_alerts", {"limit": 100}),
    ("get_top_entities", {"kind": "account"}),
    ("get_alert_trend", {"interval": "1d"}),
    ("get_incident_detail", {"incident": "12"}),
    ("get_incident_detail", {"incident": "31"}),
)


async def estate_runs() -> list[ToolRun]:
    """Every call of the conversation, with a query's rows of failed sign-ins at the end."""
    calls = [ToolCall(f"c{place}", "s", tool, arguments) for place, (tool, arguments) in enumerate(_CALLS)]
    runs = await run_calls(small_estate(), calls, progress=None, started=0.0)
    query = ToolCall("c9", "s", "run_kql_query", {"template": "failed_signins_by_account"})
    rows = [{"Account": "svc-backup", "FailedSignIns": 128}, {"Account": "m.keller", "FailedSignIns": 42}]
    return [*runs, ToolRun(query, Succeeded(query, rows_result(rows, table="SigninLogs")))]


def indexed(runs: list[ToolRun], zone: tzinfo) -> EvidenceIndex:
    index = EvidenceIndex(zone)
    for run in runs:
        index.add(run)
    return index


@pytest.fixture(scope="session")
def runs() -> list[ToolRun]:
    import anyio

    return anyio.run(estate_runs)


@pytest.fixture(scope="session")
def index(runs: list[ToolRun]) -> EvidenceIndex:
    """The session's time zone is Berlin's, two hours ahead of UTC in the estate's summer."""
    return indexed(runs, ZoneInfo("Europe/Berlin"))


@pytest.fixture(scope="session")
def check(index: EvidenceIndex) -> Check:
    """Check a text as the answer to a question."""

    def one(text: str, question: str = "What is going on?") -> Grounded:
        return ground(text, index, question=question)

    return one
