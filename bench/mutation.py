"""Mutation testing of the parts that decide: `python -m bench.mutation [FILE ...]`, all of `[tool.mutmut]` by default.

mutmut changes one expression at a time and runs the tests that reach it. The result, with every survivor as a diff, is
`bench/results/mutation.json`. A run that was stopped goes on where it was: mutmut keeps what it has in mutants/.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from bench.harness import write

ROOT = Path(__file__).parents[1]
MUTMUT = (sys.executable, "-m", "mutmut")
CAUGHT = ("killed", "timeout", "suspicious", "caught by type check", "segfault")
WITHOUT_SAY = ("skipped", "not checked")
_RESULT = re.compile(r"\s*(?P<mutant>[\w.]+): (?P<status>[a-z ]+)")


def mutants_of(file: str) -> str:
    """mutmut's pattern for the mutants of a source file."""
    return ".".join(Path(file).resolve().relative_to(ROOT / "src").with_suffix("").parts) + ".*"


def output(*arguments: str) -> str:
    return subprocess.run([*MUTMUT, *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def results(patterns: list[str]) -> dict[str, str]:
    """The status of each mutant that one of the patterns names; without patterns of all."""
    chosen = [re.compile(re.escape(pattern.removesuffix("*"))) for pattern in patterns]
    found = (_RESULT.fullmatch(line) for line in output("results", "--all", "true").splitlines())
    return {
        match["mutant"]: match["status"]
        for match in found
        if match and (not chosen or any(one.match(match["mutant"]) for one in chosen))
    }


def module_of(mutant: str) -> str:
    return mutant.rpartition(".")[0]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.mutation", description=__doc__)
    parser.add_argument("file", nargs="*", help="source files, such as src/sentinel_rag/interceptor/policy/fields.py")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    patterns = [mutants_of(file) for file in options.file]
    run = subprocess.run([*MUTMUT, "run", "--max-children", str(options.processes), *patterns], cwd=ROOT, check=False)
    if run.returncode:
        raise SystemExit(
            f"mutmut ended with {run.returncode}; the tests must pass in mutants/ before anything is changed"
        )
    found = {mutant: status for mutant, status in results(patterns).items() if status not in WITHOUT_SAY}
    survivors = sorted(mutant for mutant, status in found.items() if status not in CAUGHT)
    per_module: dict[str, Counter[str]] = {}
    for mutant, status in found.items():
        per_module.setdefault(module_of(mutant), Counter())[status] += 1
    write(
        "mutation",
        {
            "score": round(1 - len(survivors) / len(found), 4) if found else None,
            "mutants": len(found),
            "modules": {module: dict(counted) for module, counted in sorted(per_module.items())},
            "survivors": {mutant: {"status": found[mutant], "diff": output("show", mutant)} for mutant in survivors},
        },
        claim="Of the changes to policy, labels and gate at least 90 % are noticed by the tests.",
    )


if __name__ == "__main__":
    main()
