"""Other writings of the same thing: look-alike characters, ranges of incidents, durations from the sentence before.

The writer of the answer is not trusted: it controls every word and every character of the text.
"""

from __future__ import annotations

import pytest
from evidence import evidence_of

from sentinel_rag.agent.grounding import REMOVED, EvidenceIndex, ground


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Incident \uff11\uff12 is \uff2cow.", "Incident 12 is High (corrected)."),
        ("Incident 12 is L\u043ew.", "Incident 12 is High (corrected)."),
        ("Incident 12 is Lo\u200bw.", "Incident 12 is High (corrected)."),
        ("Incident \U0001d7ce\U0001d7cf\U0001d7d0 is Low.", "Incident 012 is High (corrected)."),
        ("Incident \u0661\u0662 is Low.", "Incident 12 is High (corrected)."),
        ("Traffic went to 203.0.113.20\uff10.", REMOVED),
    ],
)
def test_a_lie_in_look_alike_characters_is_found(check, text: str, left: str) -> None:
    assert check(text).text == left


@pytest.mark.requirement("GRND-1")
def test_a_name_of_a_result_that_holds_such_characters_may_be_told() -> None:
    rows = [{"number": 5, "title": "\uff21dmin \u0440ass reset", "severity": "High", "status": "New"}]
    index = evidence_of("query_incidents", rows)
    assert not ground('Incident 5 is "\uff21dmin \u0440ass reset".', index, question="What is new?").removals


def _incidents() -> EvidenceIndex:
    rows = [
        {
            "number": number,
            "title": f"Case of kind {chr(60 + number)}",
            "severity": "High" if number < 8 else "Low",
            "status": "New",
            "created_time": f"2024-07-02T{2 * number:02}:00:00Z",
        }
        for number in range(5, 10)
    ]
    return evidence_of("query_incidents", rows)


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize("form", ["Incidents {} through {}", "Incidents {}-{}", "Incidents {} to {}", "#{}\u2013#{}"])
def test_a_range_speaks_of_both_ends_and_all_between(form: str) -> None:
    index = _incidents()
    true, false = f"{form.format(5, 7)} are High.", f"{form.format(5, 9)} are High."
    assert ground(true, index, question="What is new?").text == true
    assert ground(false, index, question="What is new?").text == REMOVED
    beyond = f"{form.format(8, 12)} are Low."
    assert ground(beyond, index, question="What is new?").text == REMOVED


@pytest.mark.requirement("GRND-1")
def test_a_duration_may_be_measured_from_the_sentence_before() -> None:
    index = _incidents()
    lead = "Incident 5 was created at 10:00 UTC."
    true = f"{lead} About four hours later, at 14:00 UTC, incident 7 was created."
    assert ground(true, index, question="What is new?").text == true
    false = f"{lead} About six hours later, at 14:00 UTC, incident 7 was created."
    assert ground(false, index, question="What is new?").text == f"{lead} {REMOVED}"


@pytest.mark.requirement("GRND-1")
def test_times_in_brackets_are_of_the_event_whose_words_stand_before_them() -> None:
    rows = [
        {"alert_id": "a1", "name": "Ransomware behavior was blocked", "time": "2024-07-03T07:06:00Z"},
        {
            "alert_id": "a2",
            "name": "Logon from an unusual device",
            "time": "2024-07-02T13:18:00Z",
            "entities": [{"kind": "host", "name": "dc-01.contoso.example"}],
        },
    ]
    index = evidence_of("query_alerts", rows)
    host = "Between the logon on dc-01.contoso.example (13:18)"
    true = f"{host} and the ransomware alert (07:06 the next morning) lie 17 hours 48 minutes."
    assert ground(true, index, question="How long did it take?").text == true
    for false in (true.replace("07:06", "13:18"), true.replace("17 hours", "16 hours")):
        assert ground(false, index, question="How long did it take?").text == REMOVED


@pytest.mark.requirement("GRND-1")
def test_a_count_behind_the_most_common_state_is_the_count_of_that_state(check) -> None:
    true = "The most common severity is High, with three of the 6 incidents."
    assert check(true).text == true
    assert check(true.replace("three", "two")).touched
