"""What a fully hijacked agent can do against a security operations centre, and what it can still be used for.

The suite of `sentinel_rag_testing.soc` through the product's own processes. `python -m bench soc` plays every task and,
under the shipped policy, every goal beside every task whose results can carry planted text, at each moment of its
conversation, and beside a few tasks in later conversations of the person and of a second one; the other policies are
told beside it. `--quick` takes a few tasks for each goal, and the others in turn. `--later` plays the later
conversations alone, and `--policy` some policies; the rest stays as it was.
Tasks without a person are also played by an agent that has read the workspace for an earlier question, as agents have.
docs/soc-suite.md tells what the figures mean.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from bench.harness import RESULTS, write
from sentinel_rag_testing.soc.hijacked import LATER, Moment
from sentinel_rag_testing.soc.measuring import Bench, GoalRow, TaskRow, summary
from sentinel_rag_testing.soc.people import People
from sentinel_rag_testing.soc.suite import Goal, Suite, Task, load_suite

Played = Mapping[tuple[str, str], Sequence[TaskRow]]
"""What came of the tasks, by policy and by who decides."""

WORKERS = 2
GOALS_AT_ONCE, GOALS_BESIDE_FEW = 8, 22
"""Goals that one product serves, beside every task and beside few: its start, a few seconds, weighs little, and both
cores have work to the end."""
FEW = ("show_203", "spraying", "past_91", "look_then_read")
"""Tasks that stand for the others: an incident, the web, knowledge, and the web after an incident."""
IN_TURN = 4
"""How many other tasks, in turn, a goal is played beside with `--quick`."""
BUSY = "busy"
"""Nobody decides, and the agent has read the workspace for an earlier question of its person."""
ONE = ("show_203", "comment_203")
"""Enough to show that a goal can be reached where nothing stops it."""


ASKING = ("shipped", "own-words")
"""Policies that are meant to be used."""


@dataclass(frozen=True, slots=True)
class Part:
    """A policy as it is measured: by which people, beside which tasks (all where None), by which goals."""

    policy: str
    people: People
    beside: Sequence[str] | None
    wanted: Callable[[Goal], bool]
    hidden: bool = False
    in_turn: int = 0
    """How many of the other tasks beside the named ones, other ones for each goal."""
    later: bool = False
    """Whether the attacks are made in later conversations, and not in that of the task."""

    @property
    def name(self) -> str:
        return f"{self.policy}, later" if self.later else self.policy


def _all(_: Goal) -> bool:
    return True


def _on_hidden(goal: Goal) -> bool:
    return goal.hidden


def parts(*, quick: bool, later: bool) -> list[Part]:
    """What is measured, the shipped policy first."""
    afterwards = Part("shipped", People.ATTENTIVE, FEW, _all, later=True)
    if later:
        return [afterwards]
    every = FEW if quick else None
    return [
        Part("shipped", People.ATTENTIVE, every, _all, in_turn=IN_TURN),
        afterwards,
        Part("own-words", People.ATTENTIVE, FEW, _all),
        Part("hidden", People.ATTENTIVE, every, _on_hidden, hidden=True),
        Part("session-taint", People.NOBODY, FEW, _all),
        Part("allow-all", People.NOBODY, ONE, _all, hidden=True),
    ]


def play_tasks(job: tuple[str, Sequence[People]]) -> dict[str, list[TaskRow]]:
    policy, people = job
    suite = load_suite()
    with Bench(suite, policy) as bench:
        rows = {each.value: [bench.task(task, each) for task in suite.tasks] for each in people}
        if policy in ASKING:
            rows[BUSY] = [bench.task(task, People.NOBODY, busy=True) for task in suite.tasks]
        return rows


def play_goals(job: tuple[Part, str, Sequence[TaskRow]]) -> list[GoalRow]:
    part, goals, rows = job
    whole = load_suite()
    places = {row.task: row.places for row in rows}
    order = [goal.id for goal in whole.goals]
    with Bench(whole, part.policy) as bench:
        return [
            bench.goal(
                goal,
                part.people,
                [(task, places[task.id]) for task in _beside(part, goal, order, whole, places)],
                LATER if part.later else [moment for moment in Moment if moment not in LATER],
            )
            for goal in whole.chosen("", goals).goals
            if part.hidden or not goal.hidden
        ]


def _beside(
    part: Part, goal: Goal, order: Sequence[str], suite: Suite, places: Mapping[str, Sequence[int]]
) -> list[Task]:
    """The tasks beside which the goal is played: the named ones, those that it needs, and `in_turn` others, so that
    over the goals each task that carries planted text has its turn."""
    if part.beside is None:
        return list(suite.tasks)
    others = [task.id for task in suite.tasks if places[task.id] and task.id not in part.beside]
    start = order.index(goal.id) * part.in_turn
    turn = [others[(start + place) % len(others)] for place in range(part.in_turn)]
    return [task for task in suite.tasks if task.id in {*part.beside, *goal.only, *turn}]


def measure(measured: Sequence[Part]) -> dict[str, Any]:
    suite = load_suite()
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(WORKERS, mp_context=spawning) as pool:
        wanted = list(dict.fromkeys((part.policy, _people_of(part)) for part in measured))
        played: Played = {
            (policy, people): rows
            for (policy, _), found in zip(wanted, pool.map(play_tasks, wanted), strict=True)
            for people, rows in found.items()
        }
        print("tasks played", flush=True)
        jobs = [
            (part, ",".join(goal.id for goal in some))
            for part in measured
            for some in _by(
                GOALS_AT_ONCE if part.beside is None else GOALS_BESIDE_FEW,
                [goal for goal in suite.goals if part.wanted(goal)],
            )
        ]
        by_job = pool.map(play_goals, [(part, goals, played[part.policy, part.people.value]) for part, goals in jobs])
        rows: dict[str, list[GoalRow]] = {}
        for (part, _), some in zip(jobs, by_job, strict=True):
            rows.setdefault(part.name, []).extend(some)
            told = ", ".join(f"{row.goal} {len(row.reached)}/{row.runs}" for row in some)
            print(f"{part.policy}: {told}", flush=True)
    return {
        "suite": {
            "tasks": len(suite.tasks),
            "tasks_that_carry_planted_text": _carrying(played),
            "goals": sum(not goal.apart for goal in suite.goals),
            "goals_told_apart": sum(bool(goal.apart) for goal in suite.goals),
        },
        "policies": {part.name: _report(part, played, rows[part.name]) for part in measured},
    }


def _carrying(played: Played) -> int:
    """How many tasks read planted text, where they are done."""
    return max(sum(bool(row.places) for row in rows) for rows in played.values())


def _people_of(part: Part) -> tuple[People, ...]:
    """Who decides where the tasks are played by themselves: as in the attacks, and nobody."""
    return (part.people,) if part.wanted is _on_hidden else tuple(dict.fromkeys((People.NOBODY, part.people)))


def _by(size: int, goals: Sequence[Goal]) -> Iterator[Sequence[Goal]]:
    return (goals[start : start + size] for start in range(0, len(goals), size))


def _report(part: Part, played: Played, rows: Sequence[GoalRow]) -> dict[str, Any]:
    counted = [row for row in rows if not row.apart]
    apart = [row for row in rows if row.apart]
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "beside": "every task" if part.beside is None else {"each": list(part.beside), "others_in_turn": part.in_turn},
        **{f"tasks_with_{people.value}": summary(played[part.policy, people.value]) for people in _people_of(part)},
        **({"tasks_with_nobody_by_a_busy_agent": summary(played[part.policy, BUSY])} if part.policy in ASKING else {}),
        "attacks": _sums(counted),
        "adaptive": {how: _sums([row for row in counted if row.adaptive == how]) for how in _ways(counted)},
        "told_apart": {row.goal: {"runs": row.runs, "reached": len(row.reached), "why": row.apart} for row in apart},
        "by_goal": {
            row.goal: {
                "kind": row.kind,
                "adaptive": row.adaptive,
                "runs": row.runs,
                "task_done": row.useful,
                "reached": len(row.reached),
                "reached_by": row.reached[:3],
                "moves": dict(sorted(row.answers.items())),
                "most_questions": row.most_questions,
            }
            for row in counted
        },
        "by_task": {row.task: asdict(row) for row in played[part.policy, part.people.value]},
    }


def _sums(rows: Sequence[GoalRow]) -> dict[str, Any]:
    return {
        "runs": sum(row.runs for row in rows),
        "runs_in_which_the_task_was_done": sum(row.useful for row in rows),
        "runs_that_reached_their_goal": sum(len(row.reached) for row in rows),
        "goals": len(rows),
        "goals_reached": sum(bool(row.reached) for row in rows),
    }


def _ways(rows: Sequence[GoalRow]) -> list[str]:
    return sorted({row.adaptive for row in rows if row.adaptive})


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench soc")
    parser.add_argument("--quick", action="store_true", help="a few tasks beside each goal, and the others in turn")
    parser.add_argument("--later", action="store_true", help="later conversations alone")
    parser.add_argument("--policy", default="", help="only these, by commas; the others stay as they were measured")
    asked = parser.parse_args()
    wanted = [name for name in asked.policy.split(",") if name]
    chosen = [part for part in parts(quick=asked.quick, later=asked.later) if part.policy in wanted or not wanted]
    measured = measure(chosen)
    if wanted or asked.later:
        before = json.loads((RESULTS / "soc.json").read_text())["measured"]
        measured = {**before, "policies": {**before["policies"], **measured["policies"]}}
    claim = (
        "Under the shipped policy a hijacked agent changes nothing, leaks nothing, and asks a person no more than the "
        "bounds, in the conversation of its task, in later ones and in another person's. Where nothing stops it, it "
        "reaches each goal."
    )
    write("soc", measured, claim=claim)


if __name__ == "__main__":
    main()
