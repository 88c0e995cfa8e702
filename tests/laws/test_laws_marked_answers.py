"""Laws of what is set into an answer's text: whatever is said of its sentences, every surface shows each of its
characters once and each note once, and none fails."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings
from rich.console import Console

from law_examples import examples
from sentinel_rag.contracts.evidence import Answer, Citation, CitedBy, Mark, Outcome, Sentence, SentenceState
from sentinel_rag.contracts.handles import fill_in, fill_in_answer, handles_in
from sentinel_rag.surfaces.cli._render import print_answer
from sentinel_rag.surfaces.rendering.markdown import BELOW, NOTE, parsed_answer, parsed_without_links, with_marks
from sentinel_rag.surfaces.rendering.visible import found_alone, marked, safe, safe_with_places
from sentinel_rag.surfaces.reports import Head, ReportTurn, as_evidence, as_html, as_markdown, hand_over

PARTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        [
            *(
                "Incident 124 is High. ",
                "**bold** ",
                "`code` ",
                "a\\*b ",
                "- item\n",
                "1. one\n",
                "## Title\n",
                "> said\n",
            ),
            *(
                "\n\n",
                "\n",
                "| a | b |\n|---|---|\n| 1 | x\\|y |\n| 2 | z |\n",
                "```\nfence 1\n```\n",
                "[l](http://a.example) ",
            ),
            *(
                "https://b\u00fccher.example/x ",
                "主机 七 ",
                "cafe\u0301 ",
                "\x1b[31m",
                "\u202e",
                "👩\u200d💻 ",
                "ˢ¹ {s1} ",
            ),
            *("http://www.c.example:80/ ", "www.d.example "),
            *("<script>x</script> ", "\r\n", "\x00", "![i](http://b.example) ", "***", "_a_ ", "~~s~~ "),
        ]
    ),
)
TEXTS = st.lists(PARTS, max_size=10).map("".join)
PLACES = st.integers(-5, 200)
WORDS = st.one_of(st.text(max_size=10), st.sampled_from(["\x1b]0;x\x07", "<b>", "9 is in no row"]))
MARKS = st.builds(Mark, PLACES, PLACES, st.booleans(), st.just("c1"), st.sampled_from(["", "/rows/0/a", "/x"]), WORDS)
CITATIONS = st.builds(
    Citation, st.sampled_from(["c1", "c1.1"]), st.just("c1"), WORDS, st.sampled_from(["", "/rows/0", "/rows/1"])
)
SENTENCES = st.lists(
    st.builds(
        Sentence,
        PLACES,
        PLACES,
        WORDS,
        st.sampled_from(SentenceState),
        WORDS,
        st.lists(CITATIONS, max_size=3).map(tuple),
        st.lists(MARKS, max_size=3).map(tuple),
        st.sampled_from(CitedBy),
    ),
    max_size=6,
)


FOUND = Sentence(0, 0, "", SentenceState.VALUES_FOUND, "", (), (), CitedBy.WRITER)


def answer_of(text: str, sentences: list[Sentence]) -> Answer:
    return Answer(outcome=Outcome.ANSWERED, text=text, session_id="s", sentences=tuple(sentences))


DRAWN = "─━│┃▌"
"""Drawn once a line, as the bar of a quotation is: how many there are depends on where the lines are broken."""


def in_order(words: str, within: str) -> bool:
    """Whether every visible character of `words` stands in `within` too, in that order."""
    rest = iter(within)
    return all(each in rest for each in words if each.isprintable() and not each.isspace() and each not in DRAWN)


@given(text=TEXTS, sentences=SENTENCES)
@settings(max_examples=examples(3_000, 100), deadline=None)
def test_spans_and_notes_cut_a_text_and_lose_nothing_of_it(text: str, sentences: list[Sentence]) -> None:
    found = marked(text, sentences, lambda citation: citation.ref)
    assert found.text == safe(text) == safe_with_places(text)[0]
    assert "".join(piece for piece, _ in found.pieces(0, len(found.text))) == found.text
    assert all(0 <= one.start < one.end <= len(found.text) for one in found.spans)
    assert all(one.end <= other.start for one, other in zip(found.spans, found.spans[1:], strict=False))
    assert all(0 <= note.at <= len(found.text) for note in found.notes)
    for parse in (parsed_answer, parsed_without_links):
        before = parse(found.text)
        after = with_marks(before, found)
        said = [[child.content for child in each.children or ()] or [each.content] for each in before]
        flat = [child for each in after for child in (each.children or (each,))]
        assert "".join("".join(parts) for parts in said) == "".join(token.content for token in flat)
        notes = [token.meta[NOTE] for token in flat if token.type == NOTE and BELOW not in token.meta]
        assert notes == list(found.notes)


@given(text=TEXTS, sentences=SENTENCES, width=st.sampled_from([20, 60, 80]))
@example(text=">ˢIncident 124 is High. ", sentences=[FOUND], width=20)
@settings(max_examples=examples(1_500, 100), deadline=None)
@pytest.mark.requirement("SURF-5")
def test_a_terminal_and_a_pipe_show_all_of_an_answer_whatever_is_said_of_it(
    text: str, sentences: list[Sentence], width: int
) -> None:
    def printed(answer: Answer, terminal: bool) -> str:
        written = StringIO()
        target = Console(file=written, force_terminal=terminal, width=width, no_color=True, color_system=None)
        print_answer(target, answer)
        return written.getvalue()

    for terminal in (False, True):
        bare, shown = (printed(answer_of(text, found), terminal) for found in ([], sentences))
        if terminal and "…" in shown and "|" in text:
            continue  # a column of a table is narrower than a word of it
        assert in_order(bare.replace("ˢ", "\\u02e2") if sentences else bare, shown)
        assert not re.search("[\x07\u202e\x9b]|\x1b\\]", shown)


@given(text=TEXTS, sentences=SENTENCES)
@example(text="¸\u200cஎ", sentences=[replace(FOUND, end=1, citations=(Citation("c1", "c1", "", ""),))])
@settings(max_examples=examples(1_000, 60), deadline=None)
@pytest.mark.requirement("SURF-5")
def test_a_report_shows_all_of_an_answer_whatever_is_said_of_it(text: str, sentences: list[Sentence]) -> None:
    def reported(found: list[Sentence]) -> list[str]:
        turn = ReportTurn(1, "2026-11-26T23:20:00Z", "What?", "answered", answer=answer_of(text, found).to_dict())
        at = datetime(2026, 11, 27, tzinfo=UTC)
        report = hand_over(Head(conversation_id="s", exported_by="d", exported_at=at, timezone="UTC"), [turn], [])
        assert as_evidence(report).count("sentence") >= len(found)
        page = as_html(report)
        facts = page[page.index("<h2>Annex: questions") : page.index("<h2>Annex: all open points")]
        file = as_markdown(report).replace("&nbsp;", "")
        written = file[file.index("## Annex: questions") : file.index("## Annex: all open points")]
        return [html.unescape(re.sub("<[^>]*>", "", facts)), re.sub(r"[\\*]", "", written)]

    for bare, shown in zip(reported([]), reported(sentences), strict=True):
        assert in_order(bare, shown)
        # A mark never undoes the escape of an address that a viewer would make a link of.
        assert bool(re.search(r"https?:/|\bwww\.", shown)) <= bool(re.search(r"https?:/|\bwww\.", bare))


@given(text=TEXTS, sentences=SENTENCES)
@settings(max_examples=examples(1_000, 100), deadline=None)
def test_hiding_leaves_no_sentence_that_was_not_found_and_says_how_many(text: str, sentences: list[Sentence]) -> None:
    left, hidden = found_alone(answer_of(text, sentences))
    assert hidden == len(sentences) - len(left.sentences)
    if not hidden:
        assert left.text == text
    assert in_order(left.text, text)
    marked(left.text, left.sentences, lambda citation: citation.ref)


@given(parts=st.lists(st.sampled_from(["It ran ", "⟦r1#/a⟧", "⟦r2#/b⟧", ". ", "x", "'s ", "\n"]), max_size=12))
@settings(max_examples=examples(1_000, 100), deadline=None)
def test_places_move_with_the_values_that_are_drawn_in(parts: list[str]) -> None:
    text = "".join(parts)
    values = dict.fromkeys(handles_in(text), "a much longer value")
    starts = [sum(map(len, parts[:number])) for number in range(len(parts))]
    marks = tuple(Mark(at, at + len(part), True) for at, part in zip(starts, parts, strict=True))
    whole = Sentence(0, len(text), text, SentenceState.VALUES_FOUND, marks=marks)
    filled = Answer.from_dict(fill_in_answer(answer_of(text, [whole]).to_dict(), values))
    assert filled.text == fill_in(text, values)
    [sentence] = filled.sentences
    assert filled.text[sentence.start : sentence.end] == sentence.text == filled.text
    said = [filled.text[mark.start : mark.end] for mark in sentence.marks]
    assert "".join(said) == filled.text
    assert all(one in (part, "a much longer value") for one, part in zip(said, parts, strict=True))
