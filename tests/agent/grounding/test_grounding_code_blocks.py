"""A code block that states values of an incident is read as pairs; one with a wrong value is left out."""

from __future__ import annotations

import pytest

from sentinel_rag.agent.grounding import UNCHECKED_CELL


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    "inside",
    [
        '{"incident": 12, "severity": "Low"}',
        '{"severity": "Low", "incident": 12}',
        '{"incident": 12, "severity": "High", "owner": "mallory"}',
        '[\n  {"number": 40, "status": "New"},\n  {"number": 31, "status": "Closed"}\n]',
        "incident: 12\nseverity: Low\nstatus: Active",
    ],
)
def test_a_block_with_a_wrong_value_is_left_out(check, inside: str) -> None:
    grounded = check(f"Here it is:\n\n```json\n{inside}\n```\n")
    assert UNCHECKED_CELL in grounded.text
    assert inside not in grounded.text


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    "inside",
    [
        '{"incident": 12, "severity": "High", "owner": "m.keller"}',
        '[\n  {"status": "New", "number": 40, "owner": null},\n  {"status": "Active", "number": 31}\n]',
        "SecurityIncident\n| where Severity == 'Low'\n| take 12",
    ],
)
def test_a_block_with_right_values_or_a_query_stays(check, inside: str) -> None:
    text = f"Here it is:\n\n```json\n{inside}\n```\n"
    assert check(text).text == text
