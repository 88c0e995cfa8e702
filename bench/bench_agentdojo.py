"""AgentDojo against the gateway, without a model: what passes by itself, what a person has to decide, what an
attacker reaches. Needs `make agentdojo`. `--suite`, `--policy`, `--tasks` and `--injections` make a smaller run, which
is printed and not written."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from types import MappingProxyType

from bench import harness
from bench.agentdojo.baselines import ANCHORS
from bench.agentdojo.loading import AGENTDOJO, VERSION, NotInstalled, Package, versions
from bench.agentdojo.measuring import OURS, Findings, measure, shares, summary

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
    options = parser.parse_args()
    started = time.perf_counter()
    try:
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
