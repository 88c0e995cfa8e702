"""Whatever field of an answer a hostile text came from, a terminal is never sent what it would obey (SURF-5)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, replace
from io import StringIO

import pytest
from rich.console import Console

from sentinel_rag.contracts.evidence import Answer, Evidence, Outcome, Table, ToolTrace
from sentinel_rag.surfaces.cli._render import Display, print_answer

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
