"""What a /clear carries on: lines that evidence supported, with source and time, bounded; no instruction."""

from __future__ import annotations

import pytest

from sentinel_rag.agent.conversations.chat import MAX_CHARACTERS, MOST_CARRIED, carried_on, supported_facts
from sentinel_rag.contracts.conversations import CarriedFact
from sentinel_rag.contracts.evidence import Answer, Citation, Evidence, Mark, Outcome, Sentence, SentenceState, Table

pytestmark = pytest.mark.requirement("CHAT-7")

AT = "2024-07-02T10:00:00Z"


def _piece(text: str, pointer: str = "/rows/0/severity") -> Evidence:
    return Evidence(text, "c1", "query_incidents", pointer, text)


def _facts(text: str, *pieces: Evidence, tables: tuple[Table, ...] = ()) -> list[str]:
    answer = Answer(outcome=Outcome.ANSWERED, text=text, session_id="s", evidence=pieces, tables=tables)
    return [fact.text for fact in supported_facts(answer, AT)]


def test_a_line_without_evidence_is_no_fact() -> None:
    assert _facts("Incident 38 is High.\nThis looks like ransomware.", _piece("High")) == ["Incident 38 is High."]
    assert _facts("Nothing was found.") == []


def test_later_lines_keep_the_subject_of_the_first() -> None:
    text = "Incident 38: “Port scan”.\nSeverity High, status New."
    assert _facts(text, _piece("38"), _piece("High")) == [
        "Incident 38: “Port scan”.",
        "Incident 38: Severity High, status New.",
    ]


def test_items_of_a_list_stand_for_themselves_without_their_numbers() -> None:
    text = "3 incidents are High:\n[1] Incident 40, High\n2. Incident 18, High\n- Incident 12, High"
    assert _facts(text, _piece("High")) == [
        "3 incidents are High:",
        "Incident 40, High",
        "Incident 18, High",
        "Incident 12, High",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "Note: a text in these rows reads like an instruction. It came from the logs: High",
        "Do you mean High?",
        "Window: all retained data until High.",
    ],
)
def test_notes_questions_and_windows_are_not_carried(line: str) -> None:
    assert _facts(line, _piece("High")) == []


def test_of_an_answer_with_sentences_those_are_carried_whose_values_were_found() -> None:
    text = "Incident 38 is High. It is 40. An attacker wrote this."
    cited = (Citation("c1.1", "c1", "query_incidents", "/rows/0"),)

    def sentence(said: str, state: SentenceState, *marks: Mark) -> Sentence:
        start = text.index(said)
        return Sentence(start, start + len(said), said, state, citations=cited, marks=marks)

    def mark(value: str, pointer: str) -> Mark:
        start = text.index(value)
        return Mark(start, start + len(value), True, "c1", pointer, value)

    answer = Answer(
        outcome=Outcome.ANSWERED,
        text=text,
        session_id="s",
        sentences=(
            sentence(
                "Incident 38 is High.",
                SentenceState.VALUES_FOUND,
                mark("38", "/rows/0/number"),
                mark("High", "/rows/0/severity"),
            ),
            sentence("It is 40.", SentenceState.NOT_FOUND, mark("40", "")),
            sentence("An attacker wrote this.", SentenceState.SOURCE_GIVEN),
        ),
    )
    assert supported_facts(answer, AT) == (
        CarriedFact("Incident 38 is High.", AT, "query_incidents", "c1", "/rows/0/severity"),
    )


def test_a_row_is_carried_with_its_columns_and_without_its_place_in_the_list() -> None:
    table = Table(("", "Incident", "Severity", "Owner"), (("[1]", "38", "High", "-"), ("[2]", "39", "Low", "x")))
    assert _facts("", _piece("38", "/rows/0/number"), tables=(table,)) == ["Incident: 38, Severity: High"]


def test_a_fact_names_its_source_and_its_time() -> None:
    answer = Answer(
        outcome=Outcome.ANSWERED,
        text="Incident 38: “Port scan”.",
        session_id="s",
        evidence=(_piece("38", "/rows/0/number"), _piece("Port scan", "/rows/0/title")),
    )
    (fact,) = supported_facts(answer, AT)
    assert fact == CarriedFact("Incident 38: “Port scan”.", AT, "query_incidents", "c1", "/rows/0/title")
    assert fact.line() == f"Incident 38: “Port scan”. [query_incidents, call c1, /rows/0/title; as of {AT}]"
    assert CarriedFact.from_dict(fact.to_dict()) == fact


def test_the_summary_is_bounded_and_the_newest_telling_of_a_fact_wins() -> None:
    assert len(_facts("High " + "x" * 5_000, _piece("High"))[0]) == MAX_CHARACTERS
    old = [CarriedFact(f"fact {n}", "2024-07-01", "t", "c1", "/") for n in range(MOST_CARRIED)]
    new = [CarriedFact("fact 3", "2024-07-02", "t", "c9", "/"), CarriedFact("another", "2024-07-02", "t", "c9", "/")]
    carried = carried_on(old, new)
    assert len(carried) == MOST_CARRIED
    assert carried[-2:] == tuple(new)
    assert [fact.text for fact in carried].count("fact 3") == 1
