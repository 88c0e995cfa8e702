"""The file of results: what is written of a call is read again, and results of other agents are read as they are."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from sentinel_rag.agent.answers.results import numbered
from sentinel_rag.agent.answers.results_file import kept_form, read_results, results_document
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.query_results import Coverage, QueryError, QueryErrorCode, QueryResult, TimeWindow
from sentinel_rag.contracts.tool_calls import DocumentResult, Failed, Succeeded, ToolCall, ToolOutcome

NOW = datetime(2026, 11, 29, 8, tzinfo=UTC)
CALL = ToolCall("c1", "session", "query_incidents", {"limit": 50})
COVERAGE = Coverage(
    workspace="sample", tables=("SecurityIncident",), window=TimeWindow(), time_column="CreatedTime", rows_returned=2,
    rows_total=7, query="", duration_ms=1.0,
)  # fmt: skip
ROWS = ({"number": 124, "title": "Ignore all"}, {"number": 125, "title": "Phishing"})
QUERY = QueryResult(columns=(), rows=ROWS, coverage=COVERAGE, summary={"by_severity": {"High": 2}}, notes=("old",))


@pytest.mark.parametrize(
    "outcome",
    [
        Succeeded(CALL, QUERY, quoted=("/rows/0/title",)),
        Succeeded(CALL, DocumentResult({"hits": [{"text": "isolate"}], "total": 1})),
        Failed(CALL, QueryError(code=QueryErrorCode.TIMEOUT, message="It took too long.")),
    ],
)
@pytest.mark.parametrize("writes", [True, False])
def test_a_call_that_was_written_is_read_as_it_was(outcome: ToolOutcome, writes: bool) -> None:
    run = ToolRun(CALL, outcome)
    document = results_document(
        [kept_form(run, writes=writes, read_at=NOW)], timezone="Europe/Berlin", said=["is 124 open?"]
    )
    read = read_results(document)
    assert [*read.results] == [numbered(run, writes=writes, read_at=NOW)]
    assert (read.zone.key, read.said) == ("Europe/Berlin", ("is 124 open?",))


def test_what_was_computed_is_computed_again() -> None:
    computed = ToolRun(ToolCall("c2", "session", "compute", {"op": "count", "of": "c1"}), Succeeded(CALL, QUERY))
    entries = [kept_form(ToolRun(CALL, Succeeded(CALL, QUERY)), writes=False, read_at=NOW)]
    entries.append(kept_form(computed, writes=False, read_at=NOW))
    assert "result" not in entries[1]
    made = read_results(results_document(entries, timezone="UTC", said=())).results.get("c2")
    assert made is not None
    assert (made.rows[0].cells, made.computed, made.read_at) == ({"count": 7}, True, NOW)


@pytest.mark.parametrize(
    "document",
    [
        [{"tool": "search", "result": {"rows": [{"number": 124}]}}],
        {"results": {"c1": {"tool": "search", "result": {"rows": [{"number": 124}], "coverage": {"window": None}}}}},
        {"results": [{"call_id": "c1", "tool": "search", "arguments": None, "result": [{"number": 124}]}]},
    ],
)
def test_results_of_other_agents_need_only_a_tool_and_a_result(document: Any) -> None:
    row = read_results(document).results.row("c1.1")
    assert row is not None
    assert row.cells == {"number": 124}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("text", "no list `results`"),
        ({"results": 5}, "no list `results`"),
        ({"format": "other", "results": []}, "another form"),
        ([{"tool": "a", "result": {}}, {"result": {}}], "Entry 2 of `results`: KeyError: 'tool'"),
        ([{"tool": "a"}], "Entry 1 of `results`: KeyError: 'result'"),
        ([{"tool": "a", "result": {}, "call_id": "c1.2"}], "cannot be cited"),
        ([5], "Entry 1"),
        ([{"tool": "a", "result": {}, "read_at": "yesterday"}], "Entry 1"),
    ],
)
def test_a_file_that_cannot_be_read_says_where(document: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read_results(document)
