"""A new workspace in a temporary folder, and the public rows that lie beside the repository."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel_rag.workspace.workspace import Workspace

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    opened = Workspace.open(tmp_path / "workspace")
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real rows; a machine without them skips, the build fails."""
    folder = REPOSITORY / ".." / "shared" / "data"
    if not folder.is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail(f"the public rows are missing: {folder}")
        pytest.skip(f"no public rows at {folder}")
    return folder.resolve()
