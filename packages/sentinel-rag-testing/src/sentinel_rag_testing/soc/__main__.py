"""`python -m sentinel_rag_testing.soc`: measures an agent, or a policy by an agent that is fully hijacked."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sentinel_rag.contracts.errors import ConfigurationError, SentinelError
from sentinel_rag_testing.soc.agent_runs import AgentBench, AgentGoal
from sentinel_rag_testing.soc.agents import agent_named
from sentinel_rag_testing.soc.measuring import GoalRow, measure_goals, measure_tasks
from sentinel_rag_testing.soc.people import People
from sentinel_rag_testing.soc.policies import POLICIES, hides
from sentinel_rag_testing.soc.suite import DATA, Suite, load_suite, schema

HIJACKED = "hijacked"
NO_GOALS = "none"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the arguments ask for. 0: no goal was reached; 1: one was; 2: a wrong argument or no start."""
    asked = _parser().parse_args(arguments)
    try:
        if asked.schema:
            print(json.dumps(schema(), indent=2))
            return 0
        suite = load_suite(asked.suite).chosen(asked.tasks, "" if asked.goals == NO_GOALS else asked.goals)
        if asked.goals == NO_GOALS:
            suite = Suite(suite.estate, suite.tasks, ())
        if asked.list:
            _list(suite)
            return 0
        measured = _measured(suite, asked)
    except ConfigurationError as error:
        print("\n".join((str(error), *error.problems, error.next_step)), file=sys.stderr)
        return 2
    except SentinelError as error:
        print(f"{error} {error.next_step}", file=sys.stderr)
        return 2
    if asked.json is not None:
        asked.json.write_text(json.dumps(measured, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    _tell(measured)
    return 1 if any(row["reached"] and not row["apart"] for row in measured["goals"]) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sentinel_rag_testing.soc", description=__doc__)
    parser.add_argument(
        "--agent",
        default=HIJACKED,
        help="hijacked (default), offline, module:function, or an http address",
    )
    parser.add_argument("--policy", default="shipped", help=f"a file, or one of {', '.join(POLICIES)}")
    parser.add_argument("--people", type=People, default=People.ATTENTIVE, choices=list(People), help="who decides")
    parser.add_argument("--tasks", default="", help="ids, by commas; all without it")
    parser.add_argument("--goals", default="", help="ids, by commas; all without it; none: the tasks alone")
    parser.add_argument("--suite", type=Path, default=DATA, help="a folder with estate.yaml, tasks.yaml and goals.yaml")
    parser.add_argument("--json", type=Path, help="write all that was measured to this file")
    parser.add_argument("--list", action="store_true", help="list tasks and goals")
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of the three files")
    return parser


def _measured(suite: Suite, asked: argparse.Namespace) -> dict[str, Any]:
    tasks: Sequence[Any]
    goals: Sequence[GoalRow | AgentGoal]
    if asked.agent == HIJACKED:
        tasks = measure_tasks(suite, asked.policy, asked.people)
        goals = list(measure_goals(suite, asked.policy, asked.people, tasks, hidden=hides(asked.policy)))
    else:
        bench = AgentBench(suite, agent_named(asked.agent), policy=asked.policy, people=asked.people)
        tasks, goals = list(bench.tasks()), list(bench.goals())
    return {
        "agent": asked.agent,
        "policy": asked.policy,
        "people": asked.people.value,
        "tasks": [asdict(row) for row in tasks],
        "goals": [asdict(row) for row in goals],
    }


def _list(suite: Suite) -> None:
    for task in suite.tasks:
        print(f"task  {task.id:24} {task.kind:12} {task.words}")
    for goal in suite.goals:
        print(f"goal  {goal.id:24} {goal.kind:12} {goal.says}{' (told apart)' if goal.apart else ''}")


def _tell(measured: dict[str, Any]) -> None:
    tasks, goals = measured["tasks"], measured["goals"]
    counted = [row for row in goals if not row["apart"]]
    for row in tasks:
        if not row["useful"]:
            print(f"not done  {row['task']}: {'; '.join(row.get('blocked') or row.get('lacks') or ['not told'])}")
    for row in goals:
        for fault in row.get("faults", ()):
            print(f"no answer {row['goal']}: {fault}")
        for place in row["reached"]:
            print(f"{'apart' if row['apart'] else 'REACHED':9} {row['goal']}: {place}")
    print(
        f"{sum(row['useful'] for row in tasks)} of {len(tasks)} tasks done, "
        f"{sum(row['approvals'] for row in tasks)} approvals; "
        f"{sum(bool(row['reached']) for row in counted)} of {len(counted)} goals reached "
        f"in {sum(row['runs'] for row in counted)} runs"
    )


if __name__ == "__main__":
    sys.exit(main())
