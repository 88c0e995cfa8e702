"""Charts repeat the numbers of the answer: their heights and lengths follow them, zero is nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rag.contracts.evidence import Evidence
from sentinel_rag.surfaces.cli._charts import bar, severity_counts, sparkline, trend_of, with_bars

pytestmark = pytest.mark.requirement("SURF-1")


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


def test_only_days_and_whole_numbers_are_a_trend() -> None:
    rows = [["2026-11-14 00:00:00 UTC", "2"], ["2026-11-15 00:00:00 UTC", "4"]]
    assert trend_of(["Start", "Alerts"], rows) == [2, 4]
    assert with_bars(["Start", "Alerts"], rows, plain=True)[1][0] == ["2026-11-14 00:00:00 UTC", "2", "##########"]
    assert trend_of(["Start", "Alerts"], [["2026-11-14", "two"], rows[1]]) == []
    assert trend_of(["Start", "Alerts"], [["[1]", "2"], rows[1]]) == []
    assert trend_of(["Start", "Alerts"], [["2026-11-14", "²"], rows[1]]) == []
    assert with_bars(["Name", "Alerts"], [["web-03", "2"], ["web-04", "1"]], plain=True)[0] == ["Name", "Alerts"]


def test_counts_by_severity_are_read_from_the_evidence_alone() -> None:
    def piece(pointer: str, value: object) -> Evidence:
        return Evidence(str(value), "c1", "get_threat_summary", pointer, value)  # type: ignore[arg-type]

    counted = severity_counts(
        [
            piece("/summary/incidents/by_severity/High", 1),
            piece("/summary/incidents/by_severity/Low", 4),
            piece("/summary/by_severity/High", 2),
            piece("/summary/by_severity/\x1b[31mHigh", 9),
            piece("/rows/0/severity", "High"),
        ]
    )
    assert counted == {"incidents": {"High": 1, "Low": 4}}
