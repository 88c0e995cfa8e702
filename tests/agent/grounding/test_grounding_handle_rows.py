"""A handle stands for a hidden value of one row: it stays only at that row's incident and where its field is meant."""

from __future__ import annotations

import pytest
from evidence import evidence_of

from sentinel_rag.agent.grounding import REMOVED, EvidenceIndex, ground


@pytest.fixture(scope="module")
def hidden() -> EvidenceIndex:
    rows = [
        {"number": number, "title": f"⟦r1#/rows/{row}/title⟧", "owner": f"⟦r1#/rows/{row}/owner⟧", "severity": "High"}
        for row, number in enumerate((124, 108))
    ]
    return evidence_of("query_incidents", rows)


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    "text",
    [
        "Incident 124 has the title ⟦r1#/rows/1/title⟧.",
        "Incident 108 is titled ⟦r1#/rows/0/title⟧.",
        "Incident 108 is owned by ⟦r1#/rows/0/owner⟧.",
        "Incident 108 is owned by ⟦r1#/rows/1/title⟧.",
        "Incident 108 has the title ⟦r1#/rows/1/owner⟧.",
    ],
)
def test_a_handle_of_another_row_or_field_is_left_out(hidden: EvidenceIndex, text: str) -> None:
    assert ground(text, hidden, question="What is it called?").text == REMOVED


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    "text",
    [
        "Incident 124 has the title ⟦r1#/rows/0/title⟧ and incident 108 is titled ⟦r1#/rows/1/title⟧.",
        "Incident 108 is owned by ⟦r1#/rows/1/owner⟧.",
        "| # | Title | Owner |\n|---|---|---|\n| 108 | ⟦r1#/rows/1/title⟧ | ⟦r1#/rows/1/owner⟧ |",
    ],
)
def test_a_handle_of_its_own_row_stays(hidden: EvidenceIndex, text: str) -> None:
    assert ground(text, hidden, question="What is it called?").text == text
