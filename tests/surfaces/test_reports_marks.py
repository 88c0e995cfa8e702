"""Hand-over reports keep what the check says of an answer: marks, sources, reasons; also those of older answers."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support.obedient_analyst import cited_answer

from sentinel_rag.contracts.evidence import Answer, Evidence
from sentinel_rag.surfaces.reports import HandOver, Head, ReportTurn, as_evidence, as_html, as_markdown, hand_over

pytestmark = pytest.mark.requirement("SURF-6")

ANSWER = cited_answer(
    "values_found 1 Incident **<number=124>** is <severity=High>.|not_found 0 It came from <ip=203.0.113.9>.|"
    "contradicted 2 Incident <number=125> is <severity=Low~Medium & more>.|own_words 0 Look at it.",
    "s1234567",
)


def report_of(*answers: dict[str, Any]) -> HandOver:
    head = Head(
        conversation_id="s1", exported_by="dana", exported_at=datetime(2026, 11, 27, tzinfo=UTC), timezone="UTC"
    )
    turns = [
        ReportTurn(number, "2026-11-26T23:20:00Z", "What is new?", "answered", answer=answer)
        for number, answer in enumerate(answers, 1)
    ]
    return hand_over(head, turns, [])


def test_every_form_tells_what_was_found_where_and_what_was_not() -> None:
    report = report_of(ANSWER.to_dict())
    rows = [(row.number, row.place, row.audit_id, dict(row.fields)) for row in report.evidence]
    assert rows == [
        ("E1", "/rows/0", "a-1", {"number": "124", "severity": "High"}),
        ("E2", "/rows/1", "a-1", {"number": "125", "severity": "Medium & more"}),
    ]
    file = as_markdown(report)
    assert (
        "Incident \\*\\***124**\\*\\* is **High**. (E1) It came from 203.0.113.9. **!** _no cited row has it_" in file
    )
    assert "is Low. (E2) **✗** _the cited row says otherwise_ Look at it." in file
    assert "_1 compared, 1 not found, 1 contradicted, 1 own words_" in file
    page = as_html(report)
    assert '<strong><u class="found">124</u></strong> is <u class="found">High</u>.' in page
    assert '<a href="#E1">E1</a>' in page
    assert '<span class="warn">! (no cited row has it)</span>' in page
    assert '<u class="other">Low</u>' in page
    assert "Medium &amp; more" in page
    lines = list(csv.reader(as_evidence(report).splitlines()))
    assert ["E1", "1", "query_incidents", "c1", "a-1", "/rows/0", "severity", "High"] in lines
    assert ["", "1", "", "", "", "sentence", "not found", "It came from 203.0.113.9. (no cited row has it)"] in lines
    assert report.open_questions == (
        "Question 1 (What is new?): not found: It came from 203.0.113.9. (no cited row has it)",
        "Question 1 (What is new?): contradicted: Incident 125 is Low. (the cited row says otherwise)",
    )


def test_a_sentence_may_rest_on_what_an_earlier_question_read() -> None:
    later = {**cited_answer("values_found 5 It is <owner=m.keller>.", "s1234567").to_dict(), "tools": []}
    [*_, row] = report_of(ANSWER.to_dict(), later).evidence
    assert (row.number, row.turn, row.place, row.audit_id) == ("E3", 2, "/rows/4", "a-1")


def test_an_answer_that_was_kept_before_sentences_were_compared_keeps_its_evidence_behind_its_lines() -> None:
    old = {
        **Answer(
            outcome=ANSWER.outcome,
            text="Incident 124 is High.\n\n| number | severity |\n|---|---|\n| 124 | High |",
            session_id="s",
            tools=ANSWER.tools,
            evidence=(Evidence("124", "c1", "query_incidents", "/rows/0/number", 124),),
        ).to_dict()
    }
    del old["sentences"]
    report = report_of(old)
    assert Answer.from_dict(old).sentences == ()
    assert "Incident 124 is High. (E1)" in as_markdown(report)
    page = as_html(report)
    assert 'Incident 124 is High. <span class="quiet">(<a href="#E1">E1</a>)</span>' in page
    assert '<td>High <span class="quiet">(<a href="#E1">E1</a>)</span></td>' in page
    assert report.open_questions == ()
