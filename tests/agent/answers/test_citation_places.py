"""Where the writer put a citation is where a reader finds it, and what is written around it stays as it was."""

from __future__ import annotations

import pytest

from sentinel_rag.agent.answers.check import GrowingAnswer, check_answer
from sentinel_rag.agent.answers.evidence import ReadResults


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("**124 is High [c1.1]** and open.", "**124 is High§** and open."),
        ("**124 is High [c1.1] and open [c1.1].**", "**124 is High§ and open§.**"),
        ("**124** [c1.1] is High.", "**124**§ is High."),
        ("124 [c1.1] **is High**.", "124§ **is High**."),
        ("124 [c1.1]**is High**.", "124§ **is High**."),
        ("*124 is High [c1.1]*, 125 is Medium [c1.2].", "*124 is High§*, 125 is Medium§."),
        ("__124 is High [c1.1]__ now.", "__124 is High§__ now."),
        ("124 is High. [c1.1]", "124 is High.§"),
        ("| a | b |\n|---|---|\n| 124 [c1.1] | High [c1.1] |", "| a | b |\n|---|---|\n| 124§ | High§ |"),
        ("- **124** is High [c1.1], 125 is Medium [c1.2]", "- **124** is High§, 125 is Medium§"),
    ],
)
def test_a_citation_stays_where_it_was_put(raw: str, shown: str, evidence: ReadResults) -> None:
    found = check_answer(raw, evidence)
    places = sorted({at for sentence in found.sentences for cited in sentence.citations for at in cited.at})
    told = found.text
    for at in reversed(places):
        told = f"{told[:at]}§{told[at:]}"
    assert told == shown
    growing = GrowingAnswer(evidence)
    for letter in raw:
        growing.add(letter)
    growing.end()
    assert growing.checked == found, "however it comes"


def test_what_the_check_gave_has_no_place_of_the_writer(evidence: ReadResults) -> None:
    (sentence,) = check_answer("124 is High and has 8 alerts.", evidence).sentences
    assert sentence.citations
    assert [cited.at for cited in sentence.citations] == [()] * len(sentence.citations)
