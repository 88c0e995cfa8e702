"""Lines written out of facts: each with its values, the rows that it cites, and its place in the answer."""

from __future__ import annotations

from datetime import UTC

import pytest

from sentinel_rag.agent.answers.renderer import say_partial
from sentinel_rag.agent.answers.writer import AnswerWriter, Echo, Line, phrase
from sentinel_rag.agent.row_text import show_duration
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Mark, SentenceState
from sentinel_rag.contracts.query_results import CodedNote
from sentinel_rag.contracts.tool_calls import Succeeded, ToolCall
from sentinel_rag.language.notes import note
from sentinel_rag_testing.scripted_gateway import rows_result

ROWS = [
    {"number": 55, "severity": "High", "title": "Port scan"},
    {"number": 54, "severity": "Low", "title": "Sign-in"},
    {"number": 53, "severity": "Low", "title": "Sign-in"},
]
CALL = ToolCall("c4", "s", "query_incidents", {"limit": 7})
RUN = ToolRun(CALL, Succeeded(CALL, rows_result(ROWS, total=85)))
DOSSIER = {"number": 7, "title": "x", "timeline": [], "alerts": [{"name": "a"}, {"name": "b"}], "comments": []}
DETAIL_CALL = ToolCall("c5", "s", "get_incident_detail", {"incident": "7"})
DETAIL = ToolRun(DETAIL_CALL, Succeeded(DETAIL_CALL, rows_result([DOSSIER])))

pytestmark = pytest.mark.requirement("GRND-4")


def refs(writer: AnswerWriter) -> list[list[str]]:
    return [[citation.ref for citation in sentence.citations] for sentence in writer.sentences()]


@pytest.mark.requirement("GRND-2")
def test_a_sentence_is_born_with_its_values_their_places_and_their_row() -> None:
    writer = AnswerWriter(UTC)
    writer.fixed("Here it is.")
    writer.say("Incident {} is {}.", writer.number(RUN, "/rows/0/number"), writer.number(RUN, "/rows/0/severity"))
    own, told = writer.sentences()
    assert (own.text, own.state, own.citations) == ("Here it is.", SentenceState.OWN_WORDS, ())
    assert writer.text[told.start : told.end] == told.text == "Incident 55 is High."
    assert told.state is SentenceState.VALUES_FOUND
    assert [(each.ref, each.call_id, each.tool, each.pointer) for each in told.citations] == [
        ("c4.1", "c4", "query_incidents", "/rows/0")
    ]
    assert told.marks == (
        Mark(21, 23, True, "c4", "/rows/0/number", 55),
        Mark(27, 31, True, "c4", "/rows/0/severity", "High"),
    )
    assert [writer.text[mark.start : mark.end] for mark in told.marks] == ["55", "High"]
    assert [(piece.pointer, piece.value) for piece in writer.evidence] == [
        ("/rows/0/number", 55),
        ("/rows/0/severity", "High"),
    ]


def test_a_value_of_the_whole_result_cites_the_result() -> None:
    writer = AnswerWriter(UTC)
    writer.say("{} incidents match.", writer.number(RUN, "/coverage/rows_total"))
    assert (writer.text, refs(writer)) == ("85 incidents match.", [["c4"]])


def test_a_count_of_ours_cites_the_rows_that_were_counted_each_once() -> None:
    writer = AnswerWriter(UTC)
    places = [(RUN, "/rows/1/severity"), (RUN, "/rows/2/severity"), (RUN, "/rows/2/severity")]
    writer.say("{} are Low.", writer.tally(places))
    (sentence,) = writer.sentences()
    assert (writer.text, refs(writer)) == ("2 are Low.", [["c4.2", "c4.3"]])
    assert sentence.marks == (Mark(0, 1, True),)


def test_the_length_of_a_list_of_rows_cites_these_rows() -> None:
    writer = AnswerWriter(UTC)
    writer.say("It has {} alerts.", writer.count(DETAIL, "/rows/0/alerts"))
    assert (writer.text, refs(writer)) == ("It has 2 alerts.", [["c5.2", "c5.3"]])


def test_a_sentence_that_says_none_rests_on_the_result_and_tells_how_far_was_looked() -> None:
    writer = AnswerWriter(UTC)
    writer.say_none([RUN], "No incident is called {}.", Echo("x"))
    none, looked = writer.sentences()
    assert (none.state, refs(writer)) == (SentenceState.VALUES_FOUND, [["c4"], ["c4"]])
    assert looked.text == "I looked at 3 of 85 rows."
    whole = AnswerWriter(UTC)
    whole.say_none([DETAIL], "Nobody has commented on it.")
    assert whole.text == "Nobody has commented on it."


def test_values_keep_their_places_inside_a_phrase_and_behind_an_opening() -> None:
    writer = AnswerWriter(UTC)
    count = writer.tally([(RUN, "/rows/0/number")])
    writer.say("They are {}.", [phrase("{} (in {} row)", writer.number(RUN, "/rows/0/severity"), count)])
    writer.lines[0] = writer.lines[0].opened_with("Yes. ")
    (sentence,) = writer.sentences()
    assert sentence.text == "Yes. They are High (in 1 row)."
    assert [sentence.text[mark.start : mark.end] for mark in sentence.marks] == ["High", "1"]


def test_text_of_others_without_a_value_of_its_own_has_a_source() -> None:
    writer = AnswerWriter(UTC)
    writer.say("> step", cited=[(RUN, "/rows/0/title")])
    assert writer.sentences()[0].state is SentenceState.SOURCE_GIVEN
    assert refs(writer) == [["c4.1"]]


def test_a_figure_cannot_be_written_without_a_result() -> None:
    with pytest.raises(AssertionError, match="no evidence"):
        AnswerWriter(UTC).say("There are 12 alerts.")


def test_a_value_that_is_missing_is_said_to_be_missing() -> None:
    writer = AnswerWriter(UTC)
    writer.say("Owner {}.", writer.name(RUN, "/rows/0/owner"))
    assert writer.lines[0] == Line("Owner not recorded.")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "under a second"), (59, "59 seconds"), (60, "1 minute"), (3661, "1 hour 1 minute"), (90000, "1 day 1 hour"),
     (86400 * 40 + 59, "40 days 59 seconds")],
)  # fmt: skip
def test_durations_in_words(seconds: float, words: str) -> None:
    assert show_duration(seconds) == words


@pytest.mark.parametrize(("about", "told"), [((), True), (("closed",), True), (("owner",), False)])
def test_a_note_is_shown_by_its_code_whatever_it_says(about: tuple[str, ...], told: bool) -> None:
    notes = (
        CodedNote("Counted by this and that.", "placed_by"),
        note("closed_and_open_again", numbers=[7]),
        "Incidents are placed by nobody.",
    )
    writer = AnswerWriter(UTC)
    say_partial(writer, ToolRun(CALL, Succeeded(CALL, rows_result(ROWS, notes=notes))), about)
    assert [(table.folded, table.rows) for table in writer.tables] == [(True, (("Counted by this and that.",),))]
    short = "Note: Incident 7 carries a closing time but the newest version is not closed."
    assert (short in writer.text) is told
    assert "closed once and open again" not in writer.text
    assert "Note: Incidents are placed by nobody." in writer.text
