"""Laws of the text that is sent for a freeform query: it keeps what was checked, and always ends in its cap."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from sentinel_rag.agent.offline.analyst import kql_in
from sentinel_rag.sentinel.freeform_query import _NOT_CODE, bounded

PARTS = (
    *("SigninLogs", " ", "\n", "| where a == ", "'x'", '"y // z"', "@'v''w'", "// c", "/", ";", "|", "render"),
    *("| render", " timechart", "```", "~~~", "\\", '"', "'", "@", "h", "\t", "\r\n", "\u2028", "é", "let a = 1"),
)
PIECES = st.lists(st.sampled_from(PARTS), max_size=14).map("".join)
TEXTS = PIECES | st.text(max_size=80)


@given(TEXTS)
@example("T | render x // | render y")
@example("T ;// c")
@example("```; | render")
def test_what_is_sent_is_a_beginning_of_what_was_written_and_a_cap_on_a_line_of_its_own(kql: str) -> None:
    sent = bounded(kql, 7)
    head, _, cap = sent.rpartition("\n")
    assert cap == "| take 8"
    assert kql.startswith(head)


QUOTED = st.sampled_from(("'x'", '"; | y"', "@'z;'", "```| render z```"))
CUT_OFF = st.sampled_from((";", " ; ;", "| render y", " | render y with (title='a|b;c') ;"))


@given(QUOTED, CUT_OFF)
def test_a_quoted_text_before_what_is_cut_off_stays_whole(quoted: str, cut_off: str) -> None:
    query = f"T\n| where a == {quoted}"
    assert bounded(query + cut_off, 7) == f"{query}\n| take 8"


@given(TEXTS)
def test_only_a_chart_semicolons_and_blanks_are_left_out(kql: str) -> None:
    head = bounded(kql, 7).rpartition("\n")[0]
    blanked = _NOT_CODE.sub(lambda text: " " * len(text[0]), kql)
    left_out = blanked[len(head) :].strip("; \t\r\n")
    assert left_out == "" or re.fullmatch(r"\|\s*render\b[^|]*", left_out)


@given(st.text(max_size=300) | PIECES)
def test_any_question_is_words_or_a_query_that_stands_in_it(question: str) -> None:
    kql = kql_in(question)
    assert kql is None or kql in question
