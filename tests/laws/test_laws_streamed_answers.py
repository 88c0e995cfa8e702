"""Laws of answers that are shown while they are written: what was shown is the beginning of what the check makes of the
whole, however the text came in pieces, and however it goes on."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from law_examples import examples
from sentinel_rag.agent.answers.check import CheckedAnswer, check_answer
from sentinel_rag.agent.answers.evidence import ReadResults
from sentinel_rag.agent.answers.results import Results, numbered
from sentinel_rag.agent.model_analyst.answer_text import Draft, shown, without_reasoning
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Sentence
from sentinel_rag.contracts.tool_calls import Succeeded, ToolCall
from sentinel_rag_testing.scripted_gateway import rows_result

pytestmark = [pytest.mark.requirement("CHAT-14"), pytest.mark.requirement("GRND-1")]
ROWS = [
    {"number": 31, "title": "Password spray", "severity": "High", "status": "New", "alert_count": 2},
    {"number": 40, "title": "Mass download", "severity": "Low", "status": "Closed", "owner": "m.keller"},
]
SENTENCES = (
    *("Incident 31 is High [c1.1].", "Incident 31 is Low [c1.1].", "It has 2 alerts [c1.1].", "It has 9 alerts."),
    *("The severity is High.", "It is Closed.", "I closed it.", "2 incidents were found [c1].", "All are closed."),
    *("J.doe owns it.", "Three hosts were hit:", "These are 2 hosts:", "See e.g. incident 40, a Low one.", "Really?!"),
    *("Incident 40 (“Mass download. Now”) is Low.", "Look at http://e.example/a.b.", "[Here](http://e.example) it is"),
    *("Its owner is `m.keller` [c1.2].", "**Incident 31** is High.", "The address is 10.0.0.5.", "No. 40."),
)  # fmt: skip
BLOCKS = (
    *("- **Incident:** 31\n- **Severity:** Low", "- Severity: High\n- Number: 31", "1. Incident 31\n2. Incident 40"),
    *("| Incident | Severity |\n|---|---|\n| 31 | Low |\n| 4711 | High |", "## Incident 40", "> Incident 31 is Low."),
    *("```kql\nSigninLogs\n\n| take 5\n```", "~~~\nincident: 31\nseverity: Low", "- ws-14\n- ws-15", "---"),
)
MARKS = (
    *("|", "**", "`", "```", "\n", "\r\n", "  ", "“", "”", '"', "(", ")", "[1] ", "⟦r1#/x⟧", "<b", "<think>"),
    *("</think>", "\u200b", "\x1b[31m", "İ", "＂", "－ ", "(corrected)", ". ", "! ", ": ", "it ", "A", "12", "\u2028"),
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Paragraphs of sentences that results hold or do not, blocks, and marks that break them at any place."""
    written: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.integers(0, 3)) == 0:
            written.append(draw(st.sampled_from(BLOCKS)))
        else:
            parts = draw(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=3))
            if draw(st.booleans()):
                parts.insert(draw(st.integers(0, len(parts))), draw(st.sampled_from(MARKS)))
            written.append(draw(st.sampled_from((" ", " ", "\n"))).join(parts))
    return draw(st.sampled_from(("\n\n", "\n\n", "\n", " "))).join(written)


def evidence_of() -> ReadResults:
    results = Results()
    call = ToolCall("c1", "s", "query_incidents")
    results.add(numbered(ToolRun(call, Succeeded(call, rows_result(ROWS)))))
    return ReadResults(results, zone=ZoneInfo("UTC"), said=[])


EVIDENCE = evidence_of()


def whole(text: str) -> CheckedAnswer:
    return check_answer(shown(without_reasoning(text)), EVIDENCE)


def streamed(text: str, sizes: list[int]) -> tuple[list[str], list[Sentence]]:
    """What is shown of `text`, piece by piece, and told of its sentences while it comes in pieces of these sizes."""
    draft = Draft(EVIDENCE)
    pieces: list[str] = []
    told: list[Sentence] = []
    at = turn = 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        piece, sentences = draft.add(text[at : at + size])
        pieces += [piece] if piece else []
        told += sentences
        at, turn = at + size, turn + 1
    return pieces, told


@given(texts(), st.lists(st.integers(1, 30), min_size=1, max_size=4))
@settings(max_examples=examples(600, 60), deadline=None)
def test_what_is_shown_on_the_way_is_the_beginning_of_the_checked_answer(text: str, sizes: list[int]) -> None:
    pieces, told = streamed(text, sizes)
    answer = whole(text)
    assert answer.text.startswith("".join(pieces).rstrip())
    assert list(answer.sentences[: len(told)]) == told


@given(texts(), st.integers(0, 400), st.lists(st.integers(1, 30), min_size=1, max_size=4))
@settings(max_examples=examples(300, 25), deadline=None)
def test_what_is_shown_does_not_depend_on_how_the_text_goes_on(text: str, end: int, sizes: list[int]) -> None:
    """Another model may write on from any place: what a person has seen by then stays true of the other answer."""
    begun = "".join(streamed(text[:end], sizes)[0]).rstrip()
    assert whole(text[:end]).text.startswith(begun)
    assert whole(text).text.startswith(begun)


@pytest.mark.parametrize("size", [1, 7, 60])
def test_sentences_tables_and_lists_come_before_the_end(size: int) -> None:
    text = "\n\n".join(
        (
            "Incident 31 is High [c1.1]. It has 2 alerts [c1.1]. Incident 4711 is Low [c1.1].",
            "| Incident | Severity |\n|---|---|\n| 31 | High [c1.1] |",
            "- Incident 40 is Low [c1.2].\n- It is Closed [c1.2].",
            "That is all. The end is open",
        )
    )
    pieces, told = streamed(text, [size])
    assert len(pieces) >= (6 if size < 20 else 3)
    assert "".join(pieces) == whole(text).text.removesuffix(" The end is open")
    assert len(told) >= 5
