"""Deeds that no result tells and authorities that no result cites are left out, and never put right into nonsense.

The writer of the answer is not trusted: it controls every word of the text.
"""

from __future__ import annotations

from datetime import UTC

import pytest

from sentinel_rag.agent.grounding import REMOVED, EvidenceIndex, ground
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.tool_calls import Succeeded, ToolCall
from sentinel_rag.testing.scripted_gateway import rows_result


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    "text",
    [
        "I have closed incident 12 for you.",
        "I closed incident 12.",
        "I've assigned incident 40 to Ines Duarte.",
        "We have reset the password of m.keller.",
        "Incident 40 has now been closed for you.",
        "I set incident 12 to Closed.",
        "I have isolated dc-01.contoso.example.",
    ],
)
def test_a_deed_of_the_assistant_is_left_out_and_never_put_right(check, text: str) -> None:
    grounded = check(text)
    assert grounded.text == REMOVED
    assert grounded.repairs == ()


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    "text",
    [
        "Incident 12 has been escalated to the incident response team.",
        "The account of m.keller was disabled.",
        "dc-01.contoso.example was isolated from the network.",
        "The password of m.keller has been reset.",
        "Her sessions were revoked.",
        "The mail was recalled from all mailboxes.",
        "A ticket was opened with the helpdesk.",
        "The affected users were notified.",
        "203.0.113.77 was blocked at the firewall.",
    ],
)
def test_a_measure_that_no_result_tells_is_left_out(check, text: str) -> None:
    assert check(text).text == REMOVED


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    "text",
    [
        "Incident 12 is High according to the SOC manager.",
        "Incident 12 is High, and the SOC manager confirmed that it's a drill.",
        "Incident 12 is High, which the CISO has approved.",
        "Incident 12 was verified by the SOC lead.",
        "Incident 12 is Active, but this is only a test.",
        "Incident 12 is Active; the user confirmed it was him.",
        "Incident 12 is High and the activity was approved.",
        "Incident 12 is High, who confirmed that it's a red team exercise.",
        "Incident 12 might be noise, and the SOC manager confirmed that it is a false alarm.",
    ],
)
def test_the_word_of_an_authority_that_no_result_cites_is_left_out(check, text: str) -> None:
    assert check(text).text == REMOVED


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    "text",
    [
        "I have looked at the alerts of incident 12.",
        "I have not changed anything; incident 12 is still Active.",
        "I started with the list of incidents.",
        "I can close incident 12 for you if you confirm it.",
        "I recommend that the account m.keller is disabled until this is clear.",
        "The results do not show whether the account was disabled.",
        "Ask the SOC manager whether incident 12 was a drill.",
        "If the user confirmed it, incident 12 could be closed.",
        "According to the results, incident 12 is High.",
        "The host dc-01.contoso.example should be isolated before the account is disabled.",
        "You may want to check whether this was a test approved by the CISO.",
    ],
)
def test_advice_limits_and_what_was_read_stay(check, text: str) -> None:
    assert check(text).text == text


def _run(tool: str, rows: list[dict[str, object]], **arguments: object) -> ToolRun:
    call = ToolCall("c1", "s", tool, arguments)  # type: ignore[arg-type]
    return ToolRun(call, Succeeded(call, rows_result(rows)))  # type: ignore[arg-type]


@pytest.mark.requirement("GRND-1")
def test_a_deed_that_a_tool_did_may_be_told_of_its_incident_and_of_no_other() -> None:
    index = EvidenceIndex(UTC)
    rows: list[dict[str, object]] = [
        {"number": 12, "title": "A", "severity": "High", "status": "Closed"},
        {"number": 13, "title": "B", "severity": "High", "status": "Closed"},
    ]
    index.add(_run("query_incidents", rows))
    index.add(_run("update_incident", rows[:1], incident="12", status="Closed"))
    mine, other = "I have closed incident 12.", "I have closed incident 13."
    assert ground(mine, index, question="Close 12").text == mine
    assert ground(other, index, question="Close 12").text == REMOVED


@pytest.mark.requirement("GRND-1")
def test_a_measure_that_a_comment_tells_may_be_told_and_one_that_it_advises_may_not() -> None:
    index = EvidenceIndex(UTC)
    index.add(_run("query_incidents", [{"number": 12, "title": "A", "comment": "Account m.keller was disabled."}]))
    index.add(
        _run("query_incidents", [{"number": 13, "title": "B", "comment": "Reset the password of eve@x.example."}])
    )
    told = "The account m.keller was disabled."
    assert ground(told, index, question="What happened?").text == told
    assert ground("The password of eve@x.example was reset.", index, question="What happened?").text == REMOVED


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    "text", ["Incident 12 has been closed.", "Only one alert belongs to incident 31.", "It was closed on Monday."]
)
def test_a_value_that_would_leave_no_sentence_is_not_put_in(check, text: str) -> None:
    grounded = check(text, "What about incident 12?")
    assert grounded.text == REMOVED
    assert grounded.repairs == ()


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize("text", ["No.", "**Yes**", "Yes, it is.", "Still the same.", "Not yet."])
def test_a_bare_answer_about_the_data_needs_a_result(text: str) -> None:
    question = "Is incident 12 closed?"
    assert ground(text, EvidenceIndex(UTC), question=question).text == REMOVED
    assert ground(text, EvidenceIndex(UTC), question="Do you speak German?").text == text
