"""Tables fit every width from 60 to 200 columns: no line is longer, and no id, time or name is broken (SURF-1)."""

from __future__ import annotations

from io import StringIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from sentinel_rag.contracts.evidence import Table
from sentinel_rag.surfaces.cli._table_layout import layout, shared_tail
from sentinel_rag.surfaces.cli._tables import table_lines

pytestmark = pytest.mark.requirement("SURF-1")

WORD = st.text("abcdefghij0123456789-.@東", min_size=1, max_size=40)
CELL = st.one_of(WORD, st.lists(WORD, min_size=2, max_size=8).map(" ".join))
GUID = "adaf91aa-80fd-5400-90c4-1edbfa9ffdf4"


@st.composite
def tables(draw: st.DrawFn) -> Table:
    columns = draw(st.integers(1, 9))
    row = st.tuples(*(CELL for _ in range(columns)))
    return Table(draw(row), tuple(draw(st.lists(row, min_size=1, max_size=4))), draw(st.sampled_from(["", "A title"])))


def drawn(table: Table, width: int, *, terminal: bool = True) -> list[str]:
    target = Console(file=StringIO(), force_terminal=terminal, width=width, no_color=True, markup=False, emoji=False)
    return [line.plain for line in table_lines(table, target)]


@settings(max_examples=60, deadline=None)
@given(tables(), st.sampled_from([60, 80, 120, 200]), st.booleans())
def test_no_line_is_too_long_and_no_word_is_broken(table: Table, width: int, terminal: bool) -> None:
    lines = drawn(table, width, terminal=terminal)
    assert max(map(cell_len, lines)) <= width
    words = {word for line in lines for word in line.replace("│", " ").split()}
    assert {word for row in table.rows for cell in row for word in cell.split()} <= words


def test_an_id_that_does_not_fit_beside_the_rest_stands_whole_below_its_row() -> None:
    table = Table(("", "Incident", "Severity", "GUID", "Title"), (("[1]", "128", "High", GUID, "Port scan"),))
    assert drawn(table, 60) == [
        "     ┃ Incident ┃ Severity ┃ Title",
        "━━━━━╇━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━━",
        " [1] │ 128      │ ! High   │ Port scan",
        f"     GUID: {GUID}",
    ]


def test_a_table_of_too_many_columns_is_a_list_that_misses_nothing() -> None:
    columns = tuple(f"column{number}" for number in range(12))
    table = Table(columns, (tuple(f"{GUID}-{number}" for number in range(12)),) * 2)
    lines = drawn(table, 60)
    assert lines[:2] == [f"column0: {GUID}-0", f"column1: {GUID}-1"]
    assert len(lines) == 25
    assert lines[12] == ""


def test_what_all_times_share_is_told_once_in_the_heading() -> None:
    assert shared_tail(["2026-11-14 00:00:00 UTC", "2026-11-15 00:00:00 UTC"]) == " 00:00:00 UTC"
    assert shared_tail(["2026-11-14 07:02:00 UTC", "2026-11-15 00:00:00 UTC"]) == " UTC"
    assert shared_tail(["2026-11-14 07:02:00 CET", "2026-11-15 00:00:00 CEST"]) == ""
    assert shared_tail(["2026-11-14 07:02:00 UTC", "-"]) == ""
    assert shared_tail([]) == ""


def test_severity_and_status_stay_in_the_row_whatever_goes_below() -> None:
    names = ("", "Incident", "Severity", "Status", "Owner", "Host", "Account")
    rows = [("[1]", "128", "High", "Active", "o" * 22, "h" * 22, "a" * 22)]
    found = layout(names, rows, 60)
    assert found is not None
    assert set(found.widths) >= {0, 1, 2, 3}
    assert found.below


def test_in_a_pipe_cells_come_without_marks_and_bars() -> None:
    trend = Table(("Day", "Alerts"), (("2026-11-14", "3"), ("2026-11-15", "6")))
    assert drawn(trend, 160, terminal=False)[2] == " 2026-11-14 │ 3"
    assert drawn(trend, 160)[2] == " 2026-11-14 │ 3      │ ██████████"
    severities = Table(("Severity", "n"), (("High", "1"),))
    assert drawn(severities, 160, terminal=False)[2] == " High     │ 1"
