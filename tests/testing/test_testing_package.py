"""The package for people who test their own agents: its wheel, and what its page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from bench.package import build, names

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "packages" / "sentinel-rag-testing"


def test_its_wheel_holds_every_source_and_nothing_else(tmp_path: Path) -> None:
    command = ["git", "ls-files", "-co", "--exclude-standard", "src"]
    listed = subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True, check=True).stdout.split()
    found = {name for name in names(build(tmp_path, PACKAGE)[0]) if ".dist-info/" not in name}
    assert found == {name.removeprefix("src/") for name in listed}


def test_the_example_of_its_page_runs_as_it_stands() -> None:
    [code] = re.findall(r"```python\n(.*?)```", (REPOSITORY / "docs" / "testing.md").read_text(), re.DOTALL)
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout == "200 1\n"
