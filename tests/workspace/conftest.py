"""A new workspace in a temporary folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sentinel_rag.workspace.cells import Cell
from sentinel_rag.workspace.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
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
