"""Answers that are longer than the window: the beginning and what stands below it at once, the rest page by page."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from sentinel_rag.contracts.evidence import Answer, Outcome, Progress, Table
from sentinel_rag.surfaces.cli._answer_pages import AnswerPages
from sentinel_rag.surfaces.cli._render import Display, print_answer
from sentinel_rag.surfaces.cli._status_line import TurnDisplay

ROWS = tuple((str(number), "High" if number % 2 else "Low", f"Sign-in of user-{number}") for number in range(1, 61))
LONG = Answer(
    outcome=Outcome.ANSWERED,
    text="60 incidents match.\nBy severity: High 30, Low 30.",
    session_id="s1234567",
    tables=(Table(("Incident", "Severity", "Title"), ROWS, "Incidents"),),
    footnote=("query_incidents · 60 of 60 rows", "audit a-1"),
    suggestions=("Only the high ones",),
)


def terminal(height: int = 24, width: int = 80) -> Console:
    return Console(
        file=io.StringIO(), force_terminal=True, width=width, height=height, color_system=None, markup=False,
        legacy_windows=False, _environ={},
    )  # fmt: skip


def taken(target: Console) -> list[str]:
    """The lines that were printed since the last time."""
    assert isinstance(target.file, io.StringIO)
    written = target.file.getvalue()
    target.file = io.StringIO()
    return [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in written.splitlines()]


@pytest.mark.requirement("SURF-1")
@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("height", [10, 24, 50])
def test_no_line_of_an_answer_is_lost_or_told_twice_over_its_pages(height: int, width: int) -> None:
    whole = terminal(1_000, width)
    print_answer(whole, LONG, Display(more="/more"))
    expected = [line for line in taken(whole) if line.strip()]
    paged = terminal(height, width)
    pages = AnswerPages.begun(paged, LONG, Display(more="/more"))
    first = taken(paged)
    assert len(first) < max(height, 18)
    assert first[0] == "60 incidents match."
    assert "audit a-1" in first  # where it comes from is told with the beginning
    seen = list(first)
    for _ in range(200):
        pages.print_next(paged)
        page = taken(paged)
        assert len(page) < max(height, 18)
        if page == ["There is no more of the last answer."]:
            break
        seen += page
    shown = [line for line in seen if re.search(r"user-\d+|match\.|By severity|audit|Only the high", line)]
    wanted = [line for line in expected if re.search(r"user-\d+|match\.|By severity|audit|Only the high", line)]
    assert sorted(shown) == sorted(wanted)
    assert [line for line in shown if "user-" in line] == [line for line in wanted if "user-" in line]


@pytest.mark.requirement("SURF-1")
def test_a_table_that_goes_on_has_its_columns_named_again() -> None:
    paged = terminal()
    pages = AnswerPages.begun(paged, LONG, Display(more="/more"))
    told = next(line for line in taken(paged) if line.startswith("..."))
    assert re.fullmatch(r"\.\.\. \d+ more lines: /more", told)
    pages.print_next(paged)
    heading, rule, row, *_ = taken(paged)
    assert heading.split() == ["Incident", "┃", "Severity", "┃", "Title"]
    assert set(rule) <= set("━╇")
    assert "user-" in row


@pytest.mark.requirement("SURF-1")
def test_a_table_in_the_text_of_a_model_has_its_columns_named_again_too() -> None:
    rows = "\n".join(f"| {number} | High |" for number in range(40))
    answer = Answer(
        outcome=Outcome.ANSWERED, text=f"The list:\n\n| Incident | Severity |\n|---|---|\n{rows}", session_id="s1234567"
    )
    paged = terminal()
    pages = AnswerPages.begun(paged, answer, Display(more="/more"))
    taken(paged)
    pages.print_next(paged)
    assert taken(paged)[0].split() == ["Incident", "Severity"]


def test_an_answer_that_fits_is_printed_as_ever() -> None:
    answer = Answer(outcome=Outcome.ANSWERED, text="No incident is open.", session_id="s1234567", footnote=("audit a",))
    paged, whole = terminal(), terminal()
    AnswerPages.begun(paged, answer, Display(more="/more")).print_next(whole)
    assert taken(whole) == ["There is no more of the last answer."]
    print_answer(whole, answer)
    assert taken(paged) == taken(whole)


@pytest.mark.requirement("CHAT-14")
def test_what_is_written_stands_above_the_status_line_and_goes_where_it_is_taken_back() -> None:
    display = TurnDisplay("Thinking...", shows_text=True, clock=lambda: 0.0)
    target = terminal()
    display.show(Progress("Writing the answer...", 1.0, written="Incident **31** is High."))
    display.show(Progress("Writing the answer...", 2.0, written=" It is\x1b[2J New."))
    target.print(display)
    text, status = taken(target)
    assert text == "Incident 31 is High. It is\\x1b[2J New."
    assert "Writing the answer... 2.0 s" in status
    display.show(Progress("The answer goes another way...", 3.0, withdrawn=True))
    target.print(display)
    assert ["The answer goes another way... 3.0 s" in line for line in taken(target)] == [True]


@pytest.mark.requirement("CHAT-14")
def test_a_text_that_is_higher_than_the_window_shows_its_last_lines() -> None:
    display = TurnDisplay("Thinking...", shows_text=True, clock=lambda: 0.0)
    target = terminal(height=12)
    display.show(Progress("Writing...", 1.0, written="\n\n".join(f"Sentence {number}." for number in range(50))))
    target.print(display)
    lines = taken(target)
    assert len(lines) < 12
    assert re.fullmatch(r"  \.\.\. \d+ lines above", lines[0])
    assert lines[-2] == "Sentence 49."


def test_nothing_is_drawn_of_a_text_that_goes_into_a_pipe() -> None:
    display = TurnDisplay("Thinking...", clock=lambda: 0.0)
    target = terminal()
    display.show(Progress("Writing...", 1.0, written="Incident 31 is High."))
    target.print(display)
    assert len(taken(target)) == 1
