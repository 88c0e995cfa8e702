"""Fixtures for the Sentinel client: `wire` for faults, `serving` for rows of a test's own, `real` for real rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from sentinel_servers import NOW, ScriptedWire, Served, workspace_app

from sentinel_rag.testing.loopback import serve
from sentinel_rag.workspace.workspace import Workspace


@pytest.fixture
def wire() -> Iterator[ScriptedWire]:
    scripted = ScriptedWire()
    with serve(scripted.app()) as url:
        scripted.url = url
        yield scripted


Rows = Sequence[Mapping[str, Any]]


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Served]]:
    """`serving(SecurityAlert=[{...}], ...)` imports the rows into a fresh embedded workspace and serves it."""
    with ExitStack() as stack:

        def start(*, now: datetime = NOW, limits: Mapping[str, int] | None = None, **tables: Rows) -> Served:
            folder = tmp_path_factory.mktemp("estate")
            workspace = Workspace.open(folder / "workspace")
            stack.callback(workspace.close)
            for table, rows in tables.items():
                path = folder / f"{table}.jsonl"
                path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
                reports = workspace.import_path(path, table=table)
                assert sum(report.rows_stored for report in reports) == len(rows), reports
            return Served(stack.enter_context(serve(workspace_app(workspace, **(limits or {})))), now)

        yield start


@pytest.fixture(scope="session")
def real(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The 189 real alerts and 8 real incidents, served."""
    workspace = Workspace.open(tmp_path_factory.mktemp("real"))
    try:
        for name, table in (("extracted_alerts.csv", "SecurityAlert"), ("extracted_incidents.csv", "SecurityIncident")):
            workspace.import_path(shared_data / "secrl" / name, table=table)
        with serve(workspace_app(workspace)) as url:
            yield Served(url)
    finally:
        workspace.close()
