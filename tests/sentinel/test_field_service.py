"""What a service does on a bad day, as people reported it: each ends in an error that says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from action_estate import MAIN, Estate, estate
from asking import Conversation, shown

from sentinel_rag.contracts.query_results import QueryErrorCode

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("DATA-1")]

READING: tuple[tuple[str, dict[str, Any]], ...] = (
    ("query_incidents", {}),
    ("get_incident_detail", {"incident": str(MAIN)}),
    ("query_alerts", {}),
    ("get_alert_trend", {"interval": "1d"}),
    ("get_top_entities", {"kind": "account"}),
    ("get_threat_summary", {}),
    ("run_kql_query", {"template": "mean_time_to_close"}),
    ("list_tables", {}),
    ("describe_table", {"table": "SigninLogs"}),
)
"""A call of each tool that reads rows."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    folder: Path = tmp_path_factory.mktemp("field-service")
    with estate(folder) as running:
        yield running


@pytest.mark.parametrize(
    ("header", "wait", "step"),
    [
        (309, 309.0, "Ask again in 309 seconds (6 minutes)."),
        ("Fri, 31 Dec 2100 23:59:59 GMT", 86_400.0, "Ask again in a day or longer."),
        ("99999999999999999999999", 86_400.0, "Ask again in a day or longer."),
    ],
    ids=str,
)
async def test_a_wait_that_fits_no_question_ends_it_at_once_and_is_told(
    served: Estate, header: int | str, wait: float, step: str
) -> None:
    served.faults({"kind": "throttled", "wire": "logs", "times": None, "retry_after_s": header})
    error = await served.refusal("query_incidents")
    assert (error.code, error.retry_after_s, error.next_step) == (QueryErrorCode.THROTTLED, wait, step)
    assert error.message.startswith("Log Analytics is throttling these queries")
    assert served.requests()["logs POST"] <= 3  # each of the call's queries once: none is tried again


@pytest.mark.parametrize(
    ("header", "wait"),
    [("abc", None), ("3.5.1", None), ("", None), (0, 0.0), ("-5", 0.0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0)],
    ids=str,
)
async def test_whatever_stands_in_retry_after_the_throttling_is_told(
    served: Estate, header: int | str, wait: float | None
) -> None:
    served.faults({"kind": "throttled", "times": None, "retry_after_s": header})
    for tool, arguments in (*READING, ("update_incident", {"incident": str(MAIN), "severity": "Low"})):
        error = await served.refusal(tool, **arguments)
        assert (error.code, error.retry_after_s) == (QueryErrorCode.THROTTLED, wait), (tool, error)
        assert error.retry_possible


async def test_a_throttled_write_is_told_with_its_wait(served: Estate) -> None:
    served.faults({"kind": "throttled", "wire": "rest", "times": None, "retry_after_s": 200})
    error = await served.refusal("add_incident_comment", incident=str(MAIN), message="Seen.")
    assert (error.code, error.retry_after_s) == (QueryErrorCode.THROTTLED, 200.0)
    assert error.next_step == "Ask again in 200 seconds (4 minutes)."


@pytest.mark.requirement("AGENT-1")
async def test_an_answer_tells_the_throttling_and_the_wait(served: Estate) -> None:
    served.faults({"kind": "throttled", "wire": "logs", "times": None, "retry_after_s": 309})
    answer = shown(await Conversation(served).ask("how many incidents are open?"))
    assert "throttling" in answer
    assert "309 seconds" in answer
    assert "narrow" not in answer


@pytest.mark.parametrize(("tool", "arguments"), READING, ids=[tool for tool, _ in READING])
async def test_a_200_without_the_columns_asked_for_is_the_services_fault(
    served: Estate, tool: str, arguments: dict[str, Any]
) -> None:
    served.faults({"kind": "other_columns", "path": "/query", "times": None})
    error = await served.refusal(tool, **arguments)
    assert error.code is QueryErrorCode.PROTOCOL
    assert "without the column" in error.message


PARTS = (
    ("query_incidents", {"status": "Open"}),
    ("query_alerts", {}),
    ("get_alert_trend", {"interval": "1d"}),
    ("get_top_entities", {"kind": "host"}),
    ("get_threat_summary", {}),
    ("list_tables", {}),
    ("get_incident_detail", {"incident": str(MAIN)}),
    ("query_alerts", {"incident": str(MAIN)}),
    ("query_incidents", {"entity": "srv-dc-01.woodgrove.example"}),
    ("query_alerts", {"entity": "asa.oberg@woodgrove.example", "limit": 3}),
)


def counts(value: Any, path: str = "") -> dict[str, int]:
    """Each number of a summary by its path."""
    if isinstance(value, dict):
        return {name: number for key, each in value.items() for name, number in counts(each, f"{path}/{key}").items()}
    return {path: value} if isinstance(value, int) and not isinstance(value, bool) else {}


@pytest.mark.requirement("TOOL-3")
@pytest.mark.parametrize(("tool", "arguments"), PARTS, ids=str)
async def test_whichever_query_of_a_call_is_cut_no_total_is_of_a_part(
    served: Estate, tool: str, arguments: dict[str, Any]
) -> None:
    served.faults()
    whole = await served.ask(tool, **arguments)
    asked = served.requests()["logs POST"]
    told = counts(whole.summary)
    for skip in range(asked):
        served.faults({"kind": "partial", "path": "/query", "skip": skip})
        result = await served.ask(tool, **arguments)
        for path, number in counts(result.summary).items():
            if path.endswith("/at_least"):
                total = told.get(path.replace("at_least", "total"), whole.coverage.rows_total)
                assert number <= total, (skip, path)
            elif not path.startswith(("/left_out", "/alerts_considered", "/tactics")):
                assert number == told[path], (skip, path)
        assert result.coverage.rows_total in (whole.coverage.rows_total, None)
        assert result.coverage.table_rows in (whole.coverage.table_rows, None)
        same = (result.rows, result.summary, result.coverage.rows_total)
        assert result.coverage.partial or same == (whole.rows, whole.summary, whole.coverage.rows_total), skip


@pytest.mark.requirement("AGENT-1")
@pytest.mark.parametrize(
    ("question", "whole", "part"),
    [
        ("list alerts", "47 alerts match.", "At least "),  # which groups a cut keeps is not promised
        ("how many open incidents?", "10 incidents (status Open).", "At least 10 incidents (status Open)."),
        ("alerts per day", "47 alerts, counted by day.", "At least 2"),
        ("top hosts", "First is `srv-file-01.woodgrove.example` with 4 alerts. 11 distinct hosts", "At least "),
    ],
)
async def test_an_answer_never_contradicts_itself_over_a_cut_query(
    served: Estate, question: str, whole: str, part: str
) -> None:
    served.faults()
    assert shown(await Conversation(served).ask(question)).startswith(whole)
    answers = []
    for skip in range(served.requests()["logs POST"]):
        served.faults({"kind": "partial", "path": "/query", "skip": skip})
        answers.append(shown(await Conversation(served).ask(question)))
    assert any(answer.startswith(part) for answer in answers), answers
    for answer in answers:
        told_whole = answer.startswith(whole)
        assert answer.startswith(part) != told_whole, answer
        assert told_whole or "By severity" not in answer, answer
        assert "holds no rows" not in answer, answer
