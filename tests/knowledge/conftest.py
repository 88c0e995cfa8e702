"""What the tests of knowledge share: the shipped playbooks, and a PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.postgres_server import PostgresServer

PLAYBOOKS = Path(__file__).resolve().parents[2] / "data" / "playbooks"


@pytest.fixture(scope="session")
def playbooks() -> Path:
    return PLAYBOOKS


EMPTY = """
DELETE FROM document; DELETE FROM kept_vector; DELETE FROM word; DELETE FROM space;
UPDATE state SET revision = revision + 1, space = NULL, chunks = 0, words = 0, removed = 0, indexed = false;
"""


@pytest.fixture(scope="session")
def emptied(postgres: PostgresServer) -> Callable[[], str]:
    """The name of one schema for knowledge, without anything in it: new tables for each test would take longer than
    the tests do."""
    import psycopg

    def empty() -> str:
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            there = connection.execute("SELECT 1 FROM pg_tables WHERE schemaname = 'emptied' AND tablename = 'state'")
            if there.fetchone() is not None:
                connection.execute("SET search_path TO emptied, public")
                connection.execute(EMPTY)
        return "emptied"

    return empty
