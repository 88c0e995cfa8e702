"""A tool result is cut on row boundaries and says so; every answer of the cutter holds its limit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sentinel_rag.agent.history import Budget, History, cut_lines, cut_text
from sentinel_rag.agent.models.port import AssistantMessage, ModelToolCall, SystemMessage, ToolResultMessage
from sentinel_rag.agent.tokens import EstimatingCounter, TokenCounter, ready_counter

pytestmark = pytest.mark.requirement("CHAT-5")

COUNTER = EstimatingCounter()
ROWS = [f'{{"number": {place}, "title": "Suspicious sign-in", "severity": "High"}}' for place in range(1, 51)]


def marked(rows: list[str]) -> str:
    return "\n".join(["incidents:", *rows, "end"])


def test_rows_that_fit_stay_whole_and_nothing_is_said() -> None:
    assert cut_lines(marked(ROWS[:3]), 4_000, COUNTER) == marked(ROWS[:3])


def test_rows_over_the_limit_are_left_out_whole_and_counted() -> None:
    cut = cut_lines(marked(ROWS), 400, COUNTER)
    shown = len(cut.splitlines()) - 3
    assert 0 < shown < 50
    assert cut == marked([*ROWS[:shown], f"... showing first {shown} of 50 lines"])
    assert COUNTER.count(cut) <= 400


def test_one_row_that_is_too_long_alone_is_cut_inside_with_a_mark() -> None:
    cut = cut_lines(marked(["x" * 100_000, "y"]), 300, COUNTER)
    assert " ... (cut)\n... showing first 1 of 2 lines" in cut
    assert COUNTER.count(cut) <= 300


def test_no_rows_are_no_text() -> None:
    assert cut_lines("", 300, COUNTER) == ""


def test_a_text_of_rows_keeps_the_marks_around_it() -> None:
    text = "\n".join(["<tool_result>", *ROWS, "</tool_result>"])
    lines = cut_lines(text, 300, COUNTER).splitlines()
    assert (lines[0], lines[-1]) == ("<tool_result>", "</tool_result>")
    assert lines[1:-2] == ROWS[: len(lines) - 3]
    assert lines[-2] == f"... showing first {len(lines) - 3} of 50 lines"
    assert cut_lines("no lines " * 500, 50, COUNTER).endswith(" ... (cut)")


@pytest.mark.parametrize("counted", [EstimatingCounter, ready_counter], ids=["estimated", "exact"])
@pytest.mark.parametrize("limit", [300, 1_000, 4_000])
def test_what_the_cutter_leaves_is_never_cut_again_in_the_history(
    counted: Callable[[], TokenCounter], limit: int
) -> None:
    counter = counted()
    cut = cut_lines("\n".join(["<tool_result>", "coverage: {}", *ROWS * 10, "</tool_result>"]), limit, counter)
    history = History(Budget(tool_result=limit), counter)
    history.begin("which incidents?")
    history.add(AssistantMessage("", (ModelToolCall("a", "query_incidents", {}, "{}"),)))
    history.add(ToolResultMessage("a", cut))
    assert history.fitted(SystemMessage(""), ()).messages[-1] == ToolResultMessage("a", cut)


@pytest.mark.parametrize("text", ["", "short", "a b c " * 500, "\u2028" * 5_000, " " * 5_000 + "x"])
@pytest.mark.parametrize("limit", [6, 50, 5_000])
def test_a_text_is_cut_to_its_limit(text: str, limit: int) -> None:
    cut = cut_text(text, limit, COUNTER)
    assert COUNTER.count(cut) <= limit
    assert cut == text or (cut.endswith(" ... (cut)") and text.startswith(cut.removesuffix(" ... (cut)")))
