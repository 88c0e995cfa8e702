"""ChromaDB for tests and benchmarks: it lies in a folder of its own, and its tests are never silently left out.

In CI a missing one fails the test; elsewhere it is skipped with the reason and the command that installs it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest


def chroma_packages() -> Path:
    """The folder with ChromaDB and what it needs beyond the development environment, for the end of `sys.path`."""
    folder = Path(sys.prefix) / "chroma"
    if not (folder / "installed").is_file():
        reason = "ChromaDB is not in .venv/chroma: `make test` installs it, and so does `make .venv/chroma/installed`"
        if os.environ.get("CI"):  # noqa: TID251
            pytest.fail(f"CI must not skip: {reason}")
        pytest.skip(reason)
    return folder
