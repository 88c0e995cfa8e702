"""A sentence that speaks of one incident and names another never gets a value of the other put in.

The writer of the answer is not trusted: it controls every word of the text.
"""

from __future__ import annotations

import pytest

from sentinel_rag.agent.grounding import REMOVED

LEAD = "Incident 12 is High."


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    "text",
    [
        "It was created on 2 July 2024 at 11:51; Password spray against several accounts is its title.",
        "It was created on 2 July 2024 at 11:51 and is titled Password spray against several accounts.",
        "Password spray against several accounts is its title.",
        "Its title is Password spray against several accounts.",
        "It was created at 06:00, and Password spray against several accounts came later.",
    ],
)
def test_a_title_of_another_incident_is_left_out_and_lends_no_value(check, text: str) -> None:
    grounded = check(f"{LEAD} {text}")
    assert grounded.text == f"{LEAD} {REMOVED}"
    assert grounded.repairs == ()


@pytest.mark.requirement("GRND-1")
def test_a_pronoun_stands_for_the_incident_before_it_though_another_is_named_later(check) -> None:
    text = f"{LEAD} It was created on 2 July 2024 at 11:51, before incident 31."
    assert check(text).text == text


@pytest.mark.requirement("GRND-1")
def test_a_sentence_of_one_subject_is_still_put_right(check) -> None:
    grounded = check(f"{LEAD} It was created on 3 July 2024.")
    assert "2024-07-02 09:51:00 UTC" in grounded.text
    assert [repair.found for repair in grounded.repairs] == ["3 July 2024"]
