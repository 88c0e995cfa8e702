"""The benchmarks are no part of the installed package: they are found beside the tests."""

from __future__ import annotations

import sys
from pathlib import Path

REPOSITORY = str(Path(__file__).parents[2])
if REPOSITORY not in sys.path:
    sys.path.insert(0, REPOSITORY)
