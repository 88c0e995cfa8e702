"""What a result is about: what it, or what it was computed from, was asked for, and what happened in its window."""

from __future__ import annotations

from dataclasses import replace

import pytest

from answer_rows import DOSSIER, INCIDENTS, computed, read
from sentinel_rag.agent.answers.check import check_answer
from sentinel_rag.agent.answers.evidence import ReadResults
from sentinel_rag.agent.answers.results import Result, Results
from sentinel_rag.contracts.evidence import SentenceState

pytestmark = pytest.mark.requirement("GRND-1", "GRND-5")
FOUND, NOT = SentenceState.VALUES_FOUND, SentenceState.NOT_FOUND


def _evidence() -> ReadResults:
    def dossier(ref: str, number: int) -> Result:
        result = read(ref, "get_incident_detail", [{**DOSSIER[0], "number": number}])
        return replace(result, arguments={"incident": str(number)})

    signins = read("c5", "run_kql_query", [{"IPAddress": "198.51.100.9", "Failures": 1}])
    window = {"start": "2026-11-28T06:30:00Z", "end": "2026-11-28T07:30:00Z"}
    results = Results()
    for result in (
        read("c1", "query_incidents", INCIDENTS),
        dossier("c2", 124),
        dossier("c3", 126),
        computed("c4", {"value": "10.20.0.26", "rows": 2}, operands=("c2", "c3"), op="intersection"),
        replace(signins, coverage={**signins.coverage, "window": window}),
        replace(
            read("c6", "user_history", [{"ResultType": "50126", "Failures": 3}]),
            arguments={"user": "siobhan@woodgrove.example"},
        ),
        computed("c7", {"ResultType": "50126", "count": 3}, {"ResultType": "0", "count": 9}, operands=("c6",)),
        computed("c8", {"count": 3, "of": 12}, operands=("c7",)),
    ):
        results.add(result)
    return ReadResults(results)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (FOUND, "124 and 126 share the address 10.20.0.26 [c4.1]."),
        (FOUND, "Vorfall 124 und Vorfall 126 haben 10.20.0.26 gemeinsam [c4.1]."),
        (NOT, "124 and 125 share the address 10.20.0.26 [c4.1]."),
        (FOUND, "Around 125 there was 1 failure, from 198.51.100.9 [c5.1]."),
        (NOT, "Around 126 there was 1 failure, from 198.51.100.9 [c5.1]."),
        (FOUND, "siobhan@woodgrove.example had 3 failures with 50126 [c7.1]."),
        (FOUND, "Of the rows of siobhan@woodgrove.example 3 of 12 are such [c8.1]."),
        (NOT, "asa.oberg@woodgrove.example had 3 failures with 50126 [c7.1]."),
    ],
)
def test_a_result_is_about_what_it_was_asked_for(state: SentenceState, text: str) -> None:
    sentence = check_answer(text, _evidence()).sentences[-1]
    assert sentence.state is state, sentence.reason


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (FOUND, "[4] 124 | High | Active [c1.1]"),
        (FOUND, "**[4]** 124 is High [c1.1]."),
        (NOT, "124 has 4 alerts [c1.1]."),
        (NOT, "[4] 124 has 9 alerts [c1.1]."),
    ],
)
def test_the_number_of_a_list_is_no_value(state: SentenceState, text: str) -> None:
    sentence = check_answer(text, _evidence()).sentences[-1]
    assert sentence.state is state, sentence.reason


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (FOUND, "The median is 13 hours [c9.1]."),
        (FOUND, "The median is 46800 seconds [c9.1]."),
        (NOT, "The median is 14 hours [c9.1]."),
    ],
)
def test_a_computed_duration_is_told_in_any_unit(state: SentenceState, text: str) -> None:
    evidence = _evidence()
    evidence.results.add(computed("c9", {"median": 46800, "rows": 18, "minutes": 780, "hours": 13}, op="median"))
    sentence = check_answer(text, evidence).sentences[-1]
    assert sentence.state is state, sentence.reason
