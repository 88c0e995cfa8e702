"""How often a name occurs is counted over the rows: the most frequent alert, and a number hung on a name."""

from __future__ import annotations

import pytest
from evidence import evidence_of

from sentinel_rag.agent.grounding import REMOVED, EvidenceIndex, ground

_NAMES = ("Port scan", "Password spray", "Password spray", "Password spray", "Malware removed", "Malware removed")


@pytest.fixture(scope="module")
def alerts() -> EvidenceIndex:
    rows = [
        {"alert_id": f"a{place}", "name": name, "severity": "Low", "time": f"2024-07-0{place + 1}T10:00:00Z"}
        for place, name in enumerate(_NAMES)
    ]
    return evidence_of("query_alerts", rows)


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    "text",
    [
        'The most frequent alert is "Port scan".',
        'The most common alert is "Malware removed".',
        '"Malware removed" is the most frequent alert.',
        'The least common alert is "Password spray".',
        "The rarest alert is Malware removed.",
        '"Password spray" is the most frequent alert with 4 hits.',
        'First comes "Password spray" (2).',
    ],
)
def test_a_frequency_that_the_rows_do_not_have_does_not_stay(alerts: EvidenceIndex, text: str) -> None:
    grounded = ground(text, alerts, question="What is going on?")
    assert grounded.touched
    assert grounded.text == REMOVED or "(corrected)" in grounded.text


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    "text",
    [
        'The most frequent alert is "Password spray" with 3 hits, followed by "Malware removed" (2).',
        '"Password spray" is by far the most common alert.',
        "The most frequent alert is Password spray, which was raised three times.",
        'The least common alert is "Port scan".',
        "- Password spray: 3\n- Malware removed: 2\n- Port scan: 1",
    ],
)
def test_a_frequency_that_the_rows_have_stays(alerts: EvidenceIndex, text: str) -> None:
    assert ground(text, alerts, question="What is going on?").text == text
