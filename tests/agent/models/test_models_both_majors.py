"""The tests that reach the openai SDK run once more on its other major, in a process of their own.

The other major lies in `.venv/openai-2` (make puts it there) and shadows the installed one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from waiting import WAIT_S

ROOT = Path(__file__).resolve().parents[3]
OTHER = ROOT / ".venv" / "openai-2"
FILES = [str(Path(__file__).parent / f"test_models_{name}.py") for name in ("scenarios", "wire", "retrying")]
PROVIDER = str(ROOT / "tests" / "attacks" / "test_attacks_model_provider.py")


TEST_AND_TELL = (
    "import sys, pytest; code = pytest.main(sys.argv[1:]); import openai; print(openai.__version__); sys.exit(code)"
)


@pytest.mark.slow
@pytest.mark.requirement("OPS-3")
def test_the_same_tests_pass_on_openai_2_and_3():
    assert OTHER.is_dir(), "openai 2 is not installed beside the other packages: run `make check` once"
    assert version("openai").startswith("3.")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    ran = subprocess.run(
        [sys.executable, "-c", TEST_AND_TELL, "-q", "-n", "0", *FILES, PROVIDER],
        cwd=ROOT,
        env={**environment, "PYTHONPATH": str(OTHER)},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    *_, last, imported = ran.stdout.strip().splitlines()
    assert imported == "2.54.0"
    counts = re.findall(r"(\d+) (\w+)", last.partition(" in ")[0])
    assert {word for _, word in counts} == {"passed"}, "some tests were left out on openai 2"
    assert int(counts[0][0]) > 150
