"""Which mutants the type check refuses. Mutmut has such a filter of its own, which takes many minutes for our files.

Mutmut writes all mutants of a function side by side into one file. What mypy says only because of that is left out, and
so is every error outside a mutant.
"""

from __future__ import annotations

import ast
import hashlib
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

FOLDERS = ("src/sentinel_rag/gateway", "src/sentinel_rag/contracts")
COMMAND = (
    *(sys.executable, "-m", "mypy", "--config-file=", "--strict", "--ignore-missing-imports", "--output", "json"),
    *FOLDERS,
)
OF_THE_SIDE_BY_SIDE = frozenset({"has-type", "no-redef", "unused-ignore", "ignore-without-code"})


def refused_mutants(mutants: Path) -> set[tuple[Path, str]]:
    """The file, relative to `mutants`, and the name of each function there that is a mutant with a type error."""
    wrong: defaultdict[str, set[int]] = defaultdict(set)
    for line in _report(mutants).splitlines():
        error = json.loads(line)
        if error["severity"] == "error" and error["code"] not in OF_THE_SIDE_BY_SIDE:
            wrong[error["file"]].add(error["line"])
    return {
        (Path(file), function.name)
        for file, lines in wrong.items()
        for function in _mutated_functions(mutants / file)
        if not lines.isdisjoint(range(function.lineno, (function.end_lineno or function.lineno) + 1))
    }


def _mutated_functions(file: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [
        node
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.rpartition("__mutmut_")[2].isdecimal()
    ]


def _report(mutants: Path) -> str:
    """Mypy's report as JSON lines, from the last run if no file is another by now."""
    digest = hashlib.sha256()
    for file in sorted(file for folder in FOLDERS for file in (mutants / folder).rglob("*.py")):
        digest.update(str(file.relative_to(mutants)).encode() + file.read_bytes())
    kept = mutants / f"mypy-{digest.hexdigest()[:16]}.jsonl"
    if not kept.exists():
        # Mypy's exit code says that there are errors, which is the purpose.
        kept.write_text(subprocess.run(COMMAND, cwd=mutants, capture_output=True, text=True, check=False).stdout)
    return kept.read_text()
