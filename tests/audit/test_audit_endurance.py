"""A moment of `python -m bench endurance`: what fails and comes back, and days that pass between kills."""

from __future__ import annotations

import pytest
from bench.endurance.faults import faults
from bench.endurance.kills import kills


@pytest.mark.slow
@pytest.mark.requirement("AUD-1")
def test_whatever_fails_each_call_is_answered_and_the_next_one_works() -> None:
    measured = faults(8)
    assert measured["violations"] == []
    meanwhile = {name: set(found["meanwhile"]) for name, found in measured["scenarios"].items() if "meanwhile" in found}
    full = {"disk_full": meanwhile["disk_full"]} if "disk_full" in meanwhile else {}
    assert meanwhile == {
        "tool_server_dead": {"502"},
        "tool_server_silent": {"504"},
        "tool_server_cut_in_its_answer": {"502"},
        "database_held_by_another_program": {"503"},
        "clock_ahead_by_a_year": {"200"},
        "clock_back_by_a_day": {"200"},
        **full,
    }
    assert not full or "503" in full["disk_full"]  # only root may mount a small disk


@pytest.mark.slow
@pytest.mark.requirement("AUD-3")
def test_a_month_passes_between_kills_and_the_clock_goes_back() -> None:
    measured = kills(160, legs=2)
    assert measured["violations"] == []
    assert measured["calls"] >= 160
    assert measured["records_pruned"] > 0
