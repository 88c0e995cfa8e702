"""The repair round puts in what was asked for, and touches nothing else."""

from __future__ import annotations

import pytest

from sentinel_rag.agent.answers.check import check_answer
from sentinel_rag.agent.answers.evidence import ReadResults
from sentinel_rag.agent.answers.repair import numbered_sentences, repair_request, repaired, rewritten, sourced
from sentinel_rag.contracts.evidence import SentenceState

RAW = """# Incidents
124 is Medium [c1.1]. It has 8 alerts [c1.1]. I would start there.

- 125 has nine alerts [c1.2]
- 126 is Medium [c1.3]

| Incident | Severity |
|---|---|
| 124 | Low [c1.1] |
"""


def test_the_request_numbers_the_sentences_with_their_reasons(evidence: ReadResults) -> None:
    request = repair_request(check_answer(RAW, evidence))
    assert "1. “124 is Medium.” [c1.1] — c1.1 gives severity High, not Medium" in request
    assert "2. “125 has nine alerts” [c1.2] — “nine” does not stand in c1.2" in request
    assert "3. “124 | Low” [c1.1]" in request
    assert "4." not in request


def test_nothing_is_asked_where_nothing_is_wrong(evidence: ReadResults) -> None:
    assert repair_request(check_answer("124 is High [c1.1].", evidence)) == ""


def test_corrected_sentences_take_the_place_of_those_that_were_asked_for(evidence: ReadResults) -> None:
    checked = check_answer(RAW, evidence)
    new = repaired(
        RAW, checked, "1: 124 is High [c1.1].\n2: - 125 has one alert [c1.2]\n3: | 124 | High [c1.1] |\n7: no"
    )
    assert new == RAW.replace("124 is Medium [c1.1].", "124 is High [c1.1].").replace(
        "125 has nine alerts [c1.2]", "125 has one alert [c1.2]"
    ).replace("124 | Low [c1.1]", "124 | High [c1.1]")
    assert repair_request(check_answer(new, evidence)) == ""


def test_an_empty_line_drops_its_sentence(evidence: ReadResults) -> None:
    new = repaired(RAW, check_answer(RAW, evidence), "1:\n2:\n3:")
    assert (
        new
        == """# Incidents
It has 8 alerts [c1.1]. I would start there.

- 126 is Medium [c1.3]

| Incident | Severity |
|---|---|
"""
    )


def test_what_cannot_be_read_leaves_the_answer_as_it_was(evidence: ReadResults) -> None:
    checked = check_answer(RAW, evidence)
    for reply in ("", "I corrected everything.", "1: a\n1: b", "3: 124 | High | more", "99: x", "one: 124 is High"):
        assert repaired(RAW, checked, reply) == RAW


def test_a_row_may_come_back_without_the_number_that_counts_it(evidence: ReadResults) -> None:
    raw = "| Id | State |\n|---|---|\n| 7 | 124 is Low [c1.1] |"
    assert "| 7 | 124 is High [c1.1] |" in repaired(raw, check_answer(raw, evidence), "1: 124 is High [c1.1]")


def test_a_row_may_come_back_with_a_number_that_its_unit_leaves_out(evidence: ReadResults) -> None:
    raw = "| [n] | Id | State |\n|---|---|---|\n| [1] | 124 | Low [c1.1] |"
    new = repaired(raw, check_answer(raw, evidence), "1: | [1] | 124 | High [c1.1] |")
    assert check_answer(new, evidence).text.splitlines()[-1].replace(" ", "") == "|[1]|124|High|"


@pytest.mark.parametrize(
    ("row", "reply", "new"),
    [
        ("| 1 | 124 is Low | [c1.1] | |", "| 1 | 124 is High [c1.1] | | |", "| 1 | 124 is High [c1.1] |  |  |"),
        ("| 124 is Low [c1.1] | |  |", "124 is High [c1.1]", "| 124 is High [c1.1] |  |  |"),
        ("| 124 is Low [c1.1] | a \\| b |", "| 124 is High [c1.1] | a \\| b |", "| 124 is High [c1.1] | a \\| b |"),
        ("| 124 is Low | [c1.1] |", "| 124 | is | High | [c1.1] |", "| 124 is Low | [c1.1] |"),
    ],
)
def test_empty_cells_of_a_row_are_cells(evidence, row, reply, new) -> None:
    """Rows whose citation was moved into another cell were not taken, and nothing said so."""
    raw = "| a | b | c | d |\n|---|---|---|---|\n" + row
    assert repaired(raw, check_answer(raw, evidence), f"1: {reply}").splitlines()[-1] == new


UNCITED = """Incident 124 is High. **It has 8 alerts.** I would start there.

- Incident 125 is Medium

| # | Incident | Severity | Next |
|---|---|---|---|
| 1 | 124 | High | call Anna |
| 2 | 125 | Medium | |
"""


def test_sources_that_are_given_afterwards_stand_behind_their_sentences(evidence: ReadResults) -> None:
    checked = check_answer(UNCITED, evidence)
    request = numbered_sentences(checked)
    numbers = {line.partition(". ")[2]: line.partition(".")[0] for line in request.splitlines()}
    assert numbers["I would start there."] == "3"
    refs = ["c1.1", "[c1.1]", "-", "c1.2", "c1.1, c2.1", "c1.2."]
    new = sourced(UNCITED, checked, "\n".join(f"{at}: {ref}" for at, ref in enumerate(refs, start=1)))
    assert new.startswith("Incident 124 is High [c1.1]. **It has 8 alerts.** [c1.1] I would")
    assert "- Incident 125 is Medium [c1.2]\n" in new
    assert "| call Anna [c1.1, c2.1] |" in new
    assert "| 2 | 125 | Medium | [c1.2]" in new
    again = check_answer(new, evidence)
    assert (again.text.split(), numbered_sentences(again)) == (checked.text.split(), "1. I would start there.")
    assert {each.state for each in again.sentences} <= {SentenceState.VALUES_FOUND, SentenceState.OWN_WORDS}


def test_what_is_judgement_stays_and_what_is_said_otherwise_takes_its_place(evidence: ReadResults) -> None:
    raw = "Incident 124 is Medium. Incident 125 is Medium. Incident 126 is Medium."
    new = sourced(raw, check_answer(raw, evidence), "1: 124 is High [c1.1].\n2: -\n3: c1.2\n3: c1.3\n9: c1")
    assert new == raw.replace("Incident 124 is Medium.", "124 is High [c1.1].")


def test_a_sentence_is_added_inside_its_line_or_as_a_line_of_its_own(evidence: ReadResults) -> None:
    raw = "- **125** has one alert [c1.2]. I did not follow it.\n- 126 is Low [c1.3]\n"
    new = rewritten(raw, check_answer(raw, evidence), "2+: Its host is quiet.\n3+: It has no owner.")
    assert new.splitlines() == [
        "- **125** has one alert [c1.2]. I did not follow it. Its host is quiet.",
        "- 126 is Low [c1.3]",
        "- It has no owner.",
    ]
