"""A new workspace in a temporary folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sentinel_rag.workspace.queries import Cell
from sentinel_rag.workspace.sample.options import EstateOptions
from sentinel_rag.workspace.workspace import Workspace


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a closed workspace that holds nothing: copied, it is opened in half the time of a new one."""
    folder = tmp_path_factory.mktemp("empty") / "workspace"
    Workspace.open(folder).close()
    return folder


@pytest.fixture
def workspace(made_once: Path, tmp_path: Path) -> Iterator[Workspace]:
    shutil.copytree(made_once, tmp_path / "workspace")
    opened = Workspace.open(tmp_path / "workspace")
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def generated_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a closed workspace with a small sample estate that ends on 12 March 2025 at 15:00 UTC."""
    folder = tmp_path_factory.mktemp("estate") / "workspace"
    workspace = Workspace.open(folder)
    workspace.generate(EstateOptions(days=8, events=100, end=datetime(2025, 3, 12, 15, tzinfo=UTC)))
    workspace.close()
    return folder


@pytest.fixture
def small_estate(generated_once: Path, tmp_path: Path) -> Iterator[Workspace]:
    """That estate in a workspace of the test's own."""
    shutil.copytree(generated_once, tmp_path / "workspace")
    opened = Workspace.open(tmp_path / "workspace")
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def kql_workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """An empty workspace for queries that bring their own rows."""
    opened = Workspace.open(tmp_path_factory.mktemp("kql") / "workspace")
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def evaluated(kql_workspace: Workspace) -> Callable[[str], tuple[str, Cell]]:
    """KQL type and wire cell of one scalar expression."""

    def evaluate(expression: str) -> tuple[str, Cell]:
        answer = kql_workspace.query(f"print value = {expression}")
        return answer.columns[0].type, answer.rows[0][0]

    return evaluate
