"""What counts as evidence of a cited result beside its cells: its window, what it was asked for and computed from, how
many rows are cited, and cells that are empty; and that each value stands beside its own name."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from answer_rows import INCIDENTS
from sentinel_rag.agent.answers.check import check_answer
from sentinel_rag.agent.answers.compute import compute
from sentinel_rag.agent.answers.evidence import ReadResults
from sentinel_rag.agent.answers.results import Results
from sentinel_rag.agent.answers.results_file import read_entry
from sentinel_rag.contracts.evidence import SentenceState

pytestmark = pytest.mark.requirement("GRND-1")
FOUND, SOURCE, NOT = SentenceState.VALUES_FOUND, SentenceState.SOURCE_GIVEN, SentenceState.NOT_FOUND
NOW = "2026-11-29T10:00:00Z"
LAST_WEEK = {"start": "2026-11-22T10:00:00Z", "end": NOW}
WEEK_BEFORE = {"start": "2026-11-15T00:00:00Z", "end": "2026-11-22T00:00:00Z"}
OLDER = [
    {"number": 101, "title": "A", "severity": "High", "status": "Closed", "created_time": "2026-11-16T08:00:00Z"},
    {"number": 102, "title": "B", "severity": "Low", "status": "Closed", "created_time": "2026-11-17T08:00:00Z"},
]
COUNTRIES = [
    {"Country": "PL", "SignIns": 181, "Failures": 36, "Risk": ""},
    {"Country": "FI", "SignIns": 179, "Failures": 38, "Risk": ""},
]
COMPUTED = {
    "c4": {"op": "change", "a": "c2", "b": "c1"},
    "c5": {"op": "ratio", "a": "c1.by_severity.Medium", "b": "c1.by_severity.High"},
    "c6": {"op": "group", "of": "c1", "by": "severity", "where": "status = New"},
    "c7": {"op": "ratio", "a": "c3.1.Failures", "b": "c3.2.Failures"},
}


def call(tool: str, rows: list[dict[str, Any]], window: dict[str, str], /, **arguments: Any) -> dict[str, Any]:
    coverage = {"window": window, "rows_total": len(rows), "table_newest": "2026-11-29T09:30:00Z", "table_rows": 80}
    severities = [row["severity"] for row in rows if "severity" in row]
    summary = {"by_severity": {each: severities.count(each) for each in severities}} if severities else {}
    result = {"rows": rows, "coverage": coverage, "summary": summary}
    return {"tool": tool, "arguments": arguments, "read_at": NOW, "result": result}


@pytest.fixture(scope="module")
def evidence() -> ReadResults:
    held = Results()
    account = {"user": "asa.oberg@woodgrove.example"}
    incidents = [{**row, "comments": []} for row in INCIDENTS]
    for ref, entry in (
        ("c1", call("query_incidents", incidents, LAST_WEEK, time_window="last_7d")),
        ("c2", call("query_incidents", OLDER, WEEK_BEFORE, start_time=WEEK_BEFORE["start"])),
        ("c3", call("run_kql_query", COUNTRIES, LAST_WEEK, template="by_country", parameters=account)),
    ):
        held.add(read_entry(entry, held, default_ref=ref))
    for ref, arguments in COMPUTED.items():
        held.add(compute(ref, arguments, held, now=datetime(2026, 11, 29, 10, tzinfo=UTC)))
    return ReadResults(held)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        # the window
        (FOUND, "In the last 7 days three incidents came in [c1]."),
        (FOUND, "In den letzten sieben Tagen kamen drei Vorfälle [c1]."),
        (FOUND, "En los últimos 7 días hubo 3 incidentes [c1]."),
        (FOUND, "Ces 7 derniers jours, 3 incidents ont été créés [c1]."),
        (NOT, "In the last 30 days three incidents came in [c1]."),
        (NOT, "In den letzten 30 Tagen kamen drei Vorfälle [c1]."),
        (FOUND, "Two of them came in the last 2 days [c1]."),
        (NOT, "Two of them came in the last 3 days [c1]."),
        (FOUND, "In the last 7 days incident 124 was created [c1.1]."),
        (NOT, "In the last 24 hours incident 124 was created [c1.1]."),
        (FOUND, "The window is 22 to 29 November [c1]."),
        (FOUND, "Zwischen 15. und 21. November waren es 2 Vorfälle [c2]."),
        (FOUND, "From 15 to 21 November there were 2 incidents [c2]."),
        (NOT, "From 15 to 20 November there were 2 incidents [c2]."),
        (FOUND, "In the seven days before, there were 2 incidents [c2]."),
        (NOT, "The sign-ins from PL took 7 days, 36 failures [c3.1]."),
        (NOT, "Since 22 November 124 has been open [c1.1]."),
        (FOUND, "The newest row of the table is of 29 November at 09:30 UTC [c1]."),
        (FOUND, "Die Tabelle enthält 80 Zeilen, die neueste vom 29. November um 09:30 UTC [c1]."),
        (NOT, "The newest row of the table is of 28 November at 09:30 UTC [c1]."),
        # states up to one, and from one on
        (SOURCE, "125 and 126 are Medium or lower [c1.2][c1.3]."),
        (SOURCE, "125 und 126 sind Medium oder niedriger [c1.2][c1.3]."),
        (SOURCE, "124 and 125 are Medium or higher [c1.1][c1.2]."),
        (NOT, "124 and 125 are Medium or lower [c1.1][c1.2]."),
        (NOT, "124 y 125 son Medium o menor [c1.1][c1.2]."),
        # what a result was asked for, and computed from
        (FOUND, "asa.oberg@woodgrove.example had 36 failures from PL in the last 7 days [c3.1]."),
        (FOUND, "3 incidents in the last 7 days against 2 in the 7 days before [c4.1]."),
        (FOUND, "There are twice as many Medium as High ones [c5.1]."),
        (FOUND, "Es gibt doppelt so viele mit Medium wie mit High [c5.1]."),
        (NOT, "There are twice as many Low as High ones [c5.1]."),
        (FOUND, "Of the New incidents 2 are Medium [c6.1]."),
        (FOUND, "Von den Vorfällen mit New sind 2 Medium, 100 % [c6.1]."),
        (NOT, "Of the Closed incidents 2 are Medium [c6.1]."),
        (FOUND, "Failures from PL are 94.7 % of those from FI [c7.1]."),
        # how many rows are cited
        (FOUND, "Three incidents [c1.1][c1.2][c1.3] came in."),
        (FOUND, "Zwei Vorfälle sind Medium [c1.2][c1.3]."),
        (NOT, "Four incidents are open [c1.1][c1.2][c1.3]."),
        # each value beside its own name
        (FOUND, "PL has 36 failures and FI 38 [c3.1][c3.2]."),
        (FOUND, "FI has 38 failures and PL 36 [c3.1][c3.2]."),
        (NOT, "PL has 38 failures and FI 36 [c3.1][c3.2]."),
        (NOT, "Aus FI kamen 36 Fehler, aus PL 38 [c3.1][c3.2]."),
        (FOUND, "124 has 8 alerts and 125 has 1 [c1.2][c1.1]."),
        (NOT, "125 has 8 alerts and 124 has 1 [c1.2][c1.1]."),
        (FOUND, "| High | 1 | 1 | [c2][c1]"),
        (NOT, "| High | 1 | 4 | [c2][c1]"),
        # an empty cell
        (FOUND, "Nobody owns it [c1.2]."),
        (FOUND, "Niemand besitzt 125 [c1.2]."),
        (FOUND, "125 has no comments [c1.2]."),
        (FOUND, "125 hat keine Kommentare [c1.2]."),
        (FOUND, "El 125 no tiene ningún comentario [c1.2]."),
        (SOURCE, "Nobody owns 126 [c1.3]."),
        (NOT, "126 hat keinen Besitzer [c1.3]."),
        (SOURCE, "125 has no title [c1.2]."),
    ],
)
def test_what_counts_as_evidence(evidence: ReadResults, state: SentenceState, text: str) -> None:
    sentence = check_answer(
        f"| a | b | c | d |\n|---|---|---|---|\n{text}" if text[0] == "|" else text, evidence
    ).sentences[-1]
    assert sentence.state is state, sentence.reason


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (FOUND, "It stands in 294 process rows [c1]."),
        (FOUND, "Es steht in 12 Network-Zeilen [c1]."),
        (NOT, "It stands in 12 process rows [c1]."),
        (FOUND, "It stands in 294 rows of endpoints [c1]."),
        (NOT, "It stands in 294 network rows [c1]."),
        (NOT, "It stands in 294 alerts [c1]."),
    ],
)
def test_a_total_is_named_by_the_part_that_no_other_name_has(state: SentenceState, text: str) -> None:
    tables = {"DeviceProcessEvents": 294, "DeviceNetworkEvents": 12}
    result = {"rows": [{"Table": "x"}], "coverage": {"rows_total": 306}, "summary": {"by_table": tables}}
    held = Results()
    entry = {"tool": "search_logs", "arguments": {"text": "a.ps1"}, "read_at": NOW, "result": result}
    held.add(read_entry(entry, held, default_ref="c1"))
    (found,) = check_answer(text, ReadResults(held)).sentences
    assert found.state is state, found.reason


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (SentenceState.SOURCE_GIVEN, "Event 4698: nothing on any machine [c1]."),
        (NOT, "Event 4699: nothing on any machine [c1]."),
    ],
)
def test_a_number_that_was_searched_for_stands_in_the_empty_result(state: SentenceState, text: str) -> None:
    result = {"rows": [], "coverage": {"rows_total": 0}, "summary": {"by_table": {}, "tables_searched": 48}}
    held = Results()
    entry = {"tool": "search_logs", "arguments": {"text": "4698"}, "read_at": NOW, "result": result}
    held.add(read_entry(entry, held, default_ref="c1"))
    (found,) = check_answer(text, ReadResults(held)).sentences
    assert found.state is state, found.reason


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (FOUND, "Its product is Azure Active Directory Identity Protection [c1.1]."),
        # what is denied of several
        (FOUND, "Keiner davon wurde als TruePositive geschlossen [c1.1][c1.2]."),
    ],
)
def test_no_state_is_read_into_a_name_or_a_denial(state: SentenceState, text: str) -> None:
    product = "Azure Active Directory Identity Protection"
    rows = [
        {"number": n, "title": "A", "status": "New", "classification": "FalsePositive", "product": product}
        for n in (7, 8)
    ]
    held = Results()
    held.add(
        read_entry(
            call("query_alerts", [{**row, "severity": "Low"} for row in rows], LAST_WEEK), held, default_ref="c1"
        )
    )
    (found,) = check_answer(text, ReadResults(held)).sentences
    assert found.state is state, found.reason


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (FOUND, "Malware | 111 Active, 119 FalsePositive [c1.1][c1.2]."),
        (NOT, "Malware | 111 Active, 119 New [c1.1][c1.2]."),
        (FOUND, "Incident 111, which is Low, has that file too [c1.1][c1.3]."),
        (NOT, "The alerts of incident 111 are Low [c1.1][c1.3]."),
    ],
)
def test_a_state_is_of_the_incident_that_is_named(state: SentenceState, text: str) -> None:
    rows = [
        {"number": 111, "title": "Malware", "status": "Active", "severity": "Low"},
        {"number": 119, "title": "Malware", "status": "Closed", "severity": "Low", "classification": "FalsePositive"},
        {"number": 120, "title": "Malware", "status": "New", "severity": "High"},
    ]
    held = Results()
    held.add(read_entry(call("query_incidents", rows, LAST_WEEK), held, default_ref="c1"))
    table = f"| what | which |\n|---|---|\n| {text} |" if "|" in text else text
    assert check_answer(table, ReadResults(held)).sentences[-1].state is state
