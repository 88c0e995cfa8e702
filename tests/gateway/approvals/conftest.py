"""A desk of approvals for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from approval_desk import Clock, Desk, open_desk

from sentinel_rag.audit import JournalPlace

ON_BOTH = {"test_approvals_store", "test_approvals_bounds", "test_approvals_races"}
"""Modules whose tests hold for approvals in SQLite and in PostgreSQL."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__ in ON_BOTH and "backend" in metafunc.fixturenames:
        metafunc.parametrize("backend", ["sqlite", "postgres"])


@pytest.fixture
def backend() -> str:
    return "sqlite"


@pytest.fixture
def place(tmp_path: Path, backend: str, request: pytest.FixtureRequest) -> JournalPlace:
    """Where the approvals of this test are."""
    if backend == "sqlite":
        return tmp_path / "journal.sqlite"
    place: JournalPlace = request.getfixturevalue("postgres_states").place(tmp_path / "state")
    return place


@pytest.fixture
def desk(place: JournalPlace) -> Iterator[Desk]:
    with open_desk(place, Clock()) as opened:
        yield opened
