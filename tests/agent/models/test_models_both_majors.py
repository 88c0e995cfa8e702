"""The tests that reach the openai SDK run once more on its other major, in a process of their own.

The other major lies in `.venv/openai-2` (make puts it there) and shadows the installed one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from waiting import WAIT_S

ROOT = Path(__file__).resolve().parents[3]
OTHER = ROOT / ".venv" / "openai-2"
FILES = [str(Path(__file__).parent / f"test_models_{name}.py") for name in ("scenarios", "wire", "retrying", "load")]
PROVIDER = str(ROOT / "tests" / "attacks" / "test_attacks_model_provider.py")


def _run(*arguments: str, python_path: str = "") -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    environment["PYTHONPATH"] = python_path
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )


def _version(python_path: str) -> str:
    return _run("-c", "import openai; print(openai.__version__)", python_path=python_path).stdout.strip()


@pytest.mark.slow
@pytest.mark.requirement("OPS-3")
def test_the_same_tests_pass_on_openai_2_and_3():
    assert OTHER.is_dir(), "openai 2 is not installed beside the other packages: run `make check` once"
    assert _version("").startswith("3.")
    assert _version(str(OTHER)) == "2.54.0"
    ran = _run("-m", "pytest", "-q", "-n", "0", *FILES, PROVIDER, python_path=str(OTHER))
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    counts = re.findall(r"(\d+) (\w+)", ran.stdout.strip().splitlines()[-1].partition(" in ")[0])
    assert {word for _, word in counts} == {"passed"}, "some tests were left out on openai 2"
    assert int(counts[0][0]) > 150
