"""LangChain and the OpenAI Agents SDK for tests: they lie in a folder of their own, and their tests are never silently
left out.

In CI a missing folder fails the test; elsewhere it is skipped with the reason and the command that installs it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

OTHER_FOLDER = "LANGCHAIN_PACKAGES"
"""Names another folder of the environment, for the oldest versions that are promised (`make langchain-oldest`)."""


def langchain_packages() -> Path:
    """The folder with LangChain and what it needs beyond the development environment, for the end of `sys.path`."""
    folder = Path(sys.prefix) / os.environ.get(OTHER_FOLDER, "langchain")
    if not (folder / "installed").is_file():
        reason = "LangChain is not in .venv/langchain: `make test` installs it, and so does `make langchain`"
        if os.environ.get("CI"):
            pytest.fail(f"CI must not skip: {reason}")
        pytest.skip(reason)
    return folder


@contextmanager
def importable_langchain() -> Iterator[Path]:
    """That folder on `sys.path`: behind everything else, so that it shadows nothing, and gone again at the end, since
    other libraries look for packages in it (websockets) and behave otherwise with them."""
    folder = langchain_packages()
    sys.path.append(str(folder))
    try:
        yield folder
    finally:
        sys.path.remove(str(folder))
