"""How long a person waits for `sentinel --help`, against Python doing nothing, as whole processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.harness import paired, write

SENTINEL = Path(sys.executable).parent / "sentinel"


def run(*command: str | Path) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


measured = paired(lambda: run(SENTINEL, "--help"), lambda: run(sys.executable, "-c", "pass"), runs=60, warmup=3)
write("cold_start", measured, claim="`sentinel --help` within 3 times of `python -c pass`")
