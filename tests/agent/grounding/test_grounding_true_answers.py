"""True answers in the wordings of models stay as they are, and say what they rest on."""

from __future__ import annotations

import pytest

from sentinel_rag.agent.grounding import broken_evidence
from sentinel_rag.agent.tool_runs import ToolRun

TRUE = (
    "There are 6 incidents: three High, one Medium, one Low and one Informational.",
    "Of the six incidents, three (50%) have High severity: #40, #18 and #12.",
    "Currently 4 are open (1 New and 3 Active) and 2 are closed. Half of the incidents are rated High.",
    "**Open incidents (4)**\n1. **#40** (High, New) – created July 20, 2024 at 06:12 UTC, not assigned to anyone\n"
    "2. **#31 – Password spray against several accounts** (Medium, Active) – owned by Ines Duarte",
    "| Incident | Severity | Owner |\n|---|---|---|\n| 40 | High | - |\n| 31 | Medium | Ines Duarte |",
    "### Incident 12\nIt is High and still active. It was created on 2 July at 11:51 "
    "CEST.\n\n### Incident 23\nIt is closed.",
    "Incident 12 was created at 09:51 UTC on the 2nd of July and last updated five hours later.",
    "Its alert “Malicious file was dropped” was raised at 2024-07-02T09:47:00Z (11:47 in Berlin), 4 minutes before "
    "incident 12 was created.",
    "While 31 is a medium-severity incident, 12 has been rated High.",
    "The dropped file was `C:\\Users\\Public\\dropper.exe` on fin-ws-014, and "
    "hxxps://files[.]example/dropper was seen.",
    "m.keller is named by 4 alerts, two of them High, across incidents 12, 18 and 31.",
    "svc-backup had 128 failed sign-ins, m.keller 42; in total there were 170.",
    "The busiest day was 2 July 2024 with two alerts.",
    "The newest incident is 40 and the oldest one is #7.",
    "Incident 7 was created before incident 12.",
    "Not all incidents are closed, but incidents 23 and 7 are.",
    "No incidents are unassigned except #40 and #7.",
    "Alert 3f1c2b6a-0d7e-4c55-9b1f-6f0f2a9d1e06 is InProgress and maps to T1204.002.",
    "The alerts of incident 31 fall into 17 July and 19 July.",
    "Analysis (please verify): a person may have used the account m.keller on dc-01.contoso.example.",
    "Would you like me to look at the sign-ins of the last 24 hours, or at the closed incidents?",
    "I could not find anything about printers.",
)


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize("text", TRUE)
def test_a_true_answer_stays_as_it_is(check, text: str) -> None:
    grounded = check(text)
    assert (grounded.text, grounded.removals, grounded.repairs) == (text, (), ())


@pytest.mark.requirement("GRND-2")
@pytest.mark.parametrize("text", TRUE)
def test_each_piece_of_evidence_leads_to_its_value(check, runs: list[ToolRun], text: str) -> None:
    assert broken_evidence(check(text).evidence, runs) == []


@pytest.mark.requirement("GRND-2")
def test_a_value_points_at_its_call_row_and_field(check) -> None:
    evidence = {piece.text: piece for piece in check("Incident 23 is Low and Closed.").evidence}
    assert {text: (piece.call_id, piece.pointer, piece.value) for text, piece in evidence.items()} == {
        "23": ("c0", "/rows/2/number", 23),
        "Low": ("c0", "/rows/2/severity", "Low"),
        "Closed": ("c0", "/rows/2/status", "Closed"),
    }
