"""AgentDojo against the gateway, without a model: what passes by itself, what a person has to decide, what an
attacker reaches. Needs `make agentdojo`. `--suite`, `--policy`, `--tasks` and `--injections` make a smaller run, which
is printed and not written. `--spellings 40` tries every link and value of the attacks in chosen spellings, beside as
many further tasks as 40 minutes allow, until all were tried, and leaves everything else as it was measured."""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from bench import harness
from bench.agentdojo.baselines import ANCHORS
from bench.agentdojo.loading import AGENTDOJO, VERSION, NotInstalled, Package, load_suites, versions
from bench.agentdojo.measuring import ON_THE_ANSWER, OURS, Findings, measure, shares, summary
from bench.agentdojo.spellings import Beside, spell

ANSWERS = "an agent that says something false makes no call, so no gateway can stop it"


def main() -> None:
    run(AGENTDOJO, __doc__ or "")


def run(package: Package, description: str, beside: Mapping[str, object] = MappingProxyType({})) -> None:
    """Measure the package as the command line says; `beside` stands in the result too."""
    parser = argparse.ArgumentParser(prog=f"python -m bench {package.target}", description=description)
    parser.add_argument("--suite", action="append", choices=package.suites, help="only this suite; may be given again")
    parser.add_argument("--policy", action="append", choices=(OURS, *ANCHORS), help="only ours or this anchor")
    parser.add_argument("--tasks", type=int, help="only the first so many user tasks of each suite")
    parser.add_argument("--injections", type=int, help="only the first so many injections of each suite")
    parser.add_argument("--spellings", type=float, metavar="MINUTES", help="only the chosen spellings, for so long")
    options = parser.parse_args()
    started = time.perf_counter()
    try:
        if options.spellings:
            _write_spellings(package, options.spellings)
            return
        wanted = shares(
            package,
            suites=options.suite,
            policies=options.policy,
            tasks=options.tasks,
            injections=options.injections,
        )
    except NotInstalled as error:
        sys.exit(f"bench: {error}")
    measured = {**summary(measure(wanted, done=_tell)), **beside}
    measured["agentdojo"] = {**versions(package), "suites": VERSION}
    measured["pairs_on_the_answer_alone"] = ANSWERS
    measured["seconds"] = round(time.perf_counter() - started, 1)
    if any(vars(options).values()):
        print(json.dumps(measured, indent=2, ensure_ascii=False))
        return
    harness.write(package.target, measured, claim=_claim(package, measured), group="security")


def _write_spellings(package: Package, minutes: float) -> None:
    before = json.loads((harness.RESULTS / f"{package.target}.json").read_text())
    tasks = [
        Beside(name, task, [one for one in suite.injection_tasks if (name, one) not in ON_THE_ANSWER])
        for name, suite in load_suites(package).items()
        for task in suite.user_tasks
    ]
    random.Random(0).shuffle(tasks)  # reproducible, and a part of them is a sample
    pairs = sum(len(each.injections) for each in tasks)
    tried: dict[str, Any] = before["measured"].get("chosen_spellings", {})
    left = tasks if tried.get("pairs") == pairs else _after(tasks, tried.get("pairs", 0))
    found = spell(left, minutes=minutes, done=lambda told: print(told, file=sys.stderr, flush=True))
    if len(left) < len(tasks):
        found = _together(tried, found)
    found |= {"at": f"{datetime.now(UTC):%Y-%m-%d}", "of_pairs": pairs}
    measured = {**before["measured"], "chosen_spellings": found}
    harness.write(package.target, measured, claim=before["claim"], group="security")


def _after(tasks: list[Beside], pairs: int) -> list[Beside]:
    """The tasks behind those that make up so many pairs."""
    place = 0
    while pairs > 0:
        pairs -= len(tasks[place].injections)
        place += 1
    return tasks[place:]


def _together(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """The findings of two parts of the tasks, which tried the same spellings."""
    both: dict[str, Any] = {**later}
    for name in ("pairs", "calls_judged", "calls_that_ran"):
        both[name] = earlier[name] + later[name]
    for name in ("pairs_by_suite", "calls_judged_by_moment"):
        both[name] = dict(Counter(earlier[name]) + Counter(later[name]))
    return both


def _tell(findings: Findings) -> None:
    share = findings.share
    succeeded = sum(attack.succeeded for attack in [*findings.attacks, *findings.attacks_on_plans])
    print(
        f"{share.suite}, {share.policy}, {share.tasks[0]} to {share.tasks[-1]}: {succeeded} attacks succeeded",
        file=sys.stderr,
        flush=True,
    )


def _claim(package: Package, measured: dict[str, object]) -> str:
    total = measured[OURS]["total"]  # type: ignore[index]  # the summary of a policy is a mapping
    return (
        f"{package.name} with a fully hijacked agent: {total['attacks_that_succeeded']} of {total['pairs']} attacks "
        f"succeed; {total['tasks_without_a_person']} of {total['tasks']} user tasks pass without a person, "
        f"{total['tasks_with_an_attentive_person']} with an attentive one, at {total['confirmations_a_task']} "
        f"confirmations by the asker and {total['approvals_a_task']} approvals by another person a task."
    )


if __name__ == "__main__":
    main()
