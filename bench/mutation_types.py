"""What `mutmut` asks for the mutants that the type check refuses: mypy's report on the mutated files, as JSON lines.

Mutmut writes all mutants of a function side by side into one file. What mypy says only because of that is left out, and
so is every error outside a mutant.
"""

from __future__ import annotations

import ast
import hashlib
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

FOLDERS = ("src/sentinel_rag/interceptor", "src/sentinel_rag/contracts")
COMMAND = (
    *(sys.executable, "-m", "mypy", "--config-file=", "--strict", "--ignore-missing-imports", "--output", "json"),
    *FOLDERS,
)
OF_THE_SIDE_BY_SIDE = frozenset({"has-type", "no-redef", "unused-ignore", "ignore-without-code"})


@cache
def mutants_of(file: str) -> list[range]:
    """The lines of each mutated function."""
    return [
        range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in ast.walk(ast.parse(Path(file).read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.rpartition("__mutmut_")[2].isdecimal()
    ]


def report() -> str:
    """Mypy's report, from the last run if no file is another by now."""
    digest = hashlib.sha256()
    for file in sorted(file for folder in FOLDERS for file in Path(folder).rglob("*.py")):
        digest.update(str(file).encode() + file.read_bytes())
    kept = Path(f"mypy-{digest.hexdigest()[:16]}.jsonl")
    if not kept.exists():
        kept.write_text(subprocess.run(COMMAND, capture_output=True, text=True, check=False).stdout)
    return kept.read_text()


def main() -> None:
    for line in report().splitlines():
        error = json.loads(line)
        inside = any(error["line"] in lines for lines in mutants_of(error["file"]))
        if error["severity"] == "error" and error["code"] not in OF_THE_SIDE_BY_SIDE and inside:
            print(line)


if __name__ == "__main__":
    main()
