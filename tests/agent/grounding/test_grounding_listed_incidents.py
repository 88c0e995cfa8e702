"""Bare numbers in a list of incidents or at the head of a row are incidents, and are never made a count of.

Also: a past state with its time is not the present state, and accusations and who changed what stand in results only.
"""

from __future__ import annotations

import pytest
from evidence import evidence_of

from sentinel_rag.agent.grounding import REMOVED, ground


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    "text",
    [
        "Three High incidents exist: 40 (New), 18 (Active) and 12 (Active).",
        "Two incidents are closed: 23 and 7.",
        "Two incidents: [1] 23 and [2] 7.",
        "The open incidents are 40, 31, 18 and 12.",
        "| Nr | Sev |\n|---|---|\n| 40 | High |\n| 31 | Medium |",
        "One incident is Medium: 31.",
    ],
)
def test_a_true_list_of_numbers_stays(check, text: str) -> None:
    assert check(text).text == text


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    ("text", "left"),
    [
        (
            "Three High incidents exist: 40 (Closed), 18 (Active) and 12 (Active).",
            "Three High incidents exist: 40 (New (corrected)), 18 (Active) and 12 (Active).",
        ),
        ("| Nr | Sev |\n|---|---|\n| 31 | Low |", "| Nr | Sev |\n|---|---|\n| 31 | Medium (corrected) |"),
        ("Two High incidents are open: 18 and 31.", REMOVED),
    ],
)
def test_a_wrong_value_in_such_a_list_is_found_and_the_number_kept(check, text: str, left: str) -> None:
    assert check(text).text == left


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    "text",
    [
        "m.keller is the attacker.",
        "m.keller is a malicious insider.",
        "Ransomware was executed successfully on dc-01.contoso.example.",
        "Incident 23 was closed by Ines Duarte.",
    ],
)
def test_an_accusation_or_a_deed_of_somebody_that_no_result_tells_is_left_out(check, text: str) -> None:
    assert check(text).text == REMOVED


@pytest.mark.requirement("GRND-1")
def test_a_reopened_incident_was_closed_once_and_one_never_closed_was_not() -> None:
    rows = [
        {"number": 108, "title": "A", "severity": "High", "status": "Active", "closed_time": "2024-07-09T09:00:54Z"},
        {"number": 124, "title": "B", "severity": "High", "status": "Active", "closed_time": None},
    ]
    index = evidence_of("query_incidents", rows)
    told = "Incident 108 is High; it was closed on 9 July 2024 at 09:00 UTC and later reopened."
    never = "Incident 124 was closed on 9 July 2024 and later reopened."
    assert ground(told, index, question="What happened?").text == told
    assert ground(never, index, question="What happened?").text == REMOVED
