"""Charts repeat the numbers of the answer: their heights and lengths follow them, zero is nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rag.contracts.evidence import Picture, Table
from sentinel_rag.surfaces.cli._charts import bar, sparkline, trend_of, with_picture

pytestmark = pytest.mark.requirement("SURF-1")
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
