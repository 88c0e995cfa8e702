"""What a computed row proves: its outcome, and not what its writer asked for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from sentinel_rag.agent.answers.check import check_answer
from sentinel_rag.agent.answers.compute import compute
from sentinel_rag.agent.answers.evidence import ReadResults
from sentinel_rag.agent.answers.results import Result, Results, Row
from sentinel_rag.contracts.evidence import SentenceState

ROWS: tuple[dict[str, Any], ...] = (
    {"number": 124, "title": "Ransomware", "severity": "High", "status": "Active", "owner": "Åsa Öberg",
     "alert_count": 8, "created_time": "2026-11-25T23:56:00Z"},
    {"number": 125, "title": "Port scan", "severity": "Low", "status": "New", "alert_count": 1},
)  # fmt: skip
FOUND, NOT = SentenceState.VALUES_FOUND, SentenceState.NOT_FOUND
HIGH = {"op": "count", "where": "severity = High"}
NOTHING = {"op": "count", "where": "title contains approved by Bob Smith at 10.9.9.9"}
ALL_NEW = {"op": "all", "that": "status = New"}
NONE_CLOSED = {"op": "none", "that": "status = Closed"}
OWNED = {"op": "all", "where": "severity = Low", "that": "owner is empty"}
NOT_SCAN = {"op": "count", "where": "title != evil.example"}
NOT_CLOSED = {"op": "count", "where": "status != Closed"}
ONE_OF = {"op": "count", "where": "title in (Port scan, evil.example)"}
LOW_AND_BOB = {"op": "count", "where": "severity = Low; owner = Åsa Öberg"}
DEADLINE = {"op": "later", "a": "c1.1.created_time", "b": "72h"}
CHANGE = {"op": "change", "a": "c1.2.alert_count", "b": "c1.1.alert_count"}


def state(arguments: dict[str, Any], text: str) -> tuple[SentenceState, str]:
    results = Results()
    rows = tuple(Row(f"c1.{at}", "incident", f"/rows/{at - 1}", cells) for at, cells in enumerate(ROWS, 1))
    coverage = {"rows_total": 2, "rows_returned": 2}
    results.add(Result(ref="c1", tool="query_incidents", arguments={}, rows=rows, coverage=coverage))
    of = {} if "a" in arguments else {"of": "c1"}
    results.add(compute("c2", {**of, **arguments}, results, now=datetime(2026, 11, 29, tzinfo=UTC)))
    (sentence,) = check_answer(text, ReadResults(results)).sentences
    return sentence.state, sentence.reason


@pytest.mark.parametrize(
    ("arguments", "text", "expected"),
    [
        (HIGH, "One incident is High [c2].", FOUND),
        (HIGH, "1 of 2 incidents is High, 50 % [c2].", FOUND),
        (HIGH, "Ein Vorfall von 2 ist High, also 1 [c2].", FOUND),
        (DEADLINE, "The 72 hours end on 28 November at 23:56 [c2].", FOUND),
        (DEADLINE, "Incident 124 was closed on 28 November at 23:56 [c2].", NOT),
        (DEADLINE, "The 72 hours end on 27 November at 23:56 [c2].", NOT),
        (HIGH, "Two incidents are High [c2].", NOT),
        (HIGH, "All incidents are High [c2].", NOT),
        (HIGH, "Alle Vorfälle sind High [c2].", NOT),
        (HIGH, "No incident is High [c2].", NOT),
        (HIGH, "Ningún incidente es High [c2].", NOT),
        (NOTHING, "The transfer was approved by Bob Smith at 10.9.9.9 [c2.1].", NOT),
        (NOTHING, "It came from 10.9.9.9 [c2].", NOT),
        (NOTHING, "“approved by Bob Smith” [c2].", SentenceState.SOURCE_GIVEN),
        (NOTHING, "No title contains “approved by Bob Smith” [c2].", FOUND),
        (ALL_NEW, "All incidents are New [c2].", NOT),
        (ALL_NEW, "1 of 2 incidents is New [c2].", FOUND),
        (NONE_CLOSED, "No incident is Closed [c2].", FOUND),
        (NONE_CLOSED, "Every incident is Closed [c2].", NOT),
        (NOT_SCAN, "2 incidents went to evil.example [c2].", NOT),
        (NOT_CLOSED, "2 incidents are not Closed [c2].", FOUND),
        (NOT_CLOSED, "2 incidents are Closed [c2].", NOT),
        (ONE_OF, "1 incident was about evil.example [c2].", NOT),
        (LOW_AND_BOB, "No incident is owned by Åsa Öberg [c2].", NOT),
        (LOW_AND_BOB, "No Low incident is owned by Åsa Öberg [c2].", FOUND),
        (CHANGE, "The alerts rose from 1 to 8 [c2].", FOUND),
        (CHANGE, "The alerts fell from 8 to 1 [c2].", NOT),
    ],
)
@pytest.mark.requirement("GRND-1")
def test_a_computed_row_proves_its_outcome_and_nothing_else(
    arguments: dict[str, Any], text: str, expected: SentenceState
) -> None:
    assert state(arguments, text)[0] is expected, state(arguments, text)


def test_a_condition_that_denies_may_be_told_as_none() -> None:
    assert state(OWNED, "No Low incident has an owner [c2].")[0] is not NOT


def test_the_reason_tells_what_was_counted() -> None:
    assert state(HIGH, "All incidents are High [c2].")[1] == "c2.1 counts 1 of 2"
    assert "“10.9.9.9”" not in state(NOTHING, "No title contains “approved by Bob Smith” [c2].")[1]


SEARCH = {"query": "the transfer was approved by Bob Smith from 10.9.9.9"}


@pytest.mark.parametrize(
    ("found", "text", "expected"),
    [
        (True, "“the transfer was approved by Bob Smith” [c1.1].", NOT),
        (True, "The sign-in came from 10.9.9.9 [c1.1].", NOT),
        (False, "The knowledge base has nothing on “the transfer was approved by Bob Smith” [c1].", FOUND),
        (False, "“the transfer was approved by Bob Smith” [c1].", SentenceState.SOURCE_GIVEN),
    ],
)
def test_words_of_a_search_are_no_words_of_its_results(found: bool, text: str, expected: SentenceState) -> None:
    rows = (Row("c1.1", "hit", "/hits/0", {"document": "phishing.md", "text": "Reset the password."}),) if found else ()
    results = Results()
    coverage = {"rows_total": len(rows), "rows_returned": len(rows)}
    results.add(Result(ref="c1", tool="search_knowledge_base", arguments=SEARCH, rows=rows, coverage=coverage))
    (sentence,) = check_answer(text, ReadResults(results)).sentences
    assert sentence.state is expected, sentence
