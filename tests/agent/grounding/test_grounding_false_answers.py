"""Field report I1. What no result holds, or holds at another thing, is put right or left out, and the answer says so.

The writer of the answer is not trusted: it controls every word of the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from sentinel_rag.agent.grounding import REMOVED, UNCHECKED_CELL, EvidenceIndex, ground
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.query_results import QueryResult
from sentinel_rag.contracts.tool_calls import Succeeded, ToolCall
from sentinel_rag.testing.scripted_gateway import rows_result


def indexed(runs: Sequence[ToolRun], index: EvidenceIndex) -> EvidenceIndex:
    """A conversation of its own over `runs`, in the zone of the shared one."""
    own = EvidenceIndex(index.zone)
    for run in runs:
        own.add(run)
    return own


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    ("text", "put_right"),
    [
        ("Incident 31 is High.", "Incident 31 is Medium (corrected)."),
        ("Incident 40 is a low-severity incident.", "Incident 40 is a high-severity (corrected) incident."),
        ("Incident 12 is **Closed**.", "Incident 12 is **Active** (corrected)."),
        ("Incident 31 is likely High.", "Incident 31 is likely Medium (corrected)."),
        ("It has `12`. Incident 31 has three alerts.", "It has `12`. Incident 31 has 2 (corrected) alerts."),
        (
            "Incident 12 was created at 10:51 UTC.",
            "Incident 12 was created at 2024-07-02 09:51:00 UTC (11:51:00 CEST) (corrected).",
        ),
        ("Incident 31 is owned by m.keller.", "Incident 31 is owned by Ines Duarte (corrected)."),
        ("There are 7 incidents.", "There are 6 (corrected) incidents."),
        ("m.keller had 43 failed sign-ins.", "m.keller had 42 (corrected) failed sign-ins."),
    ],
)
def test_a_wrong_value_with_one_right_one_is_put_right_in_its_place(check, text: str, put_right: str) -> None:
    grounded = check(text)
    assert grounded.text == put_right
    assert [repair.put in put_right for repair in grounded.repairs] == [True]
    assert grounded.removals == ()


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    "text",
    [
        # Things that are nowhere.
        "Incident 9999 is open.",
        "Incidents 12, 13 and 40 are the ones to look at.",
        "Traffic went to 203.0.113.200.",
        "Traffic went to 203[.]0[.]113[.]200.",
        "It came from 2001:db8::7.",
        "The hash is 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a09.",
        "Alert 3f1c2b6a-0d7e-4c55-9b1f-6f0f2a9d1eff was raised.",
        "The technique was T1495.",
        "The host web-99.contoso.example was hit.",
        "The account eve@contoso.example was used.",
        "S-1-5-21-1004336348-1177238915-682003330-512 was used.",
        "It ran C:\\Windows\\Temp\\evil.exe.",
        "The command was `powershell -enc SQBFAFgA`.",
        "The rule “Impossible travel to Mars” fired.",
        "Incident 18 was reported by John Smith.",
        "The handle ⟦r7#/rows/0/name⟧ is the user.",
        # Right values at wrong things.
        "The file dropper.exe was found on dc-01.contoso.example.",
        "The alert “Password spray” was seen on dc-01.contoso.example.",
        "Incident 12 contains the alert “Password spray”.",
        "Incidents 12 and 31 are both High.",
        "Incidents 12 and 31 share the address 198.51.100.23.",
        "Ines Duarte owns incidents 31, 18 and 12.",
        "High severity incidents: 40, 18, 12, 31.",
        # Numbers, shares and durations that do not follow.
        "75% of the incidents are High.",
        "Incident 12 came four hours after its first alert.",
        "All incidents are closed.",
        "None of the incidents are closed.",
        "There are no High incidents.",
        "No alerts name m.keller.",
        "All incidents are assigned to Ines Duarte.",
        # Order.
        "The newest incident is #31.",
        "The oldest incident is 12.",
        "Incident 31 came before incident 12.",
        "The busiest day was 9 July 2024.",
        # Verdicts that no row states.
        "The attacker was successful.",
        "This is a false positive.",
        "Incident 23 is a false positive.",
        "No further action is needed.",
        "APT29 is behind this.",
        "The threat has been contained.",
        "ines.duarte@contoso.example clicked the link.",
        "You can safely ignore this.",
    ],
)
def test_a_sentence_that_the_results_do_not_carry_is_left_out(check, text: str) -> None:
    grounded = check(f"Incident 40 is High. {text}")
    assert grounded.text == f"Incident 40 is High. {REMOVED}"
    assert [removal.text for removal in grounded.removals] == [text]
    assert all(removal.reason for removal in grounded.removals)


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("### Incident 40\nThis one is Medium.", "q"),
        ("Incident 40 came in last. Its status is Closed.", "q"),
        ("- Incident 31\n  - Severity: High", "q"),
        ("- **Severity:** High\n- **Incident:** 31", "q"),
        ("The severity is High.", "How severe is incident 31?"),
        ("The following account is affected: svc-backup.", "Tell me about incident 40"),
    ],
)
def test_a_value_without_a_name_belongs_to_what_was_named_before(check, text: str, question: str) -> None:
    assert check(text, question).touched


@pytest.mark.requirement("GRND-1")
def test_a_newer_result_wins_over_an_older_one(index, runs) -> None:
    run = runs[0]
    assert isinstance(run.outcome, Succeeded)
    assert isinstance(run.outcome.result, QueryResult)
    rows = [{**row, "status": "Closed"} if row["number"] == 40 else row for row in run.rows]
    later = replace(run, outcome=replace(run.outcome, result=replace(run.outcome.result, rows=tuple(rows))))
    both = indexed([run, later], index)
    assert not ground("Incident 40 is Closed.", both, question="q").touched
    assert ground("Incident 40 is New.", both, question="q").touched


@pytest.mark.requirement("GRND-1")
def test_words_of_the_person_are_theirs_to_hear_again(index, runs) -> None:
    own = indexed(runs, index)
    text = "I found nothing about 192.0.2.250."
    assert ground(text, own, question="q").text == REMOVED
    assert ground(text, own, question="what about 192.0.2.250?").text == text
    own.add_words("is 192.0.2.250 known?")
    assert ground(text, own, question="and now?").text == text


@pytest.mark.requirement("GRND-1")
def test_a_table_keeps_its_shape(check) -> None:
    table = (
        "| Incident | Severity | Status |\n|---|---|---|\n| 40 | High | New |\n"
        "| 9999 | Low | Closed |\n| 31 | Low | Active |"
    )
    assert check(table).text == (
        "| Incident | Severity | Status |\n|---|---|---|\n| 40 | High | New |\n"
        f"| {UNCHECKED_CELL} | {UNCHECKED_CELL} | {UNCHECKED_CELL} |\n| 31 | Medium (corrected) | Active |"
    )


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    ("text", "checked"),
    [
        (
            "- Incident 40 is High.\n- Incident 9999 is High.\n- Incident 31 is Medium.",
            f"- Incident 40 is High.\n- {REMOVED}\n- Incident 31 is Medium.",
        ),
        ("**Incident 9999 is High. Incident 40 is New.**", f"**{REMOVED} Incident 40 is New.**"),
        ("# Incident 9999\nMore below.", f"# {UNCHECKED_CELL}\nMore below."),
        ("```\n203.0.113.200 POST /x\n```\nDone.", f"```\n{UNCHECKED_CELL}\n```\nDone."),
        ("It came from 203.0.113.200. And from 203.0.113.201. Ask me more.", f"{REMOVED} Ask me more."),
        ("> Incident 9999 is High.\n\nDone.", f"> {REMOVED}\n\nDone."),
    ],
)
def test_what_is_left_out_leaves_whole_markdown(check, text: str, checked: str) -> None:
    assert check(text).text == checked


@pytest.mark.requirement("GRND-1")
def test_a_handle_that_a_result_has_stays(index, runs) -> None:
    call = ToolCall("h1", "s", "query_alerts")
    hidden = ToolRun(call, Succeeded(call, rows_result([{"alert_id": "a", "name": "⟦r1#/rows/0/name⟧"}])))
    own = indexed([hidden], index)
    assert not ground("The alert is ⟦r1#/rows/0/name⟧.", own, question="q").touched
    assert ground("The alert is ⟦r1#/rows/1/name⟧.", own, question="q").text == REMOVED


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize("text", ["12," * 6_000, "1 " * 9_000, "2024-07-02 " * 800, "x" * 20_000 + " 7"])
def test_what_is_too_much_to_read_is_left_out(check, text: str) -> None:
    assert check(text).text.strip() == REMOVED
