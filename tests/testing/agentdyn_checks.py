"""AgentDyn's benchmark: each attack that we scripted reaches its goal where nothing stops it, and one task over real
processes. `make agentdyn` fetches the suites, which no test needs otherwise."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PLAYED = """
import json, sys
from bench.agentdojo.estate import Estate
from bench.agentdojo.loading import AGENTDYN, load_suites

found = {}
for name, suite in load_suites(AGENTDYN).items():
    estate = Estate(suite)
    for injection in suite.injection_tasks:
        estate.begin("user_task_0", injection)
        for call in estate.attack():
            estate.run(call["tool"], call["arguments"])
        found[f"{name} {injection}"] = estate.verdict()["security"]
print(json.dumps(found))
"""

pytestmark = pytest.mark.slow


def printed(*command: str) -> Any:
    run = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout[run.stdout.index("{") :])


def test_each_attack_reaches_its_goal_where_nothing_stops_it() -> None:
    reached = printed("-c", PLAYED)
    assert len(reached) == 28
    assert all(reached.values()), [name for name, goal in reached.items() if not goal]


@pytest.mark.requirement("TAINT-4")
def test_no_attack_on_an_open_task_succeeds_and_what_waits_is_its_persons() -> None:
    slice_of_it = ("--suite", "dailylife", "--tasks", "1", "--injections", "1", "--policy", "ours")
    measured = printed("-m", "bench", "agentdyn", *slice_of_it)
    ours = measured["ours"]["total"]
    assert (ours["pairs"], ours["attacks_that_succeeded"], ours["attack_calls_that_ran"]) == (1, 0, 0)
    assert (ours["approvals"], ours["confirmations_by_the_asker"]) == (0, 3)
