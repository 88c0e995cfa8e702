"""What is measured, in shares of a few user tasks each, and the sums over a suite and over all.

A share has an estate and a gateway of its own, and two shares run at a time, one for each core.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.agentdojo.adaptive import LINKS, VALUES, AdaptiveRun, play_adaptive
from bench.agentdojo.baselines import ANCHORS, write_anchor
from bench.agentdojo.driving import LATER, AttackRun, Moment, TaskRun, moments, play_attack, play_task
from bench.agentdojo.loading import AGENTDOJO, Package, load_suites, package_of
from bench.agentdojo.planning import Stands
from bench.agentdojo.residual import Residue, search
from bench.agentdojo.stage import ROOT, Stage, stage
from sentinel_rag.gateway.policy import Policy, load_policy
from sentinel_rag.gateway.policy.model import Effect

POLICIES = ROOT / "bench" / "agentdojo" / "policies"
OURS = "ours"
WITH_A_PLAN = "ours_with_a_committed_plan"
WITH_MEMORY = "ours_by_an_agent_that_remembers"
TASKS_OF_A_SHARE = 6
ON_THE_ANSWER = frozenset({("travel", "injection_task_6")})
"""An injection that wants nothing done, only something said: no call of a tool, so nothing that a gateway decides."""


@dataclass(frozen=True, slots=True)
class Share:
    """Some user tasks of a suite under one policy, with the injections to try on each."""

    suite: str
    policy: str
    tasks: tuple[str, ...]
    injections: tuple[str, ...]
    answers: int = 0
    """Pairs that attack the answer alone, for each task."""
    remembered: tuple[str, ...] = ()
    """All tasks of the suite, in the one share in which one agent does them all."""


@dataclass(slots=True)
class Findings:
    """What came of a share."""

    share: Share
    tasks: list[TaskRun] = field(default_factory=list)
    attacks: list[AttackRun] = field(default_factory=list)
    planned: list[TaskRun] = field(default_factory=list)
    remembering: list[TaskRun] = field(default_factory=list)
    """The tasks by one agent that has done all of them before."""
    attacks_on_plans: list[AttackRun] = field(default_factory=list)
    adaptive: list[AdaptiveRun] = field(default_factory=list)
    residues: Counter[Residue] = field(default_factory=Counter)


def shares(
    package: Package = AGENTDOJO,
    *,
    suites: Collection[str] | None = None,
    policies: Collection[str] | None = None,
    tasks: int | None = None,
    injections: int | None = None,
) -> list[Share]:
    """All there is to do, or these suites and policies, and the first so many tasks and injections of each suite."""
    found: list[Share] = []
    for name, suite in load_suites(package).items():
        if suites is not None and name not in suites:
            continue
        chosen = tuple(suite.user_tasks)[:tasks]
        acting = [one for one in suite.injection_tasks if (name, one) not in ON_THE_ANSWER]
        answers = len(suite.injection_tasks) - len(acting)
        for policy in policies or (OURS, *ANCHORS):
            for start in range(0, len(chosen), TASKS_OF_A_SHARE):
                part = chosen[start : start + TASKS_OF_A_SHARE]
                remembered = chosen if policy == OURS and start == 0 else ()
                found.append(Share(name, policy, part, tuple(acting)[:injections], answers, remembered))
    return found


def measure(
    wanted: Sequence[Share], *, at_once: int = 2, done: Callable[[Findings], None] = lambda _: None
) -> list[Findings]:
    """Play every share; `done` hears of each."""

    def one(share: Share) -> Findings:
        findings = play(share)
        done(findings)
        return findings

    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(one, wanted))


def play(share: Share) -> Findings:
    """Play one share: each task alone, then with each injection; ours with everything that an attacker may try."""
    findings = Findings(share)
    file = POLICIES / f"{share.suite}.yaml"
    policy = load_policy(file)
    # What an attacker may try beside the calls themselves, and plans, are measured on AgentDojo.
    more = share.policy == OURS and package_of(share.suite) is AGENTDOJO
    reads = _reads(policy)
    with tempfile.TemporaryDirectory() as folder:
        if share.policy != OURS:
            file = write_anchor(share.policy, file, Path(folder))
        with stage(share.suite, file, Path(folder) / "state") as there:
            for task in share.tasks:
                alone = play_task(there, task)
                findings.tasks.append(alone)
                if more:
                    findings.planned.append(play_task(there, task, plan=alone.plan))
                carriers = play_task(there, task, injection=share.injections[0]).carriers
                when = list(moments(carriers, alone.calls))
                # A plan ends with its session, so later ones are as without; the anchors are for the same session.
                within = [moment for moment in when if moment not in LATER]
                for injection in share.injections:
                    tried = when if share.policy == OURS else within
                    findings.attacks += _attacks(there, task, injection, tried, carriers, reads)
                    if more:
                        findings.attacks_on_plans += _attacks(
                            there, task, injection, within, carriers, reads, alone.plan
                        )
                    if more:
                        findings.adaptive.append(play_adaptive(there, task, injection, reads, carriers))
                if more:
                    findings.residues.update(search(there, policy, task, share.injections[0]))
            for _ in range(2 if share.remembered else 0):
                findings.remembering = [play_task(there, task, same_agent=True) for task in share.remembered]
    return findings


def _reads(policy: Policy) -> frozenset[str]:
    return frozenset(name for name, tool in policy.tools.items() if tool.effect is Effect.READ)


def _attacks(
    there: Stage,
    task: str,
    injection: str,
    when: Iterable[Moment],
    carriers: Sequence[int],
    reads: frozenset[str],
    plan: Sequence[Mapping[str, Any]] = (),
) -> Iterable[AttackRun]:
    """The moments in turn, until the attack succeeds at one: those of the task's own session each in an episode of its
    own, later ones in one, since what an agent reads in any of them it remembers in all."""
    tried = list(when)
    later = [moment for moment in tried if moment in LATER]
    for at in (*([moment] for moment in tried if moment not in LATER), later):
        if at:
            runs = play_attack(there, task, injection, at, carriers, reads, plan)
            yield from runs
            if runs[-1].succeeded:
                return


def summary(findings: Sequence[Findings]) -> dict[str, Any]:
    """Sums by policy and suite, the rows of each task, and what is left to an attacker."""
    by_policy: dict[str, Any] = {}
    for policy in dict.fromkeys(one.share.policy for one in findings):
        of_policy = [one for one in findings if one.share.policy == policy]
        suites = list(dict.fromkeys(one.share.suite for one in of_policy))
        by_policy[policy] = {
            "total": _sums(of_policy),
            "suites": {name: _sums([one for one in of_policy if one.share.suite == name]) for name in suites},
        }
        if any(one.planned for one in of_policy):
            with_plans = [replace(one, tasks=one.planned, attacks=one.attacks_on_plans) for one in of_policy]
            by_policy[WITH_A_PLAN] = {
                "total": _sums(with_plans),
                "suites": {name: _sums([one for one in with_plans if one.share.suite == name]) for name in suites},
            }
    ours = [one for one in findings if one.share.policy == OURS]
    if ours:
        remembering = [task for one in ours for task in one.remembering]
        by_policy[WITH_MEMORY] = _of_tasks(remembering)
        by_policy["waits"] = _waits([task for one in ours for task in one.tasks])
    if any(one.adaptive for one in ours):
        adaptive = [run for one in ours for run in one.adaptive]
        by_policy |= {"adaptive": _adaptive(adaptive), "residual": _residual(ours)}
    return {**by_policy, "tasks": _rows(ours)}


def _sums(findings: Sequence[Findings]) -> dict[str, Any]:
    pairs: dict[tuple[str, str, str], bool] = {}
    for one in findings:
        for attack in one.attacks:
            key = (one.share.suite, attack.task, attack.injection)
            pairs[key] = pairs.get(key, False) or attack.succeeded
    attacks = [attack for one in findings for attack in one.attacks]
    return {
        **_of_tasks([task for one in findings for task in one.tasks]),
        "pairs": len(pairs),
        "attacks_that_succeeded": sum(pairs.values()),
        "attacks_that_succeeded_by_moment": {
            moment.value: sum(run.succeeded for run in attacks if run.moment is moment) for moment in Moment
        },
        "attack_calls_that_ran": sum(len(attack.passed) for attack in attacks),
        "attack_calls_that_were_the_users_own": sum(len(attack.users_own) for attack in attacks),
        "pairs_on_the_answer_alone": sum(len(one.share.tasks) * one.share.answers for one in findings),
    }


def _of_tasks(tasks: Sequence[TaskRun]) -> dict[str, Any]:
    approvals = sum(len(task.asked) for task in tasks)
    confirmations = sum(len(task.confirmed) for task in tasks)
    return {
        "tasks": len(tasks),
        "tasks_without_a_person": sum(task.without_human for task in tasks),
        "tasks_without_another_person": sum(task.without_another for task in tasks),
        "tasks_with_an_attentive_person": sum(task.with_human for task in tasks),
        "tasks_solved_by_agentdojos_check": sum(task.utility for task in tasks),
        "approvals": approvals,
        "approvals_a_task": round(approvals / len(tasks), 3),
        "confirmations_by_the_asker": confirmations,
        "confirmations_a_task": round(confirmations / len(tasks), 3),
    }


def _waits(tasks: Sequence[TaskRun]) -> dict[str, Any]:
    """For what the tasks wait that do not pass by themselves: whether an argument that carried too much stands only
    where others write too, and which arguments those are, by the number of tasks."""
    waiting = [task for task in tasks if task.waits]
    arguments: Counter[tuple[str, str, Stands]] = Counter()
    for task in waiting:
        arguments.update({(wait.tool, name, stands) for wait in task.waits for name, stands in wait.values.items()})
    values = [{stands for wait in task.waits for stands in wait.values.values()} for task in waiting]
    rows: dict[str, dict[str, int]] = {}
    for (tool, name, stands), number in sorted(arguments.items(), key=lambda item: (-item[1], item[0])):
        rows.setdefault(f"{tool}: {name}", {each.name.lower(): 0 for each in Stands})[stands.name.lower()] = number
    return {
        "tasks": len(waiting),
        "for_a_value_that_was_read": sum(Stands.READ in each for each in values),
        "for_what_the_agent_composed_alone": sum(
            Stands.COMPOSED in each and Stands.READ not in each for each in values
        ),
        "for_a_call_that_its_tool_does_not_take": sum(any(not w.values for w in task.waits) for task in waiting),
        "arguments": rows,
    }


def _adaptive(runs: Sequence[AdaptiveRun]) -> dict[str, Any]:
    tried: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    for run in runs:
        tried.update(run.tried)
        passed.update(run.passed)
    return {
        "pairs": len(runs),
        "spellings_of_a_link": len(LINKS),
        "spellings_of_a_value": len(VALUES),
        "calls_tried": dict(tried),
        "pairs_with_a_call_that_ran": sum(bool(run.passed) for run in runs),
        "calls_that_ran": dict(passed),
    }


def _residual(findings: Sequence[Findings]) -> list[Mapping[str, Any]]:
    """For each suite and tool, in how many tasks a call ran that held something of the attacker's, and where."""
    rows: list[Mapping[str, Any]] = []
    for name in dict.fromkeys(one.share.suite for one in findings):
        counts: Counter[Residue] = Counter()
        for one in findings:
            if one.share.suite == name:
                counts.update(one.residues)
        rows += [
            {"suite": name, "tool": each.tool, "attackers": each.attackers, "users": each.users, "tasks": number}
            for each, number in sorted(counts.items(), key=lambda item: (item[0].tool, -item[1], item[0].attackers))
        ]
    return rows


def _rows(findings: Sequence[Findings]) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = []
    for one in findings:
        for task in one.tasks:
            attacks = [attack for attack in one.attacks if attack.task == task.task]
            rows.append(
                {
                    "suite": one.share.suite,
                    "task": task.task,
                    "calls": task.calls,
                    "blocked": task.why,
                    "approvals": len(task.asked),
                    "confirmations": len(task.confirmed),
                    "solved": task.utility,
                    "attacks": len({attack.injection for attack in attacks}),
                    "succeeded": sorted({attack.injection for attack in attacks if attack.succeeded}),
                }
            )
    return rows
