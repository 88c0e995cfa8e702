"""Tables on a terminal: how they fit it, and the small charts of their counts."""

from __future__ import annotations

from io import StringIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from sentinel_rag.contracts.evidence import Picture, Table
from sentinel_rag.surfaces.cli._render import bar, layout, shared_tail, sparkline, table_lines, trend_of, with_picture

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


RANKING = Picture.RANKING


def test_a_sparkline_has_one_character_a_value_from_nothing_to_the_peak() -> None:
    assert sparkline([0, 1, 3, 6], plain=False) == "▁▂▅█"
    assert sparkline([0, 1, 3, 6], plain=True) == "_.+#"
    assert sparkline([0, 0], plain=False) == "▁▁"
    assert sparkline([], plain=False) == ""


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=400), st.integers(1, 60))
def test_a_long_trend_keeps_its_peak_within_the_width(values: list[int], most: int) -> None:
    drawn = sparkline(values, plain=False, most=most)
    assert 1 <= len(drawn) <= most
    assert ("█" in drawn) == (max(values) > 0)


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_a_bar_never_lies_about_nothing_and_never_leaves_its_place(value: int, top: int) -> None:
    drawn = bar(min(value, top), top, plain=True)
    assert len(drawn) <= 20
    assert bool(drawn) == (min(value, top) > 0)


def table(names: tuple[str, ...], *rows: tuple[str, ...], picture: Picture = Picture.NONE) -> list[list[str]]:
    made = Table(names, rows, picture=picture)
    shown, cells = with_picture(made, list(names), [list(row) for row in rows], plain=True)
    return [shown, *cells]


def test_only_days_and_whole_numbers_are_a_trend() -> None:
    rows = [["2026-11-14 00:00:00 UTC", "2"], ["2026-11-15 00:00:00 UTC", "4"]]
    assert trend_of(["Start", "Alerts"], rows) == [2, 4]
    assert table(("Start", "Alerts"), *map(tuple, rows))[1] == ["2026-11-14 00:00:00 UTC", "2", "##########"]
    assert trend_of(["Start", "Alerts"], [["2026-11-14", "two"], rows[1]]) == []
    assert trend_of(["Start", "Alerts"], [["[1]", "2"], rows[1]]) == []
    assert trend_of(["Start", "Alerts"], [["2026-11-14", "²"], rows[1]]) == []
    assert table(("Name", "Alerts"), ("web-03", "2"), ("web-04", "1"))[0] == ["Name", "Alerts"]


def test_a_ranking_is_drawn_by_its_first_count_against_the_largest() -> None:
    drawn = table(("", "Host", "Alerts", "High"), ("[1]", "web", "4", "1"), ("[2]", "dc", "1", "1"), picture=RANKING)
    assert drawn[0] == ["", "Host", "Alerts", "", "High"]
    assert [row[3] for row in drawn[1:]] == ["#" * 20, "#" * 5]


def test_a_narrow_window_keeps_the_picture_and_leaves_other_columns_out() -> None:
    rows = tuple(
        (f"person.number{n}@woodgrove.example", str(9 - n), "4", "a reason of many words " * 3) for n in range(5)
    )
    made = Table(("User", "Failures", "Addresses", "Reasons"), rows, picture=RANKING)
    target = Console(file=StringIO(), force_terminal=True, width=80, no_color=True, markup=False, emoji=False)
    lines = [line.plain for line in table_lines(made, target, whole=False)]
    assert lines[2] == " person.number0@woodgrove.example  9         ██████████  4"
    assert lines[-1] == "(not shown: Reasons)"
    assert max(map(cell_len, lines)) <= 80


def test_a_share_is_drawn_against_the_sum() -> None:
    drawn = table(("Name", "Count"), ("High", "1"), ("Low", "3"), picture=Picture.SHARE)
    assert [row[2].split(maxsplit=1) for row in drawn[1:]] == [["#####", "25 %"], ["###############", "75 %"]]


def test_what_happened_is_marked_between_the_first_moment_and_the_last() -> None:
    times = ("2026-11-28 06:00:00 UTC", "2026-11-28 16:00:00 UTC", "2026-11-29 02:00:00 UTC")
    drawn = table(("Time", "What"), *((each, "x") for each in times), picture=Picture.TIMES)
    assert [row[1].index("o") for row in drawn[1:]] == [0, 10, 19]
    assert {len(row[1]) for row in drawn[1:]} == {20}


@pytest.mark.parametrize("cell", ["many", "-1", "²", ""])
def test_what_is_no_count_is_not_drawn(cell: str) -> None:
    assert table(("Name", "Alerts"), ("a", cell), ("b", "2"), picture=RANKING)[0] == ["Name", "Alerts"]
