"""What the tests of knowledge share: the shipped playbooks, and a PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel_rag.testing.postgres_server import PostgresServer, running_postgres

PLAYBOOKS = Path(__file__).resolve().parents[2] / "data" / "playbooks"


@pytest.fixture(scope="session")
def playbooks() -> Path:
    return PLAYBOOKS


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server
