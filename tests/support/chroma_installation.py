"""ChromaDB for tests and benchmarks: it lies in a folder of its own, and its tests are never silently left out.

In CI a missing one fails the test; elsewhere it is skipped with the reason and the command that installs it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def chroma_packages() -> Path:
    """The folder with ChromaDB and what it needs beyond the development environment, for the end of `sys.path`."""
    folder = Path(sys.prefix) / "chroma"
    if not (folder / "installed").is_file():
        reason = "ChromaDB is not in .venv/chroma: `make test` installs it, and so does `make .venv/chroma/installed`"
        if os.environ.get("CI"):
            pytest.fail(f"CI must not skip: {reason}")
        pytest.skip(reason)
    return folder


@contextmanager
def importable_chroma() -> Iterator[Path]:
    """That folder on `sys.path`: behind everything else, so that it shadows nothing, and gone again at the end, since
    other libraries look for packages in it and behave otherwise with them."""
    folder = chroma_packages()
    sys.path.append(str(folder))
    try:
        yield folder
    finally:
        sys.path.remove(str(folder))
