"""`make mutation`: how many small changes of the code that decides are noticed by its tests.

Mutmut makes the changes and runs the tests (`[tool.mutmut]` in pyproject.toml names both); what it has run before, it
runs again only where the code has changed. This script writes `bench/results/mutation.json`: for each module what
became of its mutants, and each survivor as the lines that it changes. Why one survives is for
`bench/mutation_survivors.md` to say.

Two kinds are counted apart and have no part in the score: mutants that mypy refuses, which never pass `make check`; and
those that change nothing, as far as a rule can tell (`changes_nothing`).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mutmut.__main__ import create_mutants, store_lines_covered_by_tests
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.utils.file_utils import copy_also_copy_files, copy_src_dir, setup_source_paths

from bench.harness import write
from bench.mutation_types import refused_mutants

ROOT = Path(__file__).parent.parent
MUTANTS = ROOT / "mutants"
GOAL = 0.9
REFUSED_BY_TYPES = 37
_SQL = re.compile(r"\"(?:SELECT|INSERT|UPDATE|DELETE|ORDER BY|VALUES|AND|sensitivity = max)\b")
UNNOTICED = ("survived", "no_tests", "died")
OUTCOMES = {
    1: "killed",
    3: "killed",  # pytest itself fell over
    0: "survived",
    33: "no_tests",
    5: "no_tests",
    REFUSED_BY_TYPES: "refused_by_types",
    36: "timeout",
    24: "timeout",
    -24: "timeout",
    152: "timeout",
    255: "timeout",
}
"""Mutmut's exit codes. Any other is of a process that died; nobody has noticed that change."""


@dataclass(slots=True)
class Module:
    """The mutants of one module by outcome, and the changes of those that no test noticed."""

    outcomes: Counter[str] = field(default_factory=Counter)
    survivors: dict[str, str] = field(default_factory=dict)
    open: int = 0

    def report(self) -> dict[str, Any]:
        return {**figures(self.outcomes, self.open), "survivors": self.survivors}


def figures(outcomes: Counter[str], not_run: int) -> dict[str, Any]:
    """Counts and the score: of the mutants that a test could notice, the share that one did."""
    noticed = outcomes["killed"] + outcomes["timeout"]
    able = noticed + sum(outcomes[name] for name in UNNOTICED)
    return {
        "mutants": sum(outcomes.values()) + not_run,
        **{name: outcomes[name] for name in ("killed", "timeout", *UNNOTICED, "refused_by_types", "changes_nothing")},
        "not_run": not_run,
        "score": round(noticed / able, 4) if able else None,
    }


def targets() -> list[Path]:
    """The modules under mutation, relative to the repository."""
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutmut"]["only_mutate"]
    return sorted(path.relative_to(ROOT) for pattern in patterns for path in ROOT.glob(pattern))


def prepare() -> None:
    """Write the mutants, and note which of them the type check refuses, so that they are not run."""
    set_mutant_under_test("mutant_generation")
    MUTANTS.mkdir(exist_ok=True)
    (MUTANTS / "mutmut-stats.json").unlink(missing_ok=True)  # which test reaches which function is asked anew
    copy_src_dir()
    copy_also_copy_files()
    setup_source_paths()
    store_lines_covered_by_tests()
    create_mutants(os.cpu_count() or 2)
    refused = refused_mutants(MUTANTS)
    for target in targets():
        noted = Noted(target)
        for mutant, code in noted.codes.items():
            if (target, mutant.rpartition(".")[2]) in refused:
                noted.codes[mutant] = REFUSED_BY_TYPES
            elif code == REFUSED_BY_TYPES:
                noted.codes[mutant] = None
        noted.save()


def forget_survivors() -> None:
    """Have those that no test has noticed run again, because there are new tests."""
    for target in targets():
        noted = Noted(target)
        noted.codes.update(
            {
                name: None
                for name, code in noted.codes.items()
                if code is not None and OUTCOMES.get(code, "died") in UNNOTICED
            }
        )
        noted.save()


class Noted:
    """What mutmut has noted about one module: the exit code of each mutant, None for one that was not run."""

    def __init__(self, target: Path) -> None:
        self._path = MUTANTS / f"{target}.meta"
        self._document: dict[str, Any] = (
            json.loads(self._path.read_text()) if self._path.exists() else {"exit_code_by_key": {}}
        )
        self.codes: dict[str, int | None] = self._document["exit_code_by_key"]

    def save(self) -> None:
        if self._path.exists():
            self._path.write_text(json.dumps(self._document, indent=4))


def read(target: Path) -> Module:
    """What mutmut has noted about one module."""
    module = Module()
    for mutant, code in Noted(target).codes.items():
        if code is None:
            module.open += 1
            continue
        outcome = OUTCOMES.get(code, "died")
        if outcome in UNNOTICED:
            removed, added = change(target, mutant)
            if changes_nothing(removed, added):
                outcome = "changes_nothing"
            else:
                name = mutant.rpartition(".")[2].replace("\u01c1", ".")
                module.survivors[name] = " ".join(
                    [*(f"- {line}" for line in removed), *(f"+ {line}" for line in added)]
                )
        module.outcomes[outcome] += 1
    return module


def change(target: Path, mutant: str) -> tuple[list[str], list[str]]:
    """The lines that a mutant takes away, and those that it puts there."""
    lines = [line for line in get_diff_for_mutant(mutant, path=target).splitlines() if line[:3] not in ("---", "+++")]
    removed, added = ([line[1:].strip() for line in lines if line[:1] == sign] for sign in "-+")
    return removed, added


def changes_nothing(removed: list[str], added: list[str]) -> bool:
    """Letters of another case in SQL, which SQLite reads alike; an arm that mypy proves to be out of reach."""
    before, after = "\n".join(removed), "\n".join(added)
    sql = _SQL.search(before) is not None and before.lower() == after.lower()
    return sql or all(line == "case _:" or line.startswith("assert_never(") for line in removed)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.mutation", description=__doc__.split("\n")[0])
    parser.add_argument("--report", action="store_true", help="run nothing, report what the last run has noted")
    parser.add_argument("--again", action="store_true", help="run the survivors of the last run too, against new tests")
    parser.add_argument("--children", default=str(os.cpu_count() or 2), help="processes at once")
    chosen = parser.parse_args()
    os.chdir(ROOT)  # mutmut knows no other place
    if not chosen.report:
        prepare()
        if chosen.again:
            forget_survivors()
        subprocess.run([sys.executable, "-m", "mutmut", "run", "--max-children", chosen.children], check=True)
    modules = {str(target.relative_to("src/sentinel_rag")): read(target) for target in targets()}
    modules = {name: module for name, module in modules.items() if module.outcomes or module.open}
    in_all = sum((module.outcomes for module in modules.values()), Counter[str]())
    measured = {
        "in_all": figures(in_all, sum(module.open for module in modules.values())),
        "modules": {name: module.report() for name, module in modules.items()},
    }
    write(
        "mutation",
        measured,
        claim=f"At least {GOAL:.0%} of the mutants of labels, policy, flow, store and gate are noticed by their tests.",
    )
    score = measured["in_all"]["score"]
    return 0 if score is not None and score >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
