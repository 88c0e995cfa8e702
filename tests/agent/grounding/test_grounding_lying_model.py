"""A small run of the lying model: planted faults of every kind, and true answers in the same wordings."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.testing.lying_model import FAULTS, Estate, LyingModel
from sentinel_rag.testing.lying_model.measuring import Tally, measure


@pytest.fixture(scope="module")
def estate(runs: list[ToolRun]) -> Estate:
    incidents, alerts, accounts, trend, *details, rows = runs
    return Estate("small", ZoneInfo("Europe/Berlin"), incidents, details, alerts, accounts, trend, rows)


@pytest.fixture(scope="module")
def measured(estate: Estate) -> dict[str, Tally]:
    return measure([estate], seed=11, rounds=1)


@pytest.mark.requirement("GRND-3")
def test_planted_faults_of_every_kind_are_caught(measured: dict[str, Tally]) -> None:
    faults = measured["faults"]
    assert set(faults.total) == set(FAULTS)
    assert sum(faults.total.values()) >= 150
    assert faults.percent >= 99, [(answer.fault, answer.text) for _, answer, _ in faults.wrong]


@pytest.mark.requirement("GRND-3")
def test_true_sentences_are_left_alone(measured: dict[str, Tally]) -> None:
    truths = measured["truths"]
    assert sum(truths.total.values()) >= 150
    assert truths.percent >= 99, [(answer.text, grounded.text) for _, answer, grounded in truths.wrong]


def test_the_same_seed_lies_in_the_same_way(estate: Estate) -> None:
    first, again, other = (
        [answer.text for answer in LyingModel(estate, seed).answers("INCIDENT", "shifted_time")] for seed in (3, 3, 4)
    )
    assert first == again
    assert first != other
