"""Many questions at once against a workspace that throttles: each gets an answer or a clear refusal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from action_estate import MAIN, Estate, estate
from sentinel_servers import connected, managed

from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode, QueryResult
from sentinel_rag.sentinel.rest.connection import LIMITS, RateBuckets, RestOperation
from sentinel_rag.sentinel.service import SentinelService

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("DATA-1"), pytest.mark.requirement("DATA-6")]

QUESTIONS = 40
SHARE = 0.2
"""Of each limit of the service, which this process may use: so that the questions are more than that."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Estate]:
    with estate(tmp_path) as running:
        yield running


async def ask_all(served: Estate, tool: str, arguments: dict[str, str]) -> list[QueryResult | QueryError]:
    """One process's service, asked by everybody at once."""
    outcomes: list[QueryResult | QueryError] = []
    async with connected(served.url) as logs, managed(served.url, buckets=RateBuckets(share=SHARE)) as rest:
        service = SentinelService({"lab": logs}, rest={"lab": rest})

        async def ask() -> None:
            outcomes.append(await service.call(tool, arguments))

        async with anyio.create_task_group() as group:
            for _ in range(QUESTIONS):
                group.start_soon(ask)
    return outcomes


async def test_questions_wait_their_turn_and_all_are_answered(served: Estate) -> None:
    served.faults({"kind": "throttled", "wire": "logs", "times": 24, "retry_after_s": None})
    outcomes = await ask_all(served, "query_incidents", {"severity": "High"})
    answered = [outcome for outcome in outcomes if isinstance(outcome, QueryResult)]
    refused = [outcome for outcome in outcomes if isinstance(outcome, QueryError)]
    assert len(answered) + len(refused) == QUESTIONS
    assert {outcome.coverage.rows_total for outcome in answered} == {answered[0].coverage.rows_total}
    assert all(error.code is QueryErrorCode.THROTTLED and error.retry_possible for error in refused)
    assert all(error.next_step for error in refused)
    assert served.admin("GET", "faults")["most_at_once"]["logs"] <= 5


async def test_a_workspace_that_only_throttles_refuses_everybody_clearly(served: Estate) -> None:
    served.faults({"kind": "throttled", "wire": "logs", "times": 1000, "retry_after_s": None})
    outcomes = await ask_all(served, "list_tables", {})
    assert Counter(type(outcome) for outcome in outcomes) == {QueryError: QUESTIONS}
    assert {outcome.code for outcome in outcomes if isinstance(outcome, QueryError)} == {QueryErrorCode.THROTTLED}
    assert served.admin("GET", "faults")["most_at_once"]["logs"] <= 5


async def test_comments_stop_at_the_limit_of_five_minutes_and_say_when_to_go_on(served: Estate) -> None:
    served.faults()
    outcomes = await ask_all(served, "add_incident_comment", {"incident": str(MAIN), "message": "seen"})
    written = [outcome for outcome in outcomes if isinstance(outcome, QueryResult)]
    refused = [outcome for outcome in outcomes if isinstance(outcome, QueryError)]
    limit = int(LIMITS[RestOperation.PUT_COMMENT] * SHARE)
    assert len(written) == limit
    assert {error.code for error in refused} == {QueryErrorCode.THROTTLED}
    assert all(error.retry_after_s is not None and 0 < error.retry_after_s <= 300 for error in refused)
    assert served.requests()["rest PUT"] == limit  # the service never had to refuse
    assert served.newest("array_length(Comments)") == [2 + len(written)]
