"""Fixtures for the Sentinel client: `wire` for faults, `serving` for rows of a test's own, `real` for real rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from sentinel_servers import NOW, ScriptedWire, Served, start_estate, workspace_app

from sentinel_rag.workspace.workspace import Workspace
from sentinel_rag_testing.loopback import serve


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
            return start_estate(stack, tmp_path_factory.mktemp("estate"), tables, now=now, limits=limits)

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
