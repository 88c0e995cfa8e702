"""`make mutation`: how many small changes of the code that decides are noticed by its tests.

Mutmut makes the changes and runs the tests (`[tool.mutmut]` in pyproject.toml names both). This script asks it for one
group of modules after the other and writes `bench/results/mutation.json`: for each module what became of its mutants,
and each survivor as the lines that it changes. Why a survivor is none of harm stands in `bench/mutation_survivors.md`.

A mutant that mypy refuses never passes `make check`; it is counted apart and has no part in the score.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.harness import write

ROOT = Path(__file__).parent.parent
MUTANTS = ROOT / "mutants"
GOAL = 0.9
GROUPS = (
    ("contracts.labels", "interceptor.policy.deciding", "interceptor.policy.fields", "interceptor.policy.model"),
    ("interceptor.flow", "interceptor.store", "interceptor.gate"),
    ("interceptor.policy.conditions",),
)
"""What one run of mutmut is asked for; the first answers come soonest."""

OUTCOMES = {
    1: "killed",
    3: "killed",  # pytest itself fell over
    0: "survived",
    33: "no_tests",
    5: "no_tests",
    37: "refused_by_types",
    36: "timeout",
    24: "timeout",
    -24: "timeout",
    152: "timeout",
    255: "timeout",
}
"""Mutmut's exit codes. Any other, of a process that died, counts as killed: no test run of the true code dies."""


@dataclass(slots=True)
class Module:
    """The mutants of one module by outcome, and the changes of those that no test noticed."""

    outcomes: Counter[str] = field(default_factory=Counter)
    survivors: dict[str, str] = field(default_factory=dict)
    open: int = 0

    def report(self) -> dict[str, Any]:
        return {**figures(self.outcomes), "not_run": self.open, "survivors": self.survivors}


def figures(outcomes: Counter[str]) -> dict[str, Any]:
    """Counts and the score: of the mutants that could run, the share that was noticed."""
    noticed = outcomes["killed"] + outcomes["timeout"]
    able = noticed + outcomes["survived"] + outcomes["no_tests"]
    return {
        "mutants": able + outcomes["refused_by_types"],
        **{name: outcomes[name] for name in ("killed", "timeout", "survived", "no_tests", "refused_by_types")},
        "score": round(noticed / able, 4) if able else None,
    }


def targets() -> list[Path]:
    """The modules under mutation, relative to the repository."""
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutmut"]["only_mutate"]
    return sorted(path.relative_to(ROOT) for pattern in patterns for path in ROOT.glob(pattern))


def mutmut(*arguments: str) -> None:
    """Run mutmut in the repository; its progress goes to the terminal. It finds its tools by PATH."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    subprocess.run([sys.executable, "-m", "mutmut", *arguments], cwd=ROOT, env={**os.environ, "PATH": path}, check=True)


def read(target: Path) -> Module:
    """What mutmut has noted about one module."""
    module = Module()
    noted = MUTANTS / f"{target}.meta"
    codes = json.loads(noted.read_text())["exit_code_by_key"] if noted.exists() else {}
    for mutant, code in codes.items():
        if code is None:
            module.open += 1
            continue
        outcome = OUTCOMES.get(code, "killed")
        module.outcomes[outcome] += 1
        if outcome in ("survived", "no_tests"):
            module.survivors[mutant.rpartition(".")[2]] = change(target, mutant)
    return module


def change(target: Path, mutant: str) -> str:
    """The lines that a mutant changes, on one line."""
    from mutmut.mutation.diff_apply import get_diff_for_mutant

    os.chdir(ROOT)
    lines = get_diff_for_mutant(mutant, path=target).splitlines()
    changed = [line for line in lines if line[:1] in "+-" and not line.startswith(("+++", "---"))]
    return " ".join(f"{line[0]} {line[1:].strip()}" for line in changed)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.mutation", description=__doc__.split("\n")[0])
    parser.add_argument("--report", action="store_true", help="run nothing, report what the last run has noted")
    parser.add_argument("--survivors", action="store_true", help="run only what no test has noticed, or what is open")
    parser.add_argument("--children", default=str(os.cpu_count() or 2), help="processes at once")
    chosen = parser.parse_args()
    if chosen.survivors:
        left = [name for target in targets() for name in unnoticed(target)]
        for start in range(0, len(left), 400):
            mutmut("run", "--max-children", chosen.children, *left[start : start + 400])
    elif not chosen.report:
        for group in GROUPS:
            mutmut("run", "--max-children", chosen.children, *(f"sentinel_rag.{name}*" for name in group))
    modules = {str(target.relative_to("src/sentinel_rag")): read(target) for target in targets()}
    modules = {name: module for name, module in modules.items() if module.outcomes or module.open}
    in_all = sum((module.outcomes for module in modules.values()), Counter[str]())
    measured = {
        "in_all": {**figures(in_all), "not_run": sum(module.open for module in modules.values())},
        "modules": {name: module.report() for name, module in modules.items()},
    }
    write(
        "mutation",
        measured,
        claim=f"At least {GOAL:.0%} of the mutants of labels, policy, flow, store and gate are noticed by their tests.",
    )
    score = measured["in_all"]["score"]
    return 0 if score is not None and score >= GOAL else 1


def unnoticed(target: Path) -> list[str]:
    """Full names of the mutants that survived, had no test, or were not run."""
    noted = MUTANTS / f"{target}.meta"
    codes = json.loads(noted.read_text())["exit_code_by_key"] if noted.exists() else {}
    return [name for name, code in codes.items() if code is None or code in (0, 33, 5)]


if __name__ == "__main__":
    sys.exit(main())
