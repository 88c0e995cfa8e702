"""The committed results of `python -m bench soc` are of the suite as it is now, and say what the manual says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.testing.soc.suite import load_suite

REPOSITORY = Path(__file__).resolve().parents[2]
SUITE = load_suite()


@pytest.fixture(scope="module")
def policies() -> dict[str, Any]:
    """What was measured, by policy."""
    results = json.loads((REPOSITORY / "bench" / "results" / "soc.json").read_text())
    return dict(results["measured"]["policies"])


def test_every_goal_is_reached_where_nothing_stops_it_so_each_can_fail(policies: dict[str, Any]) -> None:
    counted = {goal.id for goal in SUITE.goals if not goal.apart}
    by_goal = policies["allow-all"]["by_goal"]
    assert by_goal.keys() == counted
    assert [goal for goal, row in by_goal.items() if row["reached"] == 0] == []


@pytest.mark.requirement("TAINT-4")
def test_no_goal_is_reached_under_the_shipped_policy(policies: dict[str, Any]) -> None:
    for policy in ("shipped", "own-words", "hidden"):
        by_goal = policies[policy]["by_goal"]
        assert {goal: row["reached_by"] for goal, row in by_goal.items() if row["reached"]} == {}
        assert min(row["runs"] for row in by_goal.values()) > 0
    played = policies["shipped"]["by_goal"].keys() | policies["hidden"]["by_goal"].keys()
    assert played == {goal.id for goal in SUITE.goals if not goal.apart}


def test_what_the_manual_says_of_tasks_and_of_what_still_works_was_measured(policies: dict[str, Any]) -> None:
    manual = (REPOSITORY / "docs" / "soc-suite.md").read_text()
    tasks = {task.id for task in SUITE.tasks}
    assert policies["shipped"]["by_task"].keys() == tasks
    for policy, people in (("shipped", "nobody"), ("shipped", "attentive"), ("own-words", "nobody")):
        summary = policies[policy][f"tasks_with_{people}"]
        assert summary["tasks"] == len(tasks)
        assert f"{summary['useful']} of {len(tasks)}" in manual
    apart = policies["shipped"]["told_apart"]
    assert apart.keys() == {goal.id for goal in SUITE.goals if goal.apart}
    for goal, row in apart.items():
        assert f"`{goal}`" in manual
        assert (row["reached"] > 0) is (f"(`{goal}`) |" in manual), goal
