"""An answer on the terminal, whole and page by page; no field of it sends a terminal what it would obey (SURF-5)."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import fields, replace
from io import StringIO

import pytest
from rich.console import Console

from sentinel_rag.contracts.evidence import Answer, Evidence, Outcome, Progress, Table, ToolTrace
from sentinel_rag.surfaces.cli._render import AnswerPages, Display, print_answer
from sentinel_rag.surfaces.cli._status_line import TurnDisplay

ALL = Display(whole=True, evidence=True)
TITLE = "Multi-stage attack: phishing, stolen session and a dump"
HOSTILE = "\x1b]0;owned\x07 \x9b2J admin\u202egnp.exe"
FIELDS: dict[str, Callable[[str], object]] = {
    "text": lambda text: text,
    "tables": lambda text: (Table((text,), ((text,),), text),),
    "footnote": lambda text: (text,),
    "suggestions": lambda text: (text,),
    "evidence": lambda text: (Evidence(text, "c1", "query_alerts", f"/{text}", text),),
}


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("width", [40, 120])
@pytest.mark.parametrize("field", FIELDS)
def test_no_field_of_an_answer_reaches_the_terminal_raw(field: str, width: int, terminal: bool) -> None:
    assert field in {known.name for known in fields(Answer)}
    answer = Answer(
        **{"outcome": Outcome.ANSWERED, "text": "x", "session_id": "s1234567", field: FIELDS[field](HOSTILE)}
    )  # type: ignore[arg-type]
    written = StringIO()
    print_answer(Console(file=written, force_terminal=terminal, width=width, no_color=True), answer, ALL)
    for raw in ("\x1b]", "\x07", "\x9b", "\u202e"):
        assert raw not in written.getvalue()
    assert "owned" in written.getvalue()


TRACE = ToolTrace(
    "c1", "query_incidents", {"status": "Open"}, "ok", audit_id="a-1",
    coverage={
        "workspace": "soc", "tables": ["SecurityIncident"], "rows_returned": 10, "rows_total": 43, "partial": False,
        "table_newest": "2024-07-20T06:00:00Z",
    },
)  # fmt: skip
ROWS = tuple(
    (
        f"[{number}]",
        str(100 + number),
        "Informational",
        "Active",
        "2024-07-20 06:10:59 UTC",
        "Åsa Öberg",
        f"{TITLE} {number}",
    )
    for number in range(1, 11)
)
LIST = Answer(
    outcome=Outcome.ANSWERED,
    text="10 incidents match.",
    session_id="s1234567",
    tables=(
        Table(("", "Incident", "Severity", "Status", "Created", "Owner", "Title"), ROWS),
        Table(("What", "Value"), (("GUID", "2b6f7c1e-93d4-4d0e-8f5a-7f1d1c0e9a11"),), "Ids and addresses", folded=True),
    ),
    footnote=('query_incidents(status="Open") · 10 of 43 rows · audit a-1', "Read with: shift words"),
    suggestions=("What is incident 101 about?", "Show the alerts of incident 101", "Only the high ones, please"),
    tools=(TRACE,),
)


def shown(answer: Answer, how: Display, *, width: int = 80, terminal: bool = True) -> list[str]:
    written = StringIO()
    target = Console(file=written, force_terminal=terminal, width=width, color_system=None, markup=False, emoji=False)
    print_answer(target, answer, how)
    return [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in written.getvalue().splitlines()]


@pytest.mark.requirement("SURF-1")
def test_a_list_has_one_line_each_and_says_what_it_leaves_out() -> None:
    lines = shown(LIST, Display(more="/more"))
    rows = [line for line in lines if line.startswith((" [", "[")) or re.match(r" \[\d", line)]
    assert len(rows) == 10
    assert all(TITLE[:20] in row and row.endswith("…") for row in rows)
    assert "(cells that end in … are cut; not shown: Created (UTC), Owner)" in lines
    assert len(lines) < 24


@pytest.mark.requirement("SURF-1")
def test_where_an_answer_is_from_is_one_line_and_the_rest_is_on_demand() -> None:
    lines = shown(LIST, Display(more="--details"), width=160)
    source = [line for line in lines if line.startswith("Source:")]
    assert len(source) == 1
    assert source[0].startswith("Source: query_incidents, 10 of 43 rows of soc, ")
    assert source[0].endswith("(--details)")
    assert "Read with: shift words" in lines
    text = "\n".join(lines)
    assert "2b6f7c1e" not in text
    assert "a-1" not in text
    whole = "\n".join(shown(LIST, Display(whole=True), width=160))
    assert "2b6f7c1e-93d4-4d0e-8f5a-7f1d1c0e9a11" in whole
    assert "audit a-1" in whole
    assert "2024-07-20 06:10:59 UTC" in whole


@pytest.mark.requirement("SURF-1")
@pytest.mark.parametrize(
    ("status", "says"), [("denied", "query_incidents, denied"), ("failed", "query_incidents, failed")]
)
def test_a_call_that_came_to_nothing_is_told_in_that_line(status: str, says: str) -> None:
    told = replace(TRACE, status=status, coverage=None)
    assert any(says in line for line in shown(replace(LIST, tools=(told,)), Display()))


@pytest.mark.requirement("SURF-1")
def test_a_part_of_the_data_is_never_told_as_the_whole() -> None:
    told = replace(TRACE, coverage={**(TRACE.coverage or {}), "partial": True, "rows_total": None})
    source = next(line for line in shown(replace(LIST, tools=(told,)), Display()) if line.startswith("Source:"))
    assert "10 of ? rows" in source
    assert "PARTIAL" in source


@pytest.mark.requirement("SURF-1")
def test_a_pipe_gets_every_cell() -> None:
    lines = shown(LIST, Display(), width=160, terminal=False)
    assert sum(f"{TITLE} " in line for line in lines) == 10
    assert not any("…" in line for line in lines)


WINDOW_ROWS = tuple(
    (str(number), "High" if number % 2 else "Low", f"Sign-in of user-{number}") for number in range(1, 61)
)
LONG = Answer(
    outcome=Outcome.ANSWERED,
    text="60 incidents match.\nBy severity: High 30, Low 30.",
    session_id="s1234567",
    tables=(Table(("Incident", "Severity", "Title"), WINDOW_ROWS, "Incidents"),),
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


@pytest.mark.requirement("SURF-5")
@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("> theirs\nours\n> theirs too\n> theirs still\nours again", ["theirs", "theirs too", "theirs still"]),
        ("ours\n> - theirs\n- ours", ["theirs"]),
        ("- ours\n  > theirs\n  ours of the item\nours below it", ["theirs"]),
        ("ours\n\n> theirs\n\nours", ["theirs"]),
    ],
)
def test_the_bar_of_a_quote_stands_before_what_is_quoted_and_before_nothing_else(text: str, quoted: list[str]) -> None:
    target = terminal()
    print_answer(target, Answer(outcome=Outcome.ANSWERED, text=text, session_id="s1234567"))
    lines = taken(target)
    assert [line.partition("▌")[2].strip(" •") for line in lines if "▌" in line] == quoted
    assert sum("ours" in line for line in lines) == text.count("ours")


def test_a_line_below_a_list_is_no_part_of_its_last_item() -> None:
    target = terminal()
    print_answer(
        target, Answer(outcome=Outcome.ANSWERED, text="1. first\n2. second\nBoth are open.", session_id="s1234567")
    )
    assert "Both are open." in taken(target)
