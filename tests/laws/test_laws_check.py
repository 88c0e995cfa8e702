"""Of any answer and any cut into deltas: the stream and the whole check agree, nothing of the text is lost, marks lie
in their sentences, and a row's own words with that row's citation are never called wrong."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answer_rows import INCIDENTS, results
from law_examples import examples
from sentinel_rag.agent.answers.check import GrowingAnswer, check_answer
from sentinel_rag.agent.answers.evidence import ReadResults
from sentinel_rag.agent.answers.repair import repaired
from sentinel_rag.contracts.evidence import SentenceState

pytestmark = pytest.mark.requirement("GRND-1", "GRND-6")
EVIDENCE = ReadResults(results())
WORDS = """124 is High; [c1.1];[c1.1]; [c1.1, c2];【c1.2】;(c1.1-3);[[c1.3]];{c1.1.severity};{c9.1.x};
[High](c1.1.severity);[c1.1](c1.1.number);. ;- ;# ;[1] ;[;];(;{;c1;“;”; ;zwei Vorfälle;26. November um 23:56 UTC;é;
:;**;all ;no ;[T1003];125 has nine alerts;| ; |""".replace(";\n", ";").split(";")
ENDS = [" |\n", "|---|\n", "\n", "\n\n", ".\n", "```\n", "\u200b", "٣"]
PIECES = st.sampled_from([*WORDS, *ENDS])
ANSWERS = st.lists(PIECES | st.text(max_size=4), max_size=30).map("".join)


@settings(max_examples=examples(2000, 100))
@given(ANSWERS, st.data())
def test_a_stream_tells_what_the_whole_check_tells(raw: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=12)))
    growing = GrowingAnswer(EVIDENCE)
    told = [growing.add(raw[a:b]) for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    told.append(growing.end())
    whole = check_answer(raw, EVIDENCE)
    assert "".join(written for written, _ in told) == whole.text
    assert tuple(sentence for _, sentences in told for sentence in sentences) == whole.sentences


@settings(max_examples=examples(2000, 100))
@given(ANSWERS)
def test_sentences_and_marks_lie_in_the_text_in_their_order(raw: str) -> None:
    checked = check_answer(raw, EVIDENCE)
    last = 0
    for sentence in checked.sentences:
        assert last <= sentence.start < sentence.end <= len(checked.text)
        assert checked.text[sentence.start : sentence.end] == sentence.text
        at = last = sentence.start
        for mark in sentence.marks:
            assert at <= mark.start < mark.end <= sentence.end
            at = mark.end
        last = sentence.end


@settings(max_examples=examples(1000, 100))
@given(ANSWERS)
def test_a_text_without_citations_is_written_as_it_is(raw: str) -> None:
    bare = re.sub(r"c(?=\d)", "k", raw)
    assert check_answer(bare, EVIDENCE).text == bare


@settings(max_examples=examples(1000, 100))
@given(ANSWERS, st.text(max_size=40))
def test_a_reply_that_asks_for_nothing_changes_nothing(raw: str, reply: str) -> None:
    assert repaired(raw, check_answer(raw, EVIDENCE), re.sub(r"\d", "", reply)) == raw


@given(
    st.sampled_from(range(3)),
    st.sets(st.sampled_from(["title", "severity", "status", "owner", "created_time"]), min_size=1),
)
def test_a_rows_own_cells_are_never_called_wrong(at: int, columns: set[str]) -> None:
    row = INCIDENTS[at]
    said = ", ".join(f"{column.replace('_', ' ')} {row[column]}" for column in sorted(columns) if column in row)
    (sentence,) = check_answer(f"Incident {row['number']}: {said} [c1.{at + 1}].", EVIDENCE).sentences
    assert sentence.state in (SentenceState.VALUES_FOUND, SentenceState.SOURCE_GIVEN), sentence.reason
